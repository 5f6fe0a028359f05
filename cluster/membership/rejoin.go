package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/cluster/protocol"
)

// How nodes look for those they have lost.
const (
	firstRejoin = time.Second
	lastRejoin  = 5 * time.Second
	// calls is how many addresses are tried at a time: one where packets vanish keeps nobody from
	// the others.
	calls = 16
	// maxCalls is how many are tried before the next wait, chosen by chance.
	maxCalls = 64
	// sayAgain is how often a node that is not let in says so.
	sayAgain = 10 * time.Second
)

// foreignError says that whatever answers at a seed does not accept this process as a member of its
// cluster.
type foreignError struct{ cause string }

func (e *foreignError) Error() string {
	return "it answers, but not to this node: is this the same cluster? Compare the key and the label (" + e.cause + ")"
}

// pendingError says that a node answers but does not list this one.
type pendingError struct{ name string }

func (e *pendingError) Error() string {
	return fmt.Sprintf("it answers, but has not let this node in: it may have to notice first that an earlier %q is "+
		"gone, or be of another version", e.name)
}

// enter makes the first contact with the cluster.
func (m *Members) enter(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok && m.config.Waits == nil {
		deadline, ok = time.Now().Add(joinPatience), true
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if ok {
		m.transport.deadline.Store(deadline.UnixNano())
		defer m.transport.deadline.Store(0)
	}
	defer context.AfterFunc(ctx, m.transport.interrupt)()

	var before error // of the previous round
	var said time.Time
	for wait := firstRetry; ; wait = min(2*wait, lastJoinRetry) {
		own, err := m.round(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && before != nil {
			err = before // made with time enough to say what is wrong
		}
		switch {
		case m.isFinal(err), ctx.Err() != nil:
			return err
		case own && !refused(err):
			return nil
		case foreign(err) && foreign(before):
			return err
		}
		if m.config.Waits != nil && (before == nil || before.Error() != err.Error() || time.Since(said) >= sayAgain) {
			said = time.Now()
			m.config.Waits(err)
		}
		before = err
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// seedErrors are what came of the seeds, one by one.
type seedErrors []error

func (e seedErrors) Error() string {
	all := make([]string, len(e))
	for i, err := range e {
		all[i] = err.Error()
	}
	return strings.Join(all, "; ")
}

func (e seedErrors) Unwrap() []error { return e }

// round calls the seeds until one lets the node in. It says whether the node is one of
// them itself.
func (m *Members) round(ctx context.Context) (own bool, err error) {
	var errs seedErrors
	for _, seed := range m.config.Seeds {
		all, err := resolve(ctx, seed)
		if slices.Contains(all, m.transport.advertise) {
			own = true
			continue
		}
		for _, a := range all {
			if err = m.admit(ctx, a); err == nil {
				return own, nil
			}
		}
		errs = append(errs, fmt.Errorf("seed %s: %w", seed, err))
	}
	if len(errs) == 0 {
		return own, nil
	}
	return own, errs
}

// admit exchanges lists with the node at an address until its list has this node. It
// answers before it reads what it is told, so once is never enough.
func (m *Members) admit(ctx context.Context, a netip.AddrPort) error {
	for wait := time.Millisecond; wait < firstRetry; wait *= 4 {
		if err := m.contact(a); err != nil {
			return err
		}
		if m.admitted.Load() {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return &pendingError{m.config.Name}
		}
	}
	return &pendingError{m.config.Name}
}

// contact exchanges lists with the node at an address.
func (m *Members) contact(a netip.AddrPort) error {
	m.refusal.Store(nil)
	_, err := m.list.Join([]string{a.String()})
	if err == nil {
		return nil
	}
	if refusal := m.refusal.Load(); refusal != nil {
		return *refusal
	}
	if err := m.transport.dialled(); err != nil {
		return err
	}
	cause := err.Error()
	var w interface{ WrappedErrors() []error }
	if errors.As(err, &w) {
		cause = w.WrappedErrors()[0].Error()
	}
	cause = strings.TrimPrefix(cause, fmt.Sprintf("failed to join %s: ", a))
	if strings.HasSuffix(cause, "i/o timeout") || strings.Contains(cause, "use of closed") {
		return fmt.Errorf("connected, but there is no answer (%s)", cause)
	}
	return &foreignError{cause}
}

// isFinal reports whether trying again cannot change the outcome. A name is not free while its
// holder answers.
func (m *Members) isFinal(err error) bool {
	var late *incarnationError
	var other *protocol.Error
	if errors.As(err, &late) || errors.As(err, &other) {
		return true
	}
	var taken *nameError
	if !errors.As(err, &taken) {
		return false
	}
	c, err := m.transport.DialTimeout(taken.holder.String(), dialTimeout)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// refused reports whether there is a cluster that does not accept this process.
func refused(err error) bool {
	var taken *nameError
	var other *foreignError
	var pending *pendingError
	return errors.As(err, &taken) || errors.As(err, &other) || errors.As(err, &pending)
}

// foreign reports whether every seed answered and belongs to another cluster.
func foreign(err error) bool {
	var errs seedErrors
	var other *foreignError
	return errors.As(err, &errs) &&
		!slices.ContainsFunc(errs, func(e error) bool { return !errors.As(e, &other) })
}

// rejoinLoop calls the seeds and the processes that have failed until they are members again. So a
// process that has lost all others comes back, and the halves of a partition find each other.
//
// Two halves need two exchanges to become one. In the first, each learns that the other counts its
// processes as dead, and these object within their half. The second, which follows soon, carries
// the objections across.
func (m *Members) rejoinLoop() {
	wait := m.paced(firstRejoin)
	next := time.NewTimer(wait)
	defer next.Stop()
	due := time.Now().Add(wait)
	for {
		select {
		case <-m.closing:
			return
		case <-m.roll.lost:
			wait = m.paced(firstRejoin)
			if soon := time.Now().Add(wait); soon.Before(due) { // losses one after the other do not put it off
				due = soon
				next.Reset(wait)
			}
			continue
		case <-next.C:
		}
		if m.callMissing() {
			wait = m.paced(firstRejoin)
		} else {
			wait = min(2*wait, m.paced(lastRejoin))
		}
		pause := wait + rand.N(wait/4)
		due = time.Now().Add(pause)
		next.Reset(pause)
	}
}

// callMissing exchanges lists with those who should be here, as far as they answer, and tells
// whether any does.
func (m *Members) callMissing() bool {
	missing := m.missing()
	rand.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
	missing = missing[:min(maxCalls, len(missing))]
	var answered atomic.Bool
	var calling sync.WaitGroup
	slots := make(chan struct{}, calls)
	for _, a := range missing {
		select {
		case <-m.closing:
		case slots <- struct{}{}:
			calling.Go(func() {
				defer func() { <-slots }()
				if m.contact(a) == nil { // a member that does not answer is called again
					answered.Store(true)
				}
			})
		}
	}
	calling.Wait()
	return answered.Load()
}

// missing returns where nodes should be that are not.
func (m *Members) missing() []netip.AddrPort {
	where := m.roll.failed()
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	for _, s := range m.config.Seeds {
		// A name that is unknown now may be known the next time.
		all, _ := resolve(ctx, s)
		where = append(where, all...)
	}
	here := map[netip.AddrPort]bool{m.transport.advertise: true}
	for _, member := range m.View().Members {
		here[member.Gossip] = true
	}
	return slices.DeleteFunc(where, func(a netip.AddrPort) bool { return here[a] })
}

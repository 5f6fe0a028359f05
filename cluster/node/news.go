package node

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/submission"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

const (
	// maxNews is how many submissions one message reports.
	maxNews = 100
	// maxOthersKnown is how many processes the directory remembers, and maxAway how many of their
	// submissions it reports.
	maxOthersKnown = 1024
	maxAway        = 500
	// tellAgain is how long a process waits before it tries again to reach another one.
	tellAgain = time.Second
	// A submission counts as lost when its process has been away for lostAlone, or for lostHeld if
	// another holder may take over: clients wait as long for a successor.
	lostAlone = 10 * time.Second
	lostHeld  = 40 * time.Second
)

// directory holds what a process has heard from the others about themselves. It outlives their
// absence.
type directory struct {
	mu       sync.Mutex
	known    map[string]*listing
	wake     chan struct{} // has room for one: there is something to tell
	number   uint64        // of the latest change here, from 1 on
	restated uint64        // of the latest one that made void what was told before
}

// listing is a process that has sent news.
type listing struct {
	expires     int64 // expiry of its certificate, in s since 1970; 0 without one
	timeout     int64 // its node timeout, in ns
	submissions map[string]*protos.Submission
	away        time.Time // since when it is; zero while it is there
	why         string
}

// learn records the news of a process.
func (d *directory) learn(name string, m *protos.News) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.known[name]
	if of == nil {
		if len(d.known) == maxOthersKnown {
			return
		}
		of = &listing{}
		d.known[name] = of
	}
	if m.First || of.submissions == nil {
		of.submissions = map[string]*protos.Submission{}
	}
	of.expires, of.timeout = m.Expires, m.Timeout
	for _, s := range m.Submissions {
		if len(of.submissions) < submission.MaxKept || of.submissions[s.Id] != nil {
			s.Process = name
			of.submissions[s.Id] = s
		}
	}
}

// left takes note that a process is away.
func (d *directory) left(name, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of := d.known[name]; of != nil && of.away.IsZero() {
		of.away, of.why = time.Now(), why
	}
}

// back takes note that a process is there.
func (d *directory) back(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of := d.known[name]; of != nil {
		of.away, of.why = time.Time{}, ""
	}
}

// away are the submissions of processes that are away, as they were when these said so last.
func (d *directory) away() (all []*protos.Submission) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, of := range d.known {
		if of.away.IsZero() {
			continue
		}
		for _, s := range of.submissions {
			m := proto.CloneOf(s)
			m.Away, m.Why = of.away.UnixNano(), of.why
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *protos.Submission) int {
		return cmp.Or(cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.Id, b.Id))
	})
	return all[max(len(all)-maxAway, 0):]
}

// declareLost sets the state of a submission under way to Lost if its process has been away for too
// long and no other process has taken over.
func declareLost(m *protos.Submission, now time.Time) {
	away, patience := time.Unix(0, m.Away), lostAlone
	if len(m.Holders) > 0 {
		patience = lostHeld
	}
	if m.Away == 0 || request.Over(m.State) || now.Sub(away) < patience {
		return
	}
	m.Error = fmt.Sprintf("process %s has been away since %s, and no other process goes on with it; its last known "+
		"state is %s", m.Process, away.Format(time.DateTime), m.State)
	m.State = request.Lost
}

// complete adds to what a holder knows of a submission what its process has said last.
func (d *directory) complete(m *protos.Submission) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.known[m.Process]
	if of == nil {
		return
	}
	if last := of.submissions[m.Id]; last != nil && last.Done >= m.Done {
		m.State, m.Done, m.Share, m.Error = last.State, last.Done, max(m.Share, last.Share), last.Error
	}
}

// settings returns when the certificate of another process expires, in s since 1970, and its node
// timeout, in ns. An unknown value is 0.
func (d *directory) settings(name string) (expires, timeout int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of := d.known[name]; of != nil {
		return of.expires, of.timeout
	}
	return 0, 0
}

// latest returns the number of the latest change here, and of the latest change that voided all
// news before it.
func (d *directory) latest() (number, restated uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.number, d.restated
}

// changed has the news of a change here sent to the other processes; it returns the number of the
// change.
func (d *directory) changed() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change()
}

// restate has everything sent to the other processes again, because a submission was removed or the
// certificate replaced.
func (d *directory) restate() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.restated = d.change()
}

func (d *directory) change() uint64 {
	d.number++
	select {
	case d.wake <- struct{}{}:
	default: // it is known already
	}
	return d.number
}

// listener is another process, and the news that it has got.
type listener struct {
	connections uint64 // with it when it was told first
	number      uint64 // of the latest change that it knows; 0 if it was told nothing
}

// spread sends the news of this process's submissions to the others: all of them over a new
// connection, and then the changes. Over a new connection it also compares the names of the
// actors of both processes. Only this goroutine sends news, so the order is kept.
func (p *process) spread() {
	listeners := map[string]*listener{}
	retry := time.NewTicker(tellAgain)
	defer retry.Stop()
	for {
		// Taken before the submissions are read: better to send a change twice than not at all.
		number, restated := p.directory.latest()
		submissions := p.queue.All()
		present := map[string]bool{}
		for _, s := range p.node.Peers() {
			if s.State != transport.Up {
				continue
			}
			present[s.Peer.Name] = true
			l := listeners[s.Peer.Name]
			if l == nil || l.connections != s.Connections || l.number < restated {
				l = &listener{connections: s.Connections}
				listeners[s.Peer.Name] = l
			}
			if l.number < number {
				p.inform(s.Peer.Name, l, submissions, number)
			}
		}
		for name := range listeners {
			if !present[name] {
				delete(listeners, name)
			}
		}
		select {
		case <-p.directory.wake:
		case <-retry.C:
		case <-p.stop.Done():
			return
		}
	}
}

// inform sends one process what has changed since its last news, up to the change of that number.
// What cannot be sent now is sent later.
func (p *process) inform(name string, l *listener, submissions []*submission.Submission, number uint64) {
	var fresh []*protos.Submission
	for _, s := range submissions {
		if m, noted := s.Listed(); noted > l.number || l.number == 0 {
			fresh = append(fresh, m)
		}
	}
	for first := l.number == 0; first || len(fresh) > 0; first = false {
		n := min(len(fresh), maxNews)
		m := &protos.News{Submissions: fresh[:n], Expires: p.expires(), First: first,
			Timeout: int64(p.config.NodeTimeout)}
		if err := p.node.TrySend(name, &wire.Frame{Kind: wire.User, Head: m}); err != nil {
			l.number = 0 // it hears all again
			return
		}
		fresh = fresh[n:]
	}
	l.number = number
}

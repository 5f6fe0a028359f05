package node

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/gradwire/gradwire/cluster/submission"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

const (
	// maxNews is how many submissions one message tells of.
	maxNews = 100
	// maxOthersKnown is of how many processes something is remembered, and maxAway how many of
	// their submissions are told.
	maxOthersKnown = 1024
	maxAway        = 500
	// tellAgain is how soon it is tried again to tell a process that could not be told.
	tellAgain = time.Second
)

// others is what a process knows of the others by what they have told of themselves. It outlives
// their absence.
type others struct {
	mu     sync.Mutex
	known  map[string]*other
	wake   chan struct{} // has room for one: there is something to tell
	number uint64        // of the latest change here
}

// other is a process that has told something.
type other struct {
	expires     int64 // its certificate, in s since 1970; 0 without one
	submissions map[string]*protos.Submission
	away        time.Time // since when it is; zero while it is there
	why         string
}

// learn takes note of what a process tells.
func (o *others) learn(name string, m *protos.News) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.known[name]
	if of == nil {
		if len(o.known) == maxOthersKnown {
			return
		}
		of = &other{}
		o.known[name] = of
	}
	if m.First || of.submissions == nil {
		of.submissions = map[string]*protos.Submission{}
	}
	of.expires = m.Expires
	for _, s := range m.Submissions {
		if len(of.submissions) < submission.MaxKept || of.submissions[s.Id] != nil {
			s.Process = name
			of.submissions[s.Id] = s
		}
	}
}

// left takes note that a process is away.
func (o *others) left(name, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of := o.known[name]; of != nil && of.away.IsZero() {
		of.away, of.why = time.Now(), why
	}
}

// back takes note that a process is there.
func (o *others) back(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of := o.known[name]; of != nil {
		of.away, of.why = time.Time{}, ""
	}
}

// away are the submissions of processes that are away, as they were when these said so last.
func (o *others) away() (all []*protos.Submission) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, of := range o.known {
		if of.away.IsZero() {
			continue
		}
		for _, s := range of.submissions {
			all = append(all, &protos.Submission{
				Id: s.Id, Plan: s.Plan, Process: s.Process, By: s.By, State: s.State, Done: s.Done, Total: s.Total,
				Share: s.Share,
				Error: s.Error, Submitted: s.Submitted, Insecure: s.Insecure, Folder: s.Folder,
				Away: of.away.UnixNano(), Why: of.why,
			})
		}
	}
	slices.SortFunc(all, func(a, b *protos.Submission) int {
		return cmp.Or(cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.Id, b.Id))
	})
	return all[max(len(all)-maxAway, 0):]
}

// expires is when the certificate of another process does, in s since 1970; 0 if that is not known.
func (o *others) expires(name string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of := o.known[name]; of != nil {
		return of.expires
	}
	return 0
}

// latest is the number of the latest change here.
func (o *others) latest() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.number
}

// changed has the other processes told what has changed here; it returns the number of the change.
func (o *others) changed() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.number++
	select {
	case o.wake <- struct{}{}:
	default: // it is known already
	}
	return o.number
}

// edition is what makes all that was told before void when it changes.
type edition struct {
	removed int   // how many submissions were
	expires int64 // the certificate, in s since 1970
}

// listener is another process, and what it was told.
type listener struct {
	edition
	connections uint64 // with it when it was told first
	number      uint64 // of the latest change that it knows
	begun       bool
}

// spread tells the other processes of this one's submissions: each all of them when there is a new
// connection with it, and then what changes. It is the one goroutine that does, so that nothing is
// told in another order.
func (p *process) spread() {
	listeners := map[string]*listener{}
	retry := time.NewTicker(tellAgain)
	defer retry.Stop()
	for {
		number := p.others.latest() // before the submissions are looked at: rather told twice than not at all
		submissions, removed := p.queue.All()
		now := edition{removed, p.expires()}
		present := map[string]bool{}
		for _, s := range p.node.Peers() {
			if s.State != transport.Up {
				continue
			}
			present[s.Peer.Name] = true
			l := listeners[s.Peer.Name]
			if l == nil || l.connections != s.Connections || l.edition != now {
				l = &listener{edition: now, connections: s.Connections}
				listeners[s.Peer.Name] = l
			}
			if !l.begun || l.number < number {
				p.inform(s.Peer.Name, l, submissions, number)
			}
		}
		for name := range listeners {
			if !present[name] {
				delete(listeners, name)
			}
		}
		select {
		case <-p.others.wake:
		case <-retry.C:
		case <-p.stop.Done():
			return
		}
	}
}

// inform tells one process what has changed since it was told last, up to the change of that
// number. What it cannot be told now it is later.
func (p *process) inform(name string, l *listener, submissions []*submission.Submission, number uint64) {
	var fresh []*protos.Submission
	for _, s := range submissions {
		if m, noted := s.News(); noted > l.number || !l.begun {
			fresh = append(fresh, m)
		}
	}
	for !l.begun || len(fresh) > 0 {
		n := min(len(fresh), maxNews)
		m := &protos.News{Submissions: fresh[:n], Expires: l.expires, First: !l.begun}
		if err := p.node.TrySend(name, &wire.Frame{Kind: wire.User, Head: m}); err != nil {
			l.begun = false // it hears all again
			return
		}
		l.begun, fresh = true, fresh[n:]
	}
	l.number = number
}

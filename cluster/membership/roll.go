package membership

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/gradwire/gradwire/cluster/protocol"
)

// Bounds of what is remembered.
const (
	// maxDeparted is how many nodes that are no longer here are remembered, so that they
	// can be told from new ones and called upon. The longest gone is forgotten first.
	maxDeparted = 1024
	// maxEvents is how many events wait for Notify.
	maxEvents = 4096
)

// Kind says what happened.
type Kind uint8

// The kinds of events. For each process they come in the order
// (Joined (Failed Returned)* Left?)*, with or without a Failed at the end.
const (
	// Joined: a process that is new, or that had left.
	Joined Kind = iota + 1
	// Left: it left the cluster, announced.
	Left
	// Failed: it crashed or cannot be reached. Others have given it up, and it does not answer this
	// process's calls either.
	Failed
	// Returned: a process that had failed is a member again. Its incarnation tells a restart
	// (higher) from a partition that has ended (the same).
	Returned
	// Missed: events were dropped, because Notify did not return for so long that more
	// than 4,096 waited. The view is right.
	Missed
	// Refused: the cluster does not admit a process, because it speaks another protocol.
	// Event.Reason is the error.
	Refused
)

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{"none", "joined", "left", "failed", "returned", "missed", "refused"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Member is a node that is here.
type Member struct {
	Name string
	Meta Meta
	// Gossip is where its packets and streams of gossip go.
	Gossip netip.AddrPort
	// Leaves says that the process prepares to leave and accepts no new work.
	Leaves bool
}

// View is who was here after a number of changes that this node heard of. Numbers of different
// nodes have nothing to do with each other. Whom memberlist has given up is in it until it is
// certain that it has failed. A view is shared and must not be modified.
type View struct {
	Number uint64
	// Members are ordered by name, this node among them.
	Members []Member
}

// Event is a change that this node heard of. There are none about the node itself.
type Event struct {
	Kind Kind
	// Member is the node as it was last known. For Left and Failed that is its state before.
	Member Member
	// View is the number of the first view that contains the change.
	View uint64
	// Missed is how many events were dropped, for the kind of that name.
	Missed int
	// Reason is the error of a Refused event.
	Reason error
}

type standing uint8

const (
	present standing = iota
	departed
	lost
)

// entry is what the roll knows of a name.
type entry struct {
	Member
	leaving  bool
	standing standing
	changed  uint64 // the view in which the standing last changed
	doubt    uint64 // of a node that is present, but not by memberlist; 0 is none
}

// roll is the list of who is here, as memberlist's callbacks tell it, and the events
// that follow. It never calls memberlist, which holds its lock while it calls.
type roll struct {
	self string
	wake chan struct{} // has room for one: there are events
	lost chan struct{} // has room for one: a node has failed
	// doubted has room for one: there are doubts.
	doubted chan struct{}

	mu       sync.Mutex
	number   uint64
	entries  map[string]*entry
	gone     int // entries that are not present
	view     *View
	queue    []Event
	missed   int
	doubtful []doubt
	raised   uint64            // doubts so far
	foreign  map[string]string // error texts of refused processes, by name
}

func newRoll(self string) *roll {
	return &roll{
		self: self, wake: make(chan struct{}, 1), lost: make(chan struct{}, 1), doubted: make(chan struct{}, 1),
		entries: map[string]*entry{}, foreign: map[string]string{},
	}
}

// maxForeign bounds the refused processes that a node remembers.
const maxForeign = 32

// refuse records a refused process if err is about its protocol, and returns err.
func (r *roll) refuse(err error) error {
	var other *protocol.Error
	if !errors.As(err, &other) || other.Name == r.self {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreign[other.Name] != err.Error() && len(r.foreign) < maxForeign {
		r.foreign[other.Name] = err.Error()
		r.publish(Event{Kind: Refused, Member: Member{Name: other.Name}, View: r.number, Reason: err})
	}
	return err
}

// refused returns the error texts of the refused processes.
func (r *roll) refused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Values(r.foreign))
}

// appeared enters a node of which memberlist says that it is here now.
func (r *roll) appeared(m Member, leaving bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[m.Name]
	if e == nil {
		e = &entry{standing: departed}
		r.entries[m.Name] = e
		r.gone++
	}
	kind := Joined
	switch e.standing {
	case present:
		r.replace(e, m, leaving)
		return
	case lost:
		kind = Returned
	}
	r.gone--
	r.set(e, m, leaving, present, kind)
}

// changed hears what a node that is here says of itself now: that it leaves, or that it has been
// started again.
func (r *roll) changed(m Member, leaving bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[m.Name]; e != nil && e.standing == present {
		r.replace(e, m, leaving)
	}
}

// replace changes an entry that is present. A node that was restarted before its crash
// was noticed has failed and returned.
func (r *roll) replace(e *entry, m Member, leaving bool) {
	e.doubt = 0
	if m.Meta.Incarnation != e.Meta.Incarnation {
		r.set(e, e.Member, false, lost, Failed)
		r.set(e, m, leaving, present, Returned)
		return
	}
	e.leaving = leaving
	if e.Leaves != m.Leaves {
		e.Leaves, r.view = m.Leaves, nil
	}
}

// vanished takes note that memberlist has given a node up. Unless that was to be expected it stays
// for as long as there is doubt.
func (r *roll) vanished(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	if e == nil || e.standing != present {
		return
	}
	if e.leaving || name == r.self {
		r.remove(e, departed, Left)
		return
	}
	r.raised++
	e.doubt = r.raised
	r.doubtful = append(r.doubtful, doubt{e.Member, e.doubt})
	signal(r.doubted)
}

// doubts takes those that have come up.
func (r *roll) doubts() []doubt {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.doubtful
	r.doubtful = nil
	return all
}

// pending says whether a doubt is neither confirmed nor dispelled.
func (r *roll) pending(d doubt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[d.Name]
	return e != nil && e.doubt == d.number
}

// confirm marks a node as failed if the doubt about it is pending.
func (r *roll) confirm(d doubt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[d.Name]; e != nil && e.doubt == d.number {
		r.remove(e, lost, Failed)
		signal(r.lost)
	}
}

// remove marks a node as gone.
func (r *roll) remove(e *entry, s standing, kind Kind) {
	e.doubt = 0
	r.gone++
	r.set(e, e.Member, s == departed, s, kind)
	if r.gone > maxDeparted {
		r.dropOldestAbsent()
	}
}

// set changes an entry, begins a new view and publishes the event.
func (r *roll) set(e *entry, m Member, leaving bool, s standing, kind Kind) {
	r.number++
	r.view = nil
	e.Member, e.leaving, e.standing, e.changed = m, leaving, s, r.number
	delete(r.foreign, m.Name)
	if m.Name == r.self {
		return
	}
	r.publish(Event{Kind: kind, Member: m, View: r.number})
}

// publish queues an event for Notify. It drops the oldest one if the queue is full.
func (r *roll) publish(e Event) {
	if len(r.queue) == maxEvents {
		r.queue = r.queue[1:]
		r.missed++
	}
	r.queue = append(r.queue, e)
	signal(r.wake)
}

// dropOldestAbsent drops the entry of the node that has been gone for longest.
func (r *roll) dropOldestAbsent() {
	var oldest *entry
	for _, e := range r.entries {
		if e.standing != present && (oldest == nil || e.changed < oldest.changed) {
			oldest = e
		}
	}
	delete(r.entries, oldest.Name)
	r.gone--
}

// next takes the event that has waited longest.
func (r *roll) next() (Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missed > 0 {
		e := Event{Kind: Missed, View: r.number, Missed: r.missed}
		r.missed = 0
		return e, true
	}
	if len(r.queue) == 0 {
		return Event{}, false
	}
	e := r.queue[0]
	r.queue = r.queue[1:]
	return e, true
}

// deliver calls notify with every event until closing is closed.
func (r *roll) deliver(notify func(Event), closing <-chan struct{}) {
	for {
		select {
		case <-closing:
			return
		case <-r.wake:
		}
		for e, ok := r.next(); ok; e, ok = r.next() {
			select {
			case <-closing:
				return
			default:
				notify(e)
			}
		}
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// snapshot returns the current view.
func (r *roll) snapshot() View {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		v := &View{Number: r.number}
		for _, e := range r.entries {
			if e.standing == present {
				v.Members = append(v.Members, e.Member)
			}
		}
		slices.SortFunc(v.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		r.view = v
	}
	return *r.view
}

// stale says whether a node of that name and of a later incarnation is here.
func (r *roll) stale(name string, incarnation uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	return e != nil && e.standing == present && name != r.self && incarnation < e.Meta.Incarnation
}

// failed returns where the nodes that have failed were last.
func (r *roll) failed() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	var where []netip.AddrPort
	for _, e := range r.entries {
		if e.standing == lost {
			where = append(where, e.Gossip)
		}
	}
	return where
}

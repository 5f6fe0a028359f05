package driver

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

const (
	// flushEvery is how long events wait to be sent to the process that records them.
	flushEvery = 50 * time.Millisecond
	// maxBatch is how many events, or edges, one message carries: some 100 KB.
	maxBatch = 1000
	// maxUnsent is how many events wait at most.
	maxUnsent = 1 << 20
)

// forwarder sends what the nodes of a process record to the process that conducts the run.
type forwarder struct {
	hosted *hosted
	stage  *stage
	sent   map[[2]string]record.Link // as of the latest message

	mu     sync.Mutex
	events []*protos.RunEvent
}

var _ world.Observer = (*forwarder)(nil)

func newForwarder(h *hosted, s *stage) *forwarder {
	return &forwarder{hosted: h, stage: s, sent: map[[2]string]record.Link{}}
}

// Observe keeps an event until it is sent.
func (f *forwarder) Observe(at time.Duration, node int, e actors.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) == maxUnsent {
		f.hosted.end(errors.New("more than a million events wait to be sent to the process that records them"))
		return
	}
	f.events = append(f.events, wireEvent(at, node, &e))
}

// flush sends what there is every now and then, and all that is left when done is closed.
func (f *forwarder) flush(done <-chan struct{}) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-done:
			over = true
		}
		f.send()
	}
}

// send sends what there is in as many messages as it takes; the last one says until when nothing is missing.
func (f *forwarder) send() {
	f.mu.Lock()
	until := f.hosted.world.Load().Now()
	events := f.events
	f.events = nil
	f.mu.Unlock()
	edges := f.changedEdges()
	for {
		m := &protos.RunEvents{Events: events[:min(len(events), maxBatch)], Edges: edges[:min(len(edges), maxBatch)]}
		events, edges = events[len(m.Events):], edges[len(m.Edges):]
		last := len(events) == 0 && len(edges) == 0
		if last {
			m.Until = int64(max(until, 1))
		}
		f.hosted.tellLead(m)
		if last {
			return
		}
	}
}

func (f *forwarder) changedEdges() (changed []*protos.EdgeCounters) {
	for _, l := range f.stage.ownLinks() {
		key := [2]string{l.From, l.To}
		if f.sent[key] != l {
			f.sent[key] = l
			changed = append(changed, wireEdge(&l))
		}
	}
	return changed
}

// gatherer brings the events of all processes of a run into the order of time before they are recorded, so
// that what was counted at the instant of a snapshot is what had happened then. Times are those of this process's
// clock. Another's is taken to have started when it was told to: it did so a little later, so that an event
// never seems later than what it has led to here.
type gatherer struct {
	to  world.Observer
	now func() time.Duration

	mu      sync.Mutex
	until   map[string]time.Duration // of each other process: nothing up to then is missing
	begins  map[string]beginning     // of each other process
	held    map[string][]gathered    // of each other process: what it has not said until when
	waiting []gathered
	links   map[[2]string]record.Link // of the other processes
	steps   steps
}

// beginning is when a process was told to start its clock, and what that was to show.
type beginning struct {
	told  time.Time
	shows time.Duration
}

type gathered struct {
	at    time.Duration
	node  int
	event actors.Event
}

var _ world.Observer = (*gatherer)(nil)

func newGatherer(to world.Observer, now func() time.Duration, others []string) *gatherer {
	g := &gatherer{
		to: to, now: now, until: map[string]time.Duration{}, begins: map[string]beginning{}, held: map[string][]gathered{},
		links: map[[2]string]record.Link{}, steps: steps{},
	}
	for _, name := range others {
		g.until[name] = 0 // from now on this process's own events wait
	}
	return g
}

// Observe takes in an event of this process.
func (g *gatherer) Observe(at time.Duration, node int, e actors.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.until) == 0 {
		g.record(gathered{at, node, e})
		return
	}
	g.waiting = append(g.waiting, gathered{at, node, e})
}

// add takes in what another process has sent. Nodes that the run does not have count as the coordinator.
func (g *gatherer) add(name string, m *protos.RunEvents) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.until[name]; !there {
		return
	}
	for _, e := range m.Events {
		g.held[name] = append(g.held[name], gathered{time.Duration(e.Time), int(e.Node), eventOf(e)})
	}
	for _, e := range m.Edges {
		l := linkFrom(e)
		g.links[[2]string{l.From, l.To}] = l
	}
	if m.Until == 0 {
		return
	}
	// The two clocks are read one after the other, which moves an event by less than it is long.
	begin := g.begins[name]
	behind := g.now() - time.Since(begin.told) - begin.shows
	g.until[name] = time.Duration(m.Until) + behind
	for _, e := range g.held[name] {
		e.at = max(e.at+behind, 0)
		g.waiting = append(g.waiting, e)
	}
	g.held[name] = g.held[name][:0]
	g.release()
}

// enter takes note that another process, or a new one in its place, is told to start its clock.
func (g *gatherer) enter(name string, shows time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until[name] = shows
	g.begins[name] = beginning{time.Now(), shows}
}

// leave takes note that nothing more will come from a process.
func (g *gatherer) leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.until, name)
	delete(g.held, name)
	g.release()
}

// release records what nothing earlier can come after any more. What is recorded does not look at the gatherer.
func (g *gatherer) release() {
	limit := time.Duration(math.MaxInt64)
	for _, until := range g.until {
		limit = min(limit, until)
	}
	slices.SortStableFunc(g.waiting, func(a, b gathered) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for ; n < len(g.waiting) && g.waiting[n].at <= limit; n++ {
		g.record(g.waiting[n])
	}
	g.waiting = slices.Delete(g.waiting, 0, n)
}

func (g *gatherer) record(e gathered) {
	g.steps.take(&e)
	g.to.Observe(e.at, e.node, e.event)
}

// interrupted takes note that nodes do not make steps now for a reason that is known: until then, and after it, their
// steps say nothing of how long one takes. Without nodes it is about all of them.
func (g *gatherer) interrupted(at time.Duration, nodes ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps.interrupt(at, nodes...)
}

// pace returns what is known of a node's steps, and the longest time between two of any node.
func (g *gatherer) pace(node int) (p pace, longest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.steps {
		longest = max(longest, other.longest)
	}
	if known := g.steps[node]; known != nil {
		p = *known
	}
	return p, longest
}

// elsewhere are the counters of the edges that begin in other processes, in no order. It is called by what is recorded, with
// g.mu held.
func (g *gatherer) elsewhere() []record.Link { return slices.Collect(maps.Values(g.links)) }

func wireEvent(at time.Duration, node int, e *actors.Event) *protos.RunEvent {
	return &protos.RunEvent{
		Time: int64(at), Node: int32(node), Kind: uint32(e.Kind), Step: e.Step, Samples: int64(e.Samples), Loss: e.Loss,
		Version: e.Version, Staleness: e.Staleness, Origin: int32(e.Origin), Duration: int64(e.Duration), Cause: e.Cause,
		Evaluation: e.Evaluation, At: int64(e.At), Dated: e.Dated, Epoch: e.Epoch, Accuracy: e.Accuracy, Name: e.Name, Value: e.Value,
	}
}

func eventOf(e *protos.RunEvent) actors.Event {
	return actors.Event{
		Kind: actors.EventKind(e.Kind), Step: e.Step, Samples: int(e.Samples), Loss: e.Loss,
		Version: e.Version, Staleness: e.Staleness, Origin: int(e.Origin), Duration: time.Duration(e.Duration), Cause: e.Cause,
		Evaluation: e.Evaluation, At: time.Duration(e.At), Dated: e.Dated, Epoch: e.Epoch, Accuracy: e.Accuracy, Name: e.Name, Value: e.Value,
	}
}

func wireEdge(l *record.Link) *protos.EdgeCounters {
	return &protos.EdgeCounters{
		From: l.From, To: l.To, Messages: l.Messages, Bytes: l.Bytes, DelayAsked: l.DelayAsked, DelayAchieved: l.DelayAchieved,
		Lost: l.Lost, Control: l.Control, ControlBytes: l.ControlBytes,
	}
}

func linkFrom(e *protos.EdgeCounters) record.Link {
	return record.Link{
		From: e.From, To: e.To, Messages: e.Messages, Bytes: e.Bytes, DelayAsked: e.DelayAsked, DelayAchieved: e.DelayAchieved,
		Lost: e.Lost, Control: e.Control, ControlBytes: e.ControlBytes,
	}
}

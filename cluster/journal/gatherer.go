package journal

import (
	"cmp"
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

// Gatherer brings the events of all processes of a run into the order of time before they are
// recorded, so that what was counted at the instant of a snapshot is what had happened then. Times
// are on this process's clock. It assumes that another process's clock started when that process
// was told to start it. In truth the clock started a little later, so that an event never seems
// later than its effects here.
type Gatherer struct {
	to  world.Observer
	now func() time.Duration

	mu      sync.Mutex
	sources map[string]*source // the other processes
	waiting []world.Recorded
	cut     uint64                               // the latest that has begun
	tail    []world.Recorded                     // what waited then, and has come since from nodes not saved for it
	links   map[string]map[[2]string]record.Link // of the other processes, by process
	past    []record.Link                        // of lives of them that are over
}

// source is another process.
type source struct {
	until time.Duration // nothing up to then is missing
	told  time.Time     // when it was told to start its clock
	shows time.Duration // what its clock was to show then
	held  []gathered    // what it has not said until when
}

// gathered is an event of a node that had been saved so often.
type gathered struct {
	world.Recorded
	saved uint64
}

var _ world.Observer = (*Gatherer)(nil)

// NewGatherer returns the gatherer of a run that takes place in this process, where now is what its
// clock shows, and in others. What has come from all of them until then it passes on to an
// observer.
func NewGatherer(to world.Observer, now func() time.Duration, others []string) *Gatherer {
	g := &Gatherer{
		to: to, now: now, sources: map[string]*source{}, links: map[string]map[[2]string]record.Link{},
	}
	for _, name := range others {
		g.sources[name] = &source{} // from now on this process's own events wait
	}
	return g
}

// Observe takes in an event of this process.
func (g *Gatherer) Observe(at time.Duration, node int, e actors.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sources) == 0 {
		g.to.Observe(at, node, e)
		return
	}
	g.waiting = append(g.waiting, world.Recorded{At: at, Node: node, Event: e})
}

// Add takes in what another process has sent. Nodes that the run does not have count as the
// coordinator.
func (g *Gatherer) Add(name string, m *protos.RunEvents) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sources[name]
	if s == nil {
		return
	}
	for _, e := range m.Events {
		r := world.Recorded{At: time.Duration(e.Time), Node: int(e.Node), Event: eventOf(e)}
		s.held = append(s.held, gathered{r, e.Saved})
	}
	for _, e := range m.Edges {
		g.count(name, linkFrom(e))
	}
	if m.Until == 0 {
		return
	}
	// The two clocks are read one after the other, which moves an event by less than it is long.
	behind := g.now() - time.Since(s.told) - s.shows
	s.until = time.Duration(m.Until) + behind
	g.take(s, behind)
	g.release()
}

// take has what a source has said wait with all others, its clock being behind.
func (g *Gatherer) take(s *source, behind time.Duration) {
	for _, e := range s.held {
		e.At = max(e.At+behind, 0)
		g.waiting = append(g.waiting, e.Recorded)
		if e.saved < g.cut {
			g.tail = append(g.tail, e.Recorded)
		}
	}
	s.held = s.held[:0]
}

// takeAll has all that has come in wait.
func (g *Gatherer) takeAll() {
	for _, s := range g.sources {
		g.take(s, g.now()-time.Since(s.told)-s.shows)
	}
}

// Held calls a function while nothing comes in, when a cut begins: no node has been saved for it
// yet.
func (g *Gatherer) Held(cut uint64, do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeAll()
	g.cut, g.tail = cut, slices.Clone(g.waiting)
	do()
}

// Tail returns the events that belong to the latest cut and were not recorded when it began: those
// that waited then, and those that have come from nodes of other processes that had not been saved.
func (g *Gatherer) Tail() (tail []world.Recorded) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeAll()
	tail, g.tail = g.tail, nil
	return tail
}

// count takes in the counters of an edge. A process may go over to count all edges of a sender
// together, which then stand for those that were counted one by one.
func (g *Gatherer) count(name string, l record.Link) {
	links, key := g.links[name], [2]string{l.From, l.To}
	if links == nil {
		links = map[[2]string]record.Link{}
		g.links[name] = links
	}
	if _, known := links[key]; !known && l.To == record.Everyone {
		maps.DeleteFunc(links, func(other [2]string, _ record.Link) bool { return other[0] == l.From })
	}
	links[key] = l
}

// Started takes note that another process, or a new one in its place, is told to start its clock.
func (g *Gatherer) Started(name string, shows time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended(name)
	g.past = slices.AppendSeq(g.past, maps.Values(g.links[name]))
	delete(g.links, name)
	g.sources[name] = &source{until: shows, told: time.Now(), shows: shows}
}

// Gone takes note that nothing more will come from a process.
func (g *Gatherer) Gone(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended(name)
	g.release()
}

// ended has what a source has said wait with all others, and waits for nothing more of it.
func (g *Gatherer) ended(name string) {
	if s := g.sources[name]; s != nil {
		g.take(s, g.now()-time.Since(s.told)-s.shows)
		delete(g.sources, name)
	}
}

// release records the events that no earlier event can follow. The observer must not call the
// gatherer.
func (g *Gatherer) release() {
	limit := time.Duration(math.MaxInt64)
	for _, s := range g.sources {
		limit = min(limit, s.until)
	}
	slices.SortStableFunc(g.waiting, func(a, b world.Recorded) int { return cmp.Compare(a.At, b.At) })
	n := 0
	for ; n < len(g.waiting) && g.waiting[n].At <= limit; n++ {
		e := &g.waiting[n]
		g.to.Observe(e.At, e.Node, e.Event)
	}
	g.waiting = slices.Delete(g.waiting, 0, n)
}

// Elsewhere are the counters of the edges that begin in other processes, in no order: of their
// present lives, and of former ones. It is called by what is recorded, with g.mu held.
func (g *Gatherer) Elsewhere() (now, former []record.Link) {
	for _, of := range g.links {
		now = slices.AppendSeq(now, maps.Values(of))
	}
	return now, slices.Clone(g.past)
}

// WireEvent is an event as it travels, of a node that had been saved so often.
func WireEvent(at time.Duration, node int, saved uint64, e *actors.Event) *protos.RunEvent {
	return &protos.RunEvent{
		Time: int64(at), Node: int32(node), Saved: saved,
		Kind: uint32(e.Kind), Step: e.Step, Samples: int64(e.Samples), Loss: e.Loss,
		Version: e.Version, Staleness: e.Staleness, Origin: int32(e.Origin), Duration: int64(e.Duration),
		Cause:      e.Cause,
		Evaluation: e.Evaluation, At: int64(e.At), Dated: e.Dated, Epoch: e.Epoch, Accuracy: e.Accuracy, Name: e.Name,
		Value: e.Value, Shard: e.Shard, Life: e.Life, Push: e.Push,
	}
}

func eventOf(e *protos.RunEvent) actors.Event {
	return actors.Event{
		Kind: actors.EventKind(e.Kind), Step: e.Step, Samples: int(e.Samples), Loss: e.Loss,
		Version: e.Version, Staleness: e.Staleness, Origin: int(e.Origin), Duration: time.Duration(e.Duration),
		Cause:      e.Cause,
		Evaluation: e.Evaluation, At: time.Duration(e.At), Dated: e.Dated, Epoch: e.Epoch, Accuracy: e.Accuracy,
		Name: e.Name, Value: e.Value, Shard: e.Shard, Life: e.Life, Push: e.Push,
	}
}

// WireEdge is the counters of an edge as they travel.
func WireEdge(l *record.Link) *protos.EdgeCounters {
	return &protos.EdgeCounters{
		From: l.From, To: l.To, Messages: l.Messages, Bytes: l.Bytes, DelayAsked: l.DelayAsked,
		DelayAchieved: l.DelayAchieved,
		Lost:          l.Lost, Control: l.Control, ControlBytes: l.ControlBytes,
	}
}

func linkFrom(e *protos.EdgeCounters) record.Link {
	return record.Link{
		From: e.From, To: e.To, Messages: e.Messages, Bytes: e.Bytes, DelayAsked: e.DelayAsked,
		DelayAchieved: e.DelayAchieved,
		Lost:          e.Lost, Control: e.Control, ControlBytes: e.ControlBytes,
	}
}

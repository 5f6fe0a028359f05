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
	until   map[string]time.Duration // of each other process: nothing up to then is missing
	begins  map[string]beginning     // of each other process
	held    map[string][]gathered    // of each other process: what it has not said until when
	waiting []gathered
	links   map[[2]string]record.Link // of the other processes
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

var _ world.Observer = (*Gatherer)(nil)

// NewGatherer returns the gatherer of a run that takes place in this process, where now is what its
// clock shows, and in others. What has come from all of them until then it passes on to an
// observer.
func NewGatherer(to world.Observer, now func() time.Duration, others []string) *Gatherer {
	g := &Gatherer{
		to: to, now: now, until: map[string]time.Duration{}, begins: map[string]beginning{},
		held:  map[string][]gathered{},
		links: map[[2]string]record.Link{},
	}
	for _, name := range others {
		g.until[name] = 0 // from now on this process's own events wait
	}
	return g
}

// Observe takes in an event of this process.
func (g *Gatherer) Observe(at time.Duration, node int, e actors.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.until) == 0 {
		g.to.Observe(at, node, e)
		return
	}
	g.waiting = append(g.waiting, gathered{at, node, e})
}

// Add takes in what another process has sent. Nodes that the run does not have count as the
// coordinator.
func (g *Gatherer) Add(name string, m *protos.RunEvents) {
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

// Enter takes note that another process, or a new one in its place, is told to start its clock.
func (g *Gatherer) Enter(name string, shows time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until[name] = shows
	g.begins[name] = beginning{time.Now(), shows}
}

// Leave takes note that nothing more will come from a process.
func (g *Gatherer) Leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.until, name)
	delete(g.held, name)
	g.release()
}

// release records the events that no earlier event can follow. The observer must not call the
// gatherer.
func (g *Gatherer) release() {
	limit := time.Duration(math.MaxInt64)
	for _, until := range g.until {
		limit = min(limit, until)
	}
	slices.SortStableFunc(g.waiting, func(a, b gathered) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for ; n < len(g.waiting) && g.waiting[n].at <= limit; n++ {
		e := &g.waiting[n]
		g.to.Observe(e.at, e.node, e.event)
	}
	g.waiting = slices.Delete(g.waiting, 0, n)
}

// Elsewhere are the counters of the edges that begin in other processes, in no order. It is called
// by what is recorded, with g.mu held.
func (g *Gatherer) Elsewhere() []record.Link { return slices.Collect(maps.Values(g.links)) }

// WireEvent is an event as it travels.
func WireEvent(at time.Duration, node int, e *actors.Event) *protos.RunEvent {
	return &protos.RunEvent{
		Time: int64(at), Node: int32(node), Kind: uint32(e.Kind), Step: e.Step, Samples: int64(e.Samples), Loss: e.Loss,
		Version: e.Version, Staleness: e.Staleness, Origin: int32(e.Origin), Duration: int64(e.Duration),
		Cause:      e.Cause,
		Evaluation: e.Evaluation, At: int64(e.At), Dated: e.Dated, Epoch: e.Epoch, Accuracy: e.Accuracy, Name: e.Name,
		Value: e.Value,
	}
}

func eventOf(e *protos.RunEvent) actors.Event {
	return actors.Event{
		Kind: actors.EventKind(e.Kind), Step: e.Step, Samples: int(e.Samples), Loss: e.Loss,
		Version: e.Version, Staleness: e.Staleness, Origin: int(e.Origin), Duration: time.Duration(e.Duration),
		Cause:      e.Cause,
		Evaluation: e.Evaluation, At: time.Duration(e.At), Dated: e.Dated, Epoch: e.Epoch, Accuracy: e.Accuracy,
		Name: e.Name, Value: e.Value,
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

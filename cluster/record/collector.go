package record

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

// Config says what a Collector observes.
type Config struct {
	// Nodes are the names of the run's nodes, by their number.
	Nodes []string
	// Trains says of each node, by the same number, whether it is there to train. Such nodes are in
	// Data.Updates even if they have done nothing; others if they have trained or waited.
	Trains []bool
	// Holds says of each node, by the same number, whether it holds a model that is judged. Nil:
	// none does.
	Holds []bool
	// Until is the time bound of the run; 0 without one. Nodes handle messages that waited behind a
	// pause or a long step after it, before the last evaluation. That is no progress.
	Until time.Duration
	// Links returns the counters of every used edge at this instant, cumulative since
	// the run began. It is called with each snapshot. Nil: no edges.
	Links func() []Link
	// Events receives each event as a line of JSON. Nil: events are not kept.
	Events io.Writer
	// OnEvaluation, if not nil, is called with each evaluation as it comes in.
	OnEvaluation func(Evaluation)
}

const (
	// maxCauses bounds the causes of waiting that are counted one by one at a node; further ones
	// are counted as "other".
	maxCauses = 64
	// MaxMeasured is the most measurements of a run that are kept; further ones are counted.
	MaxMeasured = 100_000
)

// tally counts what a node has done.
type tally struct {
	steps, samples uint64
	ages           ages
	merged         ages          // of models
	last           time.Duration // instant of the last step
	update         time.Duration // of the last update of the judged model that the node holds
	learned        bool          // there was such an update
	overtime       bool          // there was one after Config.Until
	waits          []waits
	chosen         []choice
}

// node is a node's tally, which many goroutines may add to.
type node struct {
	mu sync.Mutex
	tally
	pace   world.Pace
	latest uint64        // step, as the node counts
	places map[int32]int // of a neighbour in chosen
	_      [64]byte      // nodes on different cores must not share a cache line
}

// choice counts how often a neighbour was chosen.
type choice struct {
	neighbour int32
	count     uint64
}

// measurement is an event of kind Measured.
type measurement struct {
	at    time.Duration
	node  int
	name  string
	value float64
}

// mark is a copy of all counters at the instant of a snapshot.
type mark struct {
	evaluation uint64
	at         time.Duration
	nodes      []tally
	links      []Link
	bytes      int64 // of all links
	unmeasured uint64
}

// Collector observes a run. Its methods may be called from many goroutines.
type Collector struct {
	config Config
	nodes  []node

	mu         sync.Mutex // guards what follows
	marks      []mark     // by rising number of evaluation
	spare      [][]tally  // tallies of dropped marks, for reuse
	curve      []Evaluation
	models     []ModelVerdict
	measured   []measurement
	unmeasured uint64 // measurements beyond MaxMeasured

	events *eventWriter
}

var _ world.Observer = (*Collector)(nil)

const trainsNotNodes = "record: Config.Trains must have as many elements as Config.Nodes"

// NewCollector makes a collector of a run that has not begun.
func NewCollector(config Config) *Collector {
	if len(config.Trains) != len(config.Nodes) {
		panic(trainsNotNodes)
	}
	c := &Collector{config: config, nodes: make([]node, len(config.Nodes))}
	if config.Events != nil {
		c.events = newEventWriter(config.Events, config.Nodes)
	}
	return c
}

// Observe takes in an event of the node of the given number. Numbers outside
// Config.Nodes stand for the coordinator: its measurements are kept, but it is counted nowhere.
func (c *Collector) Observe(at time.Duration, number int, event actors.Event) {
	if c.events != nil {
		c.events.write(at, number, &event)
	}
	switch event.Kind {
	case actors.StepDone, actors.Waited:
		if n := c.node(number); n != nil {
			n.count(at, &event, c.overtime(at))
		}
	case actors.UpdateApplied:
		if n := c.node(event.Origin); n != nil {
			n.count(at, &event, c.overtime(at))
		}
		if n := c.node(number); n != nil && c.config.Holds != nil && c.config.Holds[number] {
			n.learn(at, c.config.Trains[number], c.overtime(at))
		}
	case actors.SnapshotTaken:
		c.addMark(at, event.Evaluation)
	case actors.Evaluated:
		c.evaluated(&event)
	case actors.Summarized:
		c.summarized(&event)
	case actors.Measured:
		c.measure(at, number, &event)
	case actors.Merged:
		if n, origin := c.node(number), c.node(event.Origin); n != nil && origin != nil {
			n.merge(origin.since(event.Step))
		}
	case actors.Selected:
		if n := c.node(number); n != nil && c.node(event.Origin) != nil {
			n.choose(c.neighbour(event.Origin))
		}
	}
}

// overtime reports whether an instant is after the run's time bound.
func (c *Collector) overtime(at time.Duration) bool { return c.config.Until > 0 && at > c.config.Until }

func (c *Collector) node(number int) *node {
	if number < 0 || number >= len(c.nodes) {
		return nil
	}
	return &c.nodes[number]
}

// Paces returns the paces of all nodes until now, by their number, and the longest step of any. A
// node that holds a judged model and does not train keeps the pace of that model's updates.
func (c *Collector) Paces() (all []world.Pace, longest time.Duration) {
	for i := range c.nodes {
		n := &c.nodes[i]
		n.mu.Lock()
		all = append(all, n.pace)
		n.mu.Unlock()
		if c.config.Holds == nil || !c.config.Holds[i] || c.config.Trains[i] {
			longest = max(longest, all[i].Longest)
		}
	}
	return all, longest
}

// Interrupted takes note that nodes make no steps now for a reason that is known; without nodes,
// all of them. See world.Pace.
func (c *Collector) Interrupted(at time.Duration, nodes ...int) {
	for i := range c.nodes {
		if len(nodes) == 0 || slices.Contains(nodes, i) {
			n := &c.nodes[i]
			n.mu.Lock()
			n.pace.Interrupt(at)
			n.mu.Unlock()
		}
	}
}

// since returns how many steps a node has made beyond a number of steps.
func (n *node) since(steps uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(n.latest, steps) - steps
}

// learn notes an update of the judged model that the node holds. A node that trains keeps the pace
// of its steps; another one keeps that of its updates, and the first took as long as the run so
// far.
func (n *node) learn(at time.Duration, trains, overtime bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if overtime {
		n.overtime = true
		return
	}
	if !trains {
		n.pace.Longest = max(n.pace.Longest, at-n.pace.Last)
		n.pace.Step(at)
	}
	n.update, n.learned = max(n.update, at), true
}

func (n *node) merge(age uint64) {
	n.mu.Lock()
	n.merged.add(age)
	n.mu.Unlock()
}

// count counts a step or a wait of the node, or an update of which it computed the gradient.
func (n *node) count(at time.Duration, event *actors.Event, overtime bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch event.Kind {
	case actors.StepDone:
		if !overtime {
			n.pace.Step(at)
		}
		n.last, n.latest = at, event.Step
		n.steps++
		n.samples += uint64(max(event.Samples, 0))
	case actors.UpdateApplied:
		n.ages.add(event.Staleness)
	case actors.Waited:
		n.waitsOf(event.Cause).add(event.Duration)
		n.pace.Waited = true
	}
}

func (n *node) waitsOf(cause string) *waits {
	for i := range n.waits {
		if n.waits[i].cause == cause {
			return &n.waits[i]
		}
	}
	if len(n.waits) >= maxCauses-1 && cause != "other" {
		return n.waitsOf("other")
	}
	n.waits = append(n.waits, waits{cause: cause})
	return &n.waits[len(n.waits)-1]
}

// everyone is the neighbour as which all are counted in a run of many nodes.
const everyone = -1

// neighbour is as what the choice of a node is counted.
func (c *Collector) neighbour(node int) int32 {
	if len(c.nodes) > MaxChoosers {
		return everyone
	}
	return int32(node)
}

func (n *node) choose(neighbour int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	place, ok := n.places[neighbour]
	if !ok {
		if n.places == nil {
			n.places = map[int32]int{}
		}
		place = len(n.chosen)
		n.places[neighbour] = place
		n.chosen = append(n.chosen, choice{neighbour: neighbour})
	}
	n.chosen[place].count++
}

// copyTo makes t equal, in the memory that t has where that is enough.
func (n *node) copyTo(t *tally) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t.steps, t.samples, t.last = n.steps, n.samples, n.last
	t.update, t.learned, t.overtime = n.update, n.learned, n.overtime
	n.ages.copyTo(&t.ages)
	n.merged.copyTo(&t.merged)
	t.chosen = append(t.chosen[:0], n.chosen...)
	t.waits = slices.Grow(t.waits[:0], len(n.waits))[:len(n.waits)]
	for i := range n.waits {
		n.waits[i].copyTo(&t.waits[i])
	}
}

// snapshot copies all counters. Between the first and the last snapshot a long run
// of many nodes takes thousands: they share the memory of a few.
func (c *Collector) snapshot(at time.Duration, evaluation uint64) mark {
	m := mark{evaluation: evaluation, at: at}
	c.mu.Lock()
	if last := len(c.spare) - 1; last >= 0 {
		m.nodes, c.spare = c.spare[last], c.spare[:last]
	}
	m.unmeasured = c.unmeasured
	c.mu.Unlock()
	if m.nodes == nil {
		m.nodes = make([]tally, len(c.nodes))
	}
	for i := range c.nodes {
		c.nodes[i].copyTo(&m.nodes[i])
	}
	if c.config.Links != nil {
		m.links = c.config.Links()
	}
	for i := range m.links {
		m.bytes += m.links[i].Bytes
	}
	return m
}

func (c *Collector) addMark(at time.Duration, evaluation uint64) {
	m := c.snapshot(at, evaluation)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = append(c.marks, m)
}

// measure keeps a measurement, which is of the instant that it names, if it names one.
func (c *Collector) measure(at time.Duration, number int, event *actors.Event) {
	if event.Dated {
		at = event.At
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.measured) == MaxMeasured {
		c.unmeasured++
		return
	}
	c.measured = append(c.measured, measurement{at: at, node: number, name: event.Name, value: event.Value})
}

// evaluated takes the verdict on a model in.
func (c *Collector) evaluated(event *actors.Event) {
	m := ModelVerdict{Number: event.Evaluation, Step: event.Step, Accuracy: Float(event.Accuracy),
		Loss: Float(event.Loss), Samples: event.Samples}
	if c.node(event.Origin) != nil {
		m.Node = c.config.Nodes[event.Origin]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known(m.Number) {
		c.models = append(c.models, m)
		return
	}
	for i := len(c.models) - 1; i >= 0 && c.models[i].Number == m.Number; i-- {
		if c.models[i].Node == m.Node {
			c.models[i] = m
		}
	}
}

// known reports whether an evaluation is the latest that is summed up, of which what is said now is
// of more of the test set; c.mu is held.
func (c *Collector) known(number uint64) bool {
	n := len(c.curve)
	return n > 0 && c.curve[n-1].Number == number
}

// summarized takes in what the verdicts of an evaluation come to. Evaluations come in the order of
// their numbers, so that the record can no longer end before this one. The latest may come again,
// of more of the test set.
func (c *Collector) summarized(event *actors.Event) {
	f := event.Figures
	e := Evaluation{
		Number: event.Evaluation, Time: event.At.Seconds(), Step: event.Step, Epoch: event.Epoch,
		Accuracy: Float(event.Accuracy), Loss: Float(event.Loss), Models: f.Models,
		AverageModel: Float(f.AverageModel.Accuracy), Mean: Float(f.Mean.Accuracy), All: Float(f.All.Accuracy),
		Any: Float(f.Any.Accuracy), Samples: event.Samples,
	}
	for _, of := range []Of{AverageModel, Mean, All, Any} {
		if f.Score(of).Samples > 0 {
			e.Estimates = append(e.Estimates, of)
		}
	}
	c.mu.Lock()
	if c.known(e.Number) {
		last := &c.curve[len(c.curve)-1]
		e.Bytes = last.Bytes
		*last = e
		c.mu.Unlock()
		return
	}
	c.dropMarks(e.Number)
	if len(c.marks) > 0 {
		e.Bytes = c.marks[0].bytes
	}
	c.curve = append(c.curve, e)
	c.mu.Unlock()
	if c.config.OnEvaluation != nil {
		c.config.OnEvaluation(e)
	}
}

// dropMarks drops the marks before an evaluation's; c.mu is held.
func (c *Collector) dropMarks(evaluation uint64) {
	n := 0
	for n < len(c.marks) && c.marks[n].evaluation < evaluation {
		c.spare = append(c.spare, c.marks[n].nodes)
		n++
	}
	c.marks = slices.Delete(c.marks, 0, n)
}

// Held calls a function while nobody observes anything, and the events until now, where they are
// kept, are written out.
func (c *Collector) Held(do func()) error {
	for i := range c.nodes {
		c.nodes[i].mu.Lock()
		defer c.nodes[i].mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events == nil {
		do()
		return nil
	}
	return c.events.flush(do)
}

// Close ends the record at the snapshot that the given evaluation was made of, and
// returns what was counted until then; 0 stands for the present instant. The curve
// ends with that evaluation. Events, where they are kept, are written out in full,
// also those between the snapshot and its verdict.
//
// The error is the first one of writing events, or says that there was no such
// snapshot; what was counted is returned beside the former.
func (c *Collector) Close(last uint64) (Data, error) {
	err := c.Held(func() {})
	if last == 0 {
		return c.data(c.snapshot(math.MaxInt64, 0), math.MaxUint64), err
	}
	c.mu.Lock()
	marks := slices.DeleteFunc(slices.Clone(c.marks), func(m mark) bool { return m.evaluation < last })
	c.mu.Unlock()
	if len(marks) == 0 {
		return Data{}, fmt.Errorf("the record cannot end at evaluation %d: no snapshot for it was recorded", last)
	}
	return c.data(marks[0], last), err
}

// data writes out a mark.
func (c *Collector) data(m mark, last uint64) Data {
	d := Data{Links: append([]Link{}, m.links...), Updates: []Update{}}
	c.mu.Lock()
	d.Curve = slices.DeleteFunc(append([]Evaluation{}, c.curve...), func(e Evaluation) bool { return e.Number > last })
	d.Models = c.verdicts(last)
	d.Measured, d.Unmeasured = c.measurements(m.at), m.unmeasured
	c.mu.Unlock()
	for _, l := range d.Links {
		d.Messages += l.Messages
		d.Bytes += l.Bytes
	}
	for i := range m.nodes {
		t := &m.nodes[i]
		d.Steps += t.steps
		d.LastUpdate, d.Learned = max(d.LastUpdate, t.update), d.Learned || t.learned
		d.Overtime = d.Overtime || t.overtime
		if c.config.Holds != nil && c.config.Holds[i] && !t.learned {
			d.Untrained = append(d.Untrained, i)
		}
		if c.config.Trains[i] || t.steps > 0 || t.ages.count > 0 || len(t.waits) > 0 {
			d.Updates = append(d.Updates, t.summary(c.config.Nodes[i]))
		}
		if len(t.chosen) > 0 {
			d.Selections = append(d.Selections, t.selection(i, c.config.Nodes))
		}
	}
	return d
}

// verdicts returns the verdicts of the evaluations up to the last one, if any of these judged
// several models; c.mu is held.
func (c *Collector) verdicts(last uint64) []ModelVerdict {
	if !slices.ContainsFunc(c.curve, func(e Evaluation) bool { return e.Models > 1 && e.Number <= last }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.models), func(m ModelVerdict) bool { return m.Number > last })
}

// measurements returns those up to an instant, by time and then as they came in; c.mu is held.
func (c *Collector) measurements(until time.Duration) (all []Measurement) {
	for _, m := range c.measured {
		if m.at > until {
			continue
		}
		name := actors.Coordinator
		if c.node(m.node) != nil {
			name = c.config.Nodes[m.node]
		}
		all = append(all, Measurement{Time: m.at.Seconds(), Node: name, Name: m.name, Value: Float(m.value)})
	}
	slices.SortStableFunc(all, func(a, b Measurement) int { return cmp.Compare(a.Time, b.Time) })
	return all
}

// selection lists the choices of a node by the neighbours' numbers.
func (t *tally) selection(number int, names []string) Selection {
	s := Selection{Node: names[number]}
	for _, c := range slices.SortedFunc(slices.Values(t.chosen),
		func(a, b choice) int { return cmp.Compare(a.neighbour, b.neighbour) }) {
		name := Everyone
		if c.neighbour != everyone {
			name = names[c.neighbour]
		}
		s.Neighbours, s.Counts = append(s.Neighbours, name), append(s.Counts, c.count)
	}
	return s
}

func (t *tally) summary(name string) Update {
	u := Update{
		Node: name, Steps: t.steps, Samples: t.samples, Updates: t.ages.count, LastStep: t.last.Seconds(),
		Staleness: t.ages.staleness(), Waiting: make([]Waiting, len(t.waits)),
	}
	if t.merged.count > 0 {
		age := t.merged.staleness()
		u.Age = &age
	}
	for i := range t.waits {
		u.Waiting[i] = t.waits[i].waiting()
	}
	slices.SortFunc(u.Waiting, func(a, b Waiting) int { return strings.Compare(a.Cause, b.Cause) })
	return u
}

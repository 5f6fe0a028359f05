package record

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
)

// Config says what a Collector observes.
type Config struct {
	// Nodes are the names of the run's nodes, by their number.
	Nodes []string
	// Roles are the nodes' roles, by the same number. Nodes of role "worker" are in
	// Data.Updates even if they have done nothing; others if they have trained or waited.
	Roles []string
	// Links returns the counters of every used edge at this instant, cumulative since
	// the run began. It is called with each snapshot. Nil: no edges.
	Links func() []Link
	// Events receives each event as a line of JSON. Nil: events are not kept.
	Events io.Writer
	// OnEvaluation, if not nil, is told of each verdict as it comes in.
	OnEvaluation func(Evaluation)
}

// maxCauses bounds the causes of waiting told apart at one node; further ones are counted as "other".
const maxCauses = 64

// node counts what a node has done.
type node struct {
	mu             sync.Mutex
	steps, samples uint64
	ages           ages
	waits          []waits
	_              [64]byte // nodes on different cores must not share a cache line
}

// tally is a copy of a node's counters.
type tally struct {
	steps, samples uint64
	ages           ages
	waits          []waits
}

// mark is a copy of all counters at the instant of a snapshot.
type mark struct {
	evaluation uint64
	nodes      []tally
	links      []Link
}

// Collector observes a run. Its methods may be called from many goroutines.
type Collector struct {
	config Config
	nodes  []node

	mu    sync.Mutex // guards marks and curve
	marks []mark     // by rising number of evaluation
	curve []Evaluation

	events *eventWriter
}

var _ actors.Observer = (*Collector)(nil)

const rolesNotNodes = "record: Config.Roles must have as many elements as Config.Nodes"

// NewCollector makes a collector of a run that has not begun.
func NewCollector(config Config) *Collector {
	if len(config.Roles) != len(config.Nodes) {
		panic(rolesNotNodes)
	}
	c := &Collector{config: config, nodes: make([]node, len(config.Nodes))}
	if config.Events != nil {
		c.events = newEventWriter(config.Events, config.Nodes)
	}
	return c
}

// Observe takes in an event of the node of the given number. Numbers outside
// Config.Nodes, such as the coordinator's, are counted nowhere.
func (c *Collector) Observe(at time.Duration, number int, event actors.Event) {
	if c.events != nil {
		c.events.write(at, number, &event)
	}
	switch event.Kind {
	case actors.StepDone:
		if n := c.node(number); n != nil {
			n.step(event.Samples)
		}
	case actors.UpdateApplied:
		if n := c.node(event.Origin); n != nil {
			n.update(event.Staleness)
		}
	case actors.Waited:
		if n := c.node(number); n != nil {
			n.wait(event.Cause, event.Duration)
		}
	case actors.SnapshotTaken:
		c.mark(event.Evaluation)
	case actors.Evaluated:
		c.evaluated(&event)
	}
}

func (c *Collector) node(number int) *node {
	if number < 0 || number >= len(c.nodes) {
		return nil
	}
	return &c.nodes[number]
}

func (n *node) step(samples int) {
	n.mu.Lock()
	n.steps++
	n.samples += uint64(max(samples, 0))
	n.mu.Unlock()
}

func (n *node) update(staleness uint64) {
	n.mu.Lock()
	n.ages.add(staleness)
	n.mu.Unlock()
}

func (n *node) wait(cause string, d time.Duration) {
	n.mu.Lock()
	n.waitsOf(cause).add(d)
	n.mu.Unlock()
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

func (n *node) tally() tally {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := tally{steps: n.steps, samples: n.samples, ages: n.ages.clone(), waits: make([]waits, len(n.waits))}
	for i := range n.waits {
		t.waits[i] = waits{cause: n.waits[i].cause, spans: slices.Clone(n.waits[i].spans)}
	}
	return t
}

func (c *Collector) snapshot(evaluation uint64) mark {
	m := mark{evaluation: evaluation, nodes: make([]tally, len(c.nodes))}
	for i := range c.nodes {
		m.nodes[i] = c.nodes[i].tally()
	}
	if c.config.Links != nil {
		m.links = c.config.Links()
	}
	return m
}

func (c *Collector) mark(evaluation uint64) {
	m := c.snapshot(evaluation)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = append(c.marks, m)
}

// evaluated takes a verdict in. Verdicts come in the order of their numbers, so
// that the record can no longer end before this one.
func (c *Collector) evaluated(event *actors.Event) {
	e := Evaluation{
		Number: event.Evaluation, Time: event.At.Seconds(), Step: event.Step, Epoch: event.Epoch,
		Accuracy: Float(event.Accuracy), Loss: Float(event.Loss),
	}
	if event.Origin >= 0 && event.Origin < len(c.config.Nodes) {
		e.Node = c.config.Nodes[event.Origin]
	}
	c.mu.Lock()
	c.curve = append(c.curve, e)
	c.marks = slices.DeleteFunc(c.marks, func(m mark) bool { return m.evaluation < e.Number })
	c.mu.Unlock()
	if c.config.OnEvaluation != nil {
		c.config.OnEvaluation(e)
	}
}

// Close ends the record at the snapshot that the given evaluation was made of, and
// returns what was counted until then; 0 stands for the present instant. The curve
// ends with that evaluation. Events, where they are kept, are written out in full,
// also those between the snapshot and its verdict.
//
// The error is the first one of writing events, or says that there was no such
// snapshot; what was counted is returned beside the former.
func (c *Collector) Close(last uint64) (Data, error) {
	var err error
	if c.events != nil {
		err = c.events.close()
	}
	if last == 0 {
		return c.data(c.snapshot(0), math.MaxUint64), err
	}
	c.mu.Lock()
	i := slices.IndexFunc(c.marks, func(m mark) bool { return m.evaluation >= last })
	var end mark
	if i >= 0 {
		end = c.marks[i]
	}
	c.mu.Unlock()
	if i < 0 {
		return Data{}, fmt.Errorf("the record cannot end at evaluation %d: no snapshot for it was recorded", last)
	}
	return c.data(end, last), err
}

// data writes out a mark.
func (c *Collector) data(m mark, last uint64) Data {
	d := Data{Curve: []Evaluation{}, Links: slices.Clone(m.links), Updates: []Update{}}
	c.mu.Lock()
	for _, e := range c.curve {
		if e.Number <= last {
			d.Curve = append(d.Curve, e)
		}
	}
	c.mu.Unlock()
	if d.Links == nil {
		d.Links = []Link{}
	}
	for _, l := range d.Links {
		d.Messages += l.Messages
		d.Bytes += l.Bytes
	}
	for i := range m.nodes {
		t := &m.nodes[i]
		d.Steps += t.steps
		if c.config.Roles[i] == "worker" || t.steps > 0 || t.ages.count > 0 || len(t.waits) > 0 {
			d.Updates = append(d.Updates, t.summary(c.config.Nodes[i]))
		}
	}
	return d
}

func (t *tally) summary(name string) Update {
	u := Update{
		Node: name, Steps: t.steps, Samples: t.samples, Updates: t.ages.count,
		Staleness: t.ages.staleness(), Waiting: make([]Waiting, len(t.waits)),
	}
	for i := range t.waits {
		u.Waiting[i] = t.waits[i].waiting()
	}
	slices.SortFunc(u.Waiting, func(a, b Waiting) int { return strings.Compare(a.Cause, b.Cause) })
	return u
}

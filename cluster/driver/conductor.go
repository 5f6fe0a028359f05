package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

// conductor carries out one run on the cluster: it has the other processes place their nodes, starts
// and ends the run, and hears what they record.
type conductor struct {
	*hosted
	log     func(format string, args ...any)
	message *protos.PlaceRun
	task    *train.Task
	events  *gatherer

	mu      sync.Mutex
	begun   bool
	parties map[string]*party // the other processes
	changed chan struct{}     // closed at the next change of a party
}

// party is another process of a run.
type party struct {
	placed bool
	result *protos.RunResult
	err    error  // why it cannot take part, or does not any more
	lives  uint32 // that it had before
}

// resultPatience is how long a run that has ended waits for what the other processes say last.
const resultPatience = 10 * time.Second

// venue is where the runs of a submission take place.
type venue struct {
	process    *process
	submission *submission
	place      []rule
}

// message is what the other processes need to know of a run.
func (v *venue) message(pt *point, task *train.Task, where []string) (*protos.PlaceRun, error) {
	text, err := pt.text(task.Seed)
	if err != nil {
		return nil, err
	}
	m := &protos.PlaceRun{
		Submission: v.submission.id, File: v.submission.file, Plan: text, Processes: where,
		Catalog: v.process.fingerprint,
	}
	if pt.spec.Data.Sent {
		m.Samples = sampleSet(task)
	}
	return m, nil
}

// rehearse asks every process that would host nodes of a point whether it can.
func (v *venue) rehearse(ctx context.Context, pt *point, task *train.Task) error {
	where, err := v.process.placement(pt.spec.Plan, v.place)
	if err != nil {
		return err
	}
	m, err := v.message(pt, task, where)
	if err != nil {
		return err
	}
	m.Rehearse = true
	c := v.process.newConductor(v.submission, m)
	if !v.process.enter(c.hosted, c) {
		return errStopping
	}
	defer v.process.forgetRun(c.run)
	defer c.end(errRunOver)
	return c.placeOthers(ctx)
}

// play lets one run happen.
func (v *venue) play(ctx context.Context, next run, s *stage) (outcome, error) {
	p := v.process
	where, err := p.placement(next.point.spec.Plan, v.place)
	if err != nil {
		return outcome{}, err
	}
	m, err := v.message(next.point, s.task, where)
	if err != nil {
		return outcome{}, err
	}
	v.submission.placed(s.names, where)
	c := p.newConductor(v.submission, m)
	c.task = s.task
	c.events = newGatherer(s.deployment.Observer, c.now, slices.Sorted(maps.Keys(c.parties)))
	s.deployment.Observer, s.elsewhere = c.events, c.events.elsewhere
	if !p.enter(c.hosted, c) {
		return outcome{}, errStopping
	}
	defer p.forgetRun(c.run)
	defer c.end(errRunOver)
	defer context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })()
	return c.carryOut(ctx, s)
}

func (p *process) newConductor(s *submission, m *protos.PlaceRun) *conductor {
	c := &conductor{
		hosted: p.newHosted(s.nextRun(), p.config.Name, append(slices.Clone(m.Processes), p.config.Name)),
		log:    s.log, message: m, parties: map[string]*party{}, changed: make(chan struct{}),
	}
	for _, name := range m.Processes {
		if name != p.config.Name {
			c.parties[name] = &party{}
		}
	}
	return c
}

// now is what the run's clock shows in this process.
func (c *conductor) now() time.Duration {
	if w := c.world.Load(); w != nil {
		return w.Now()
	}
	return 0
}

// carryOut places, starts and ends a run.
func (c *conductor) carryOut(ctx context.Context, s *stage) (outcome, error) {
	end := sync.OnceFunc(func() {
		c.mu.Lock()
		c.begun = false
		c.mu.Unlock()
		c.tellOthers(&protos.EndRun{})
	})
	defer end()
	w, err := c.placeWorld(s, 0, 0)
	if err == nil {
		err = c.placeOthers(ctx)
	}
	if err != nil {
		if w != nil {
			w.Abandon()
		}
		return outcome{}, err
	}
	c.mu.Lock()
	c.begun = true
	c.mu.Unlock()
	c.log("began on %s", strings.Join(append([]string{c.process.config.Name}, c.others()...), ", "))
	for name := range c.parties {
		c.events.enter(name, 0)
	}
	c.tellOthers(&protos.BeginRun{})
	for name := range c.parties {
		c.left(name) // who has gone in between
	}
	result, err := w.Run(c.stop)
	if err != nil {
		return outcome{}, err
	}
	end()
	return c.outcome(result), nil
}

// outcome waits for what the other processes say last, and sums everything up.
func (c *conductor) outcome(r live.Result) outcome {
	ctx, cancel := context.WithTimeout(c.stop, resultPatience)
	defer cancel()
	// Who says nothing in time is missing in the counters, which is all that it has left to tell.
	_ = c.await(ctx, func(q *party) (bool, error) { return q.result != nil || q.err != nil, nil })
	out := outcome{end: r.Now, dead: r.DeadLetters, stalled: r.Stalled}
	late, p99 := r.Late, max(r.Messages.P99, r.Steps.P99)
	c.mu.Lock()
	for name, q := range c.parties {
		if q.result != nil {
			out.dead += q.result.DeadLetters
			late, p99 = late || q.result.Late, max(p99, time.Duration(q.result.Lateness))
		}
		defer c.events.leave(name)
	}
	c.mu.Unlock()
	out.lateness = &record.Lateness{Late: late, P99: record.Float(p99.Seconds())}
	return out
}

// placeOthers has the other processes make their worlds, or say why they cannot.
func (c *conductor) placeOthers(ctx context.Context) error {
	for _, name := range c.others() {
		if err := c.process.tell(name, c.run, c.message); err != nil {
			return fmt.Errorf("process %s: %w", name, err)
		}
	}
	return c.await(ctx, func(q *party) (bool, error) { return q.placed, q.err })
}

// await waits until something holds for all parties, and returns all their errors if there are any.
func (c *conductor) await(ctx context.Context, holds func(q *party) (bool, error)) error {
	for {
		c.mu.Lock()
		all := true
		var errs []error
		for _, name := range slices.Sorted(maps.Keys(c.parties)) {
			done, err := holds(c.parties[name])
			if err != nil {
				errs = append(errs, fmt.Errorf("process %s: %w", name, err))
			}
			all = all && (done || err != nil)
		}
		changed := c.changed
		c.mu.Unlock()
		if all {
			return errors.Join(errs...)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// note changes what is known of a party.
func (c *conductor) note(name string, change func(q *party)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.parties[name]; q != nil {
		change(q)
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// heard takes in what another process of the run says.
func (c *conductor) heard(name string, m proto.Message) {
	switch m := m.(type) {
	case *protos.RunPlaced:
		c.note(name, func(q *party) {
			q.placed = m.Error == ""
			if m.Error != "" {
				q.err = errors.New(m.Error)
			}
		})
	case *protos.AskSamples:
		if c.task != nil {
			c.process.work.Go(func() { c.supply(name, m) })
		}
	case *protos.RunEvents:
		if c.events != nil {
			c.events.add(name, m)
		}
	case *protos.NodeChanged:
		if w := c.world.Load(); w != nil && m.Node >= 0 && int(m.Node) < len(c.where)-1 && c.where[m.Node] == name {
			w.Change(int(m.Node), m.Present)
		}
	case *protos.RunResult:
		c.note(name, func(q *party) { q.result = m })
		if m.Left {
			c.gone(name, "it has left")
		}
		if m.Error != "" {
			c.end(fmt.Errorf("process %s: %s", name, m.Error))
		}
	}
}

// gone takes note that a process is not there any more: its nodes have crashed.
func (c *conductor) gone(name, why string) {
	news := false
	c.note(name, func(q *party) {
		if news = q.err == nil; news {
			q.err = fmt.Errorf("it is gone: %s", why)
		}
	})
	if news {
		c.left(name)
	}
}

// left lets the coordinator know of the nodes of a process that is gone, once the run has begun.
func (c *conductor) left(name string) {
	c.mu.Lock()
	q := c.parties[name]
	var why error
	if q != nil && c.begun {
		why = q.err
	}
	c.mu.Unlock()
	if why == nil {
		return
	}
	c.log("without %s from now on: %v", name, why)
	c.change(name, false)
	c.events.leave(name)
}

// change lets the coordinator know that the nodes of a process are there, or not any more.
func (c *conductor) change(name string, present bool) {
	w := c.world.Load()
	for i, where := range c.where[:len(c.where)-1] {
		if where == name && w != nil {
			w.Change(i, present)
		}
	}
}

// back has a process that was gone place its nodes anew, with actors that know nothing.
func (c *conductor) back(name string) {
	c.mu.Lock()
	q := c.parties[name]
	if q == nil || q.err == nil || !c.begun {
		c.mu.Unlock()
		return
	}
	*q = party{lives: q.lives + 1}
	m := proto.CloneOf(c.message)
	m.Start, m.Lives = int64(c.now()), q.lives
	c.mu.Unlock()
	err := c.process.tell(name, c.run, m)
	if err == nil {
		err = c.await(c.stop, func(other *party) (bool, error) { return other != q || q.placed, q.err })
	}
	if err == nil {
		c.events.enter(name, time.Duration(m.Start))
		err = c.process.tell(name, c.run, &protos.BeginRun{})
	}
	if err != nil {
		c.note(name, func(q *party) { q.err = err })
		c.log("%s is back and stays out: %v", name, err)
		return
	}
	c.log("%s is back", name)
	c.change(name, true)
}

// others are the other processes of the run that are there.
func (c *conductor) others() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.parties)) {
		if c.parties[name].err == nil {
			names = append(names, name)
		}
	}
	return names
}

// tellOthers tells the other processes of the run that are there.
func (c *conductor) tellOthers(m proto.Message) {
	for _, name := range c.others() {
		c.process.report(name, c.run, m)
	}
}

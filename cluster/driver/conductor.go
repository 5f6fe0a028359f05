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

	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

// conductor carries out one run on the cluster: it has the other processes place their nodes, starts
// and ends the run, and hears what they record.
type conductor struct {
	*hosted
	names   []string // of nodes, and of the coordinator as the last one
	events  *gatherer
	started bool // guarded by mu, as what follows

	mu      sync.Mutex
	parties map[string]*party // the other processes
	changed chan struct{}     // closed at the next change of a party
}

// party is another process of a run.
type party struct {
	placed bool
	result *protos.RunResult
	err    error // why it cannot take part, or does not any more
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
func (v *venue) message(pt *point, seed uint64, where []string) (*protos.PlaceRun, error) {
	text, err := pt.text(seed)
	if err != nil {
		return nil, err
	}
	return &protos.PlaceRun{
		Submission: v.submission.id, File: v.submission.file, Plan: text, Processes: where,
		Catalog: v.process.fingerprint,
	}, nil
}

// rehearse asks every process that would host nodes of a point whether it can.
func (v *venue) rehearse(ctx context.Context, pt *point) error {
	where, err := v.process.placement(pt.spec.Plan, v.place)
	if err != nil {
		return err
	}
	m, err := v.message(pt, pt.spec.Plan.Seed, where)
	if err != nil {
		return err
	}
	m.Rehearse = true
	c := v.process.newConductor(v.submission.nextRun(), where, pt.nodeNames())
	if !v.process.enter(c.hosted, c) {
		return errStopping
	}
	defer v.process.forgetRun(c.run)
	return c.placeOthers(ctx, m)
}

// play lets one run happen.
func (v *venue) play(ctx context.Context, next run, s *stage) (outcome, error) {
	p := v.process
	where, err := p.placement(next.point.spec.Plan, v.place)
	if err != nil {
		return outcome{}, err
	}
	m, err := v.message(next.point, next.seed, where)
	if err != nil {
		return outcome{}, err
	}
	v.submission.placed(next, s.names, where)
	c := p.newConductor(v.submission.nextRun(), where, s.names)
	c.events = newGatherer(s.deployment.Observer, slices.Sorted(maps.Keys(c.parties)))
	s.deployment.Observer, s.elsewhere = c.events, c.events.elsewhere
	if !p.enter(c.hosted, c) {
		return outcome{}, errStopping
	}
	defer p.forgetRun(c.run)
	defer context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })()
	return c.carryOut(ctx, m, s, v.submission)
}

func (p *process) newConductor(run uint64, where, names []string) *conductor {
	c := &conductor{
		hosted: p.newHosted(run, p.config.Name, append(slices.Clone(where), p.config.Name), names), names: names,
		parties: map[string]*party{}, changed: make(chan struct{}),
	}
	for _, name := range where {
		if name != p.config.Name {
			c.parties[name] = &party{}
		}
	}
	return c
}

// carryOut places, starts and ends a run.
func (c *conductor) carryOut(ctx context.Context, m *protos.PlaceRun, s *stage, sub *submission) (outcome, error) {
	end := sync.OnceFunc(func() { c.tellOthers(&protos.EndRun{}) })
	defer end()
	w, err := c.placeWorld(s)
	if err == nil {
		err = c.placeOthers(ctx, m)
	}
	if err != nil {
		if w != nil {
			w.Abandon()
		}
		return outcome{}, err
	}
	c.mu.Lock()
	c.started = true
	c.mu.Unlock()
	sub.log("run %d began on %s", sub.current(), strings.Join(append([]string{c.process.config.Name}, c.others()...), ", "))
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
func (c *conductor) placeOthers(ctx context.Context, m *protos.PlaceRun) error {
	for _, name := range c.others() {
		if err := c.process.tell(name, c.run, m); err != nil {
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
			c.hosted.gone(name, "it has left")
			c.gone(name, "it has left")
		}
		if m.Error != "" {
			c.end(fmt.Errorf("process %s: %s", name, m.Error))
		}
	}
}

// gone takes note that a process is not there any more: its nodes have crashed.
func (c *conductor) gone(name, why string) {
	c.note(name, func(q *party) {
		if q.err == nil {
			q.err = fmt.Errorf("it is gone: %s", why)
		}
	})
	c.left(name)
}

// left lets the coordinator know of the nodes of a process that is gone, once the run has begun.
func (c *conductor) left(name string) {
	c.mu.Lock()
	q := c.parties[name]
	tell := q != nil && q.err != nil && c.started
	c.mu.Unlock()
	w := c.world.Load()
	if !tell || w == nil {
		return
	}
	for i, where := range c.where[:len(c.where)-1] {
		if where == name {
			w.Change(i, false)
		}
	}
	c.events.leave(name)
}

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/mesh"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// hosted is the part of a run that lives in this process.
type hosted struct {
	*mesh.Run
	process   *process
	conductor *conductor              // nil if another process conducts the run
	samples   atomic.Pointer[arrival] // there while samples are waited for
	stop      context.Context
	end       context.CancelCauseFunc
	begun     context.Context // ends when the clock is to start, and halted when the part of the nodes is over
	begin     context.CancelFunc
	halted    context.Context
	halt      context.CancelFunc
	allowed   context.Context // ends when the conductor permits the nodes here to leave
	allow     context.CancelFunc
	lives     uint32           // of the run in this process, before this one
	resume    chan *live.State // in which the nodes here go on
	parts     checkpoint.Parts // of it
	over      chan struct{}    // closed when the run is forgotten
	handled   atomic.Int64     // messages, when the process was last asked
	memory    float64          // that its nodes take here, in bytes; the process's mu is held

	mu    sync.Mutex
	marks map[string]uint64 // the latest of each other process
	// indispensable names, for a process, a node that nobody else can stand in for: a new life of
	// it would have lost what it alone knows.
	indispensable map[string]string
}

var (
	// errRunOver ends a world whose run has been ended by the process that conducts it.
	errRunOver = errors.New("the run is over")
	// errLeadGone ends one whose run's process is gone, as far as can be seen from here.
	errLeadGone = errors.New("the process that conducts the run is gone")
)

// newHosted returns the part of a run of which processes host the nodes, and lead the coordinator.
func (p *process) newHosted(run uint64, lead string, processes []string) *hosted {
	h := &hosted{
		process: p, over: make(chan struct{}), marks: map[string]uint64{}, indispensable: map[string]string{},
		resume: make(chan *live.State, 1),
	}
	h.begun, h.begin = context.WithCancel(context.Background())
	h.halted, h.halt = context.WithCancel(context.Background())
	h.allowed, h.allow = context.WithCancel(context.Background())
	h.Run = p.mesh.Run(run, append(slices.Clone(processes), lead), h.waitsFor)
	h.stop, h.end = context.WithCancelCause(p.stop)
	return h
}

// register makes the run known, so that frames reach it; false if it is known already.
func (p *process) register(h *hosted) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop.Err() != nil || !p.mesh.Enter(h.Run) {
		return false
	}
	p.runs[h.Number()] = h
	return true
}

// needs takes note of the nodes that nobody can stand in for.
func (h *hosted) needs(roles []train.Role, names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, role := range roles {
		if !role.Trains {
			h.indispensable[h.Host(i)] = names[i]
		}
	}
}

// needsOf names such a node of a process; empty if there is none.
func (h *hosted) needsOf(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.indispensable[name]
}

// waitsFor reports whether a run here waits for a process while it is silent: because it conducts
// the run, or because nodes live there that the run cannot do without.
func (p *process) waitsFor(name string) bool {
	return slices.ContainsFunc(p.hosts(), func(h *hosted) bool {
		return h.Lead() == name || h.needsOf(name) != "" || h.conductor != nil && h.conductor.needed(name) != ""
	})
}

// succeed makes a run known, whose earlier life in this process ends.
func (p *process) succeed(h *hosted) error {
	for !p.register(h) {
		p.mu.Lock()
		old := p.runs[h.Number()]
		p.mu.Unlock()
		switch {
		case p.stop.Err() != nil:
			return experiment.ErrStopping
		case old == nil: // it has just ended
		case old.Lead() != h.Lead() || old.lives >= h.lives:
			return fmt.Errorf("run %x is here already", h.Number())
		default:
			old.end(errRunOver)
			<-old.over
		}
	}
	return nil
}

func (p *process) unregister(h *hosted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mesh.Leave(h.Run)
	delete(p.runs, h.Number())
	close(h.over)
}

// host is the life of a run's part in a process that does not conduct the run.
func (p *process) host(lead string, run uint64, m *protos.PlaceRun) {
	h := p.newHosted(run, lead, m.Processes)
	h.lives = m.Lives
	defer h.end(errRunOver)
	err := p.supersede(h)
	if err == nil {
		err = p.succeed(h)
	}
	if err != nil {
		h.answer(err)
		return
	}
	defer p.unregister(h)
	s, err := h.stageOf(m)
	if err == nil {
		err = p.fits(h, s, m.Rehearse)
	}
	if err == nil && m.Samples != nil && !m.Rehearse {
		err = h.awaitSamples(s)
	}
	if err != nil || m.Rehearse {
		h.answer(err)
		return
	}
	events := newForwarder(h, s)
	s.Deployment.Observer = events
	var w *live.World
	saves, err := h.checkpoints(m, events)
	if err == nil {
		if w, err = h.placeWorld(s, time.Duration(m.Start), saves); err != nil && m.Resumes {
			err = fmt.Errorf("its state %w: %w", checkpoint.ErrUnusable, err)
		}
	}
	if err == nil {
		err = h.Reach(h.stop, m.Gone)
	}
	h.answer(err)
	if err == nil {
		select {
		case <-h.begun.Done():
			h.live(w, events)
			return
		case <-h.stop.Done():
			switch cause := context.Cause(h.stop); {
			case p.stop.Err() != nil:
				p.report(lead, run, &protos.RunResult{Left: true})
			case errors.Is(cause, errMemory):
				p.report(lead, run, &protos.RunResult{Error: request.Text(cause.Error(), request.MaxText)})
			}
		}
	}
	if w != nil {
		w.Abandon()
	}
}

// answer says whether the run could be placed.
func (h *hosted) answer(err error) {
	m := &protos.RunPlaced{Lives: h.lives, Unusable: errors.Is(err, checkpoint.ErrUnusable)}
	if err != nil {
		m.Error = request.Text(err.Error(), request.MaxText)
	}
	h.process.report(h.Lead(), h.Number(), m)
}

// live lets the run happen, and says at the end what it has led to.
func (h *hosted) live(w *live.World, events *forwarder) {
	done := make(chan struct{})
	var flushing sync.WaitGroup
	flushing.Go(func() { every(flushEvery, done, events.send) })
	result, err := w.Run(h.stop)
	close(done)
	flushing.Wait()
	events.send()
	last := &protos.RunResult{DeadLetters: result.DeadLetters,
		Lateness: int64(max(result.Messages.P99, result.Steps.P99)), Late: result.Late, Unfinished: result.Unfinished}
	switch {
	case h.process.stop.Err() != nil, errors.Is(err, errLeadGone):
		last.Left = true
	case err != nil && !errors.Is(err, errRunOver):
		last.Error = request.Text(err.Error(), request.MaxText)
		h.process.log("run %x of %s: %v", h.Number(), h.Lead(), err)
	}
	state := &protos.RunState{Lives: h.lives}
	tellWaits(state, w)
	h.tellLead(state)
	h.tellLead(last)
}

// tellLead sends the process that conducts the run a message. It waits while that process is
// silent, for example paused.
func (h *hosted) tellLead(m proto.Message) {
	if err := h.process.node.SendOn(h.stop, h.Lead(), h.frame(m)); err != nil {
		h.process.log("run %x: %v", h.Number(), err)
	}
}

// frame is a message about the run.
func (h *hosted) frame(m proto.Message) *wire.Frame {
	return &wire.Frame{Kind: wire.KindOf(m), Run: h.Number(), Head: m}
}

// report sends another process of a run a message. If it cannot be sent, the process is gone, and
// the code that watches the connections hears of it.
func (p *process) report(name string, run uint64, m proto.Message) {
	if err := p.tell(name, run, m); err != nil {
		p.log("run %x: %v", run, err)
	}
}

// placeWorld makes the world of the nodes that live here.
func (h *hosted) placeWorld(s *experiment.Stage, start time.Duration, c *live.Checkpoints) (*live.World, error) {
	w, err := s.Live(live.Config{
		Stop:        h.stop,
		Threads:     max(h.process.residents.Free(), 1),
		Hosted:      h.Hosts,
		Carrier:     h,
		RoundTrip:   h.RoundTrip,
		Start:       start,
		Lives:       int(h.lives),
		KeepRuntime: h.process.config.KeepRuntime,
		Checkpoints: c,
	})
	if err != nil {
		return nil, err
	}
	if s.From() == nil || !s.Saves() { // a stage that is saved has placed it
		if err := w.Place(); err != nil {
			return w, err
		}
	}
	h.Attach(w, experiment.Positions(s.Names))
	return w, nil
}

// dispatch handles a message that the conductor of a run sends as an order. A LeaveRun that the
// conductor receives is a participant's request. A nil h stands for a run that this process does
// not host: dispatch drops the message.
func (h *hosted) dispatch(from string, m proto.Message) {
	switch {
	case h == nil:
	case h.conductor != nil:
		h.conductor.heard(from, m)
	case h.Lead() == from:
		h.told(m)
	}
}

// told carries out an order of the process that conducts the run.
func (h *hosted) told(m proto.Message) {
	switch m := m.(type) {
	case *protos.CutRun:
		h.cut(m)
	case *protos.BeginRun:
		h.begin()
	case *protos.HaltRun:
		h.halt()
		if w := h.World(); w != nil {
			w.Halt()
		}
	case *protos.EndRun:
		h.end(errRunOver)
	case *protos.LeaveRun:
		h.allow()
	}
}

// state reports how the run stands here. A mark, if wanted, follows everything sent before.
func (h *hosted) state(m *protos.AskRun) *protos.RunState {
	s := &protos.RunState{Wave: m.Wave, Lives: h.lives}
	w := h.World()
	if w == nil {
		return s
	}
	a := w.Activity(h.handled.Load())
	h.handled.Store(a.Handled)
	s.Idle, s.Handled, s.Sent, s.Received = a.Idle, a.Handled, a.Sent, a.Received
	if m.Why {
		tellWaits(s, w)
	}
	for _, name := range h.Others() {
		up, lost := h.Peer(name)
		h.mu.Lock()
		about := &protos.RunPeer{Name: name, Up: up, Lost: lost, Mark: h.marks[name]}
		h.mu.Unlock()
		s.Peers = append(s.Peers, about)
		if m.Mark != 0 && about.Up {
			h.process.report(name, h.Number(), &protos.RunMark{Mark: m.Mark})
		}
	}
	return s
}

// tellWaits adds what the nodes wait for.
func tellWaits(s *protos.RunState, w *live.World) {
	waits, losses := w.Waits()
	s.Waits, s.Losses = map[int32]string{}, request.Text(losses, request.MaxText)
	for node, cause := range waits {
		s.Waits[int32(node)] = request.Text(cause, request.MaxListed)
	}
}

// marked takes note of a mark.
func (h *hosted) marked(name string, mark uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks[name] = mark
}

// gone ends the run if the process that has gone conducts it.
func (h *hosted) gone(name, why string) {
	if name == h.Lead() {
		h.end(fmt.Errorf("%w: %s: %s", errLeadGone, name, why))
	}
}

var _ live.Carrier = (*hosted)(nil)

// Halt tells all other processes that the part of their nodes is over.
func (h *hosted) Halt() {
	h.halt()
	h.Run.Halt()
}

// waitsFor reports whether what is sent to a process waits for it as long as it is only silent: the
// one that conducts the run, and those that the run cannot do without. When the part of the nodes
// is over, nobody waits.
func (h *hosted) waitsFor(name string) bool {
	return h.halted.Err() == nil && h.stop.Err() == nil && (name == h.Lead() || h.needsOf(name) != "")
}

// shelfFor returns the shelf for a submission whose runs other processes conduct.
func (p *process) shelfFor(submission string) *shelf.Shelf {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shelfOf != submission {
		p.shelf, p.shelfOf = shelf.New(p.config.Data, 2, &p.shared), submission
	}
	return p.shelf
}

// stageOf makes the stage of a run that another process conducts.
func (h *hosted) stageOf(m *protos.PlaceRun) (*experiment.Stage, error) {
	p := h.process
	if m.Catalog != p.fingerprint {
		return nil, fmt.Errorf("its catalog (%s) differs from the catalog (%s) of the process that took the plan: "+
			"run the same program on all", p.fingerprint, m.Catalog)
	}
	pl, err := experiment.Parse(m.File, []byte(m.Plan))
	if err != nil {
		return nil, err
	}
	own := *p.catalog
	own.SamplesElsewhere = m.Samples != nil
	points, err := pl.Points(&own)
	if err != nil {
		return nil, err
	}
	pt := &points[0]
	if len(points) != 1 || len(m.Processes) != len(pt.Spec.Plan.Nodes) {
		return nil, fmt.Errorf("a plan of %d points and %d nodes was sent with places for %d", len(points),
			len(pt.Spec.Plan.Nodes), len(m.Processes))
	}
	var task *train.Task
	if m.Samples != nil {
		task, err = pt.SentTask(m.Samples, pt.Spec.Plan.Seed)
	} else {
		task, err = pt.Task(p.shelfFor(m.Submission), pt.Spec.Plan.Seed)
	}
	if err != nil {
		return nil, err
	}
	s, err := pt.Stage(task, false, 1)
	if err == nil {
		h.needs(pt.Spec.Roles, s.Names)
	}
	return s, err
}

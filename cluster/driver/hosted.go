package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

type protoMessage = proto.Message

// hosted is the part of a run that lives in this process.
type hosted struct {
	process *process
	run     uint64
	lead    string           // the process that conducts the run
	where   []string         // the process of each node, and of the coordinator as the last one
	index   map[string]int32 // of nodes, by name; there if the world is
	world   atomic.Pointer[live.World]
	samples atomic.Pointer[arrival] // there while samples are waited for
	stop    context.Context
	end     context.CancelCauseFunc
	begin   chan struct{} // closed when the clock is to start
	begun   sync.Once
}

// errRunOver ends a world whose run has been ended by the process that conducts it.
var errRunOver = errors.New("the run is over")

func (p *process) newHosted(run uint64, lead string, where []string) *hosted {
	h := &hosted{process: p, run: run, lead: lead, where: where, begin: make(chan struct{})}
	h.stop, h.end = context.WithCancelCause(p.stop)
	return h
}

// enter makes the run known, so that frames reach it; false if it is known already.
func (p *process) enter(h *hosted, c *conductor) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs[h.run] != nil || p.stop.Err() != nil {
		return false
	}
	p.runs[h.run] = h
	if c != nil {
		p.conducts[h.run] = c
	}
	return true
}

func (p *process) forgetRun(run uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, run)
	delete(p.conducts, run)
}

// host is the life of a run's part in a process that does not conduct the run.
func (p *process) host(lead string, run uint64, m *protos.PlaceRun) {
	h := p.newHosted(run, lead, append(m.Processes, lead))
	defer h.end(errRunOver)
	if !p.enter(h, nil) {
		h.answer(fmt.Errorf("run %x is here already, or the process is stopping", run))
		return
	}
	defer p.forgetRun(run)
	s, err := p.stageOf(m)
	if err != nil || m.Rehearse {
		h.answer(err)
		return
	}
	if m.Samples != nil {
		if err := h.awaitSamples(s); err != nil {
			h.answer(err)
			return
		}
	}
	events := newForwarder(h, s)
	s.deployment.Observer = events
	w, err := h.placeWorld(s, time.Duration(m.Start), int(m.Lives))
	h.answer(err)
	if err == nil {
		select {
		case <-h.begin:
			h.live(w, events)
			return
		case <-h.stop.Done():
			if p.stop.Err() != nil {
				p.report(lead, run, &protos.RunResult{Left: true})
			}
		}
	}
	if w != nil {
		w.Abandon()
	}
}

// answer says whether the run could be placed.
func (h *hosted) answer(err error) {
	m := &protos.RunPlaced{}
	if err != nil {
		m.Error = err.Error()
	}
	h.process.report(h.lead, h.run, m)
}

// live lets the run happen, and says at the end what it has led to.
func (h *hosted) live(w *live.World, events *forwarder) {
	done := make(chan struct{})
	var flushing sync.WaitGroup
	flushing.Go(func() { events.flush(done) })
	result, err := w.Run(h.stop)
	close(done)
	flushing.Wait()
	last := &protos.RunResult{DeadLetters: result.DeadLetters, Lateness: int64(max(result.Messages.P99, result.Steps.P99)), Late: result.Late}
	switch {
	case h.process.stop.Err() != nil:
		last.Left = true
	case err != nil && !errors.Is(err, errRunOver):
		last.Error = err.Error()
		h.process.log("run %x of %s: %v", h.run, h.lead, err)
	}
	h.process.report(h.lead, h.run, last)
}

// report tells the process that conducts a run something. If that cannot be told, it is gone, and
// the run with it.
func (p *process) report(lead string, run uint64, m proto.Message) {
	if err := p.tell(lead, run, m); err != nil {
		p.log("run %x: %v", run, err)
	}
}

// placeWorld makes the world of the nodes that live here.
func (h *hosted) placeWorld(s *stage, start time.Duration, lives int) (*live.World, error) {
	w, err := live.New(live.Config{
		Deployment: s.deployment, Network: s.network, Changes: s.changes, Threads: h.process.config.Cores,
		Hosted:  func(node int) bool { return h.where[node] == h.process.config.Name },
		Carrier: h, RoundTrip: h.roundTrip, Start: start, Lives: lives,
	})
	if err != nil {
		return nil, err
	}
	s.locked, h.index = w.Locked, positions(s.names)
	if err := w.Place(); err != nil {
		return w, err
	}
	h.world.Store(w)
	return w, nil
}

// told carries out what the process that conducts the run says.
func (h *hosted) told(m proto.Message) {
	switch m.(type) {
	case *protos.BeginRun:
		h.begun.Do(func() { close(h.begin) })
	case *protos.HaltRun:
		if w := h.world.Load(); w != nil {
			w.Halt()
		}
	case *protos.EndRun:
		h.end(errRunOver)
	}
}

// gone ends the run if the process that conducts it is not there any more.
func (h *hosted) gone(name, why string) {
	if name == h.lead {
		h.end(fmt.Errorf("process %s, which conducts the run, is gone: %s", name, why))
	}
}

// deliver hands a frame to the node that it is for. A nil run is one that is over, or never was.
func (h *hosted) deliver(f *wire.Frame) {
	if h == nil {
		forget(f)
		return
	}
	if w := h.world.Load(); w != nil {
		if i, known := h.index[nodeOf(f.Target)]; known {
			w.Deliver(int(i), f)
			return
		}
	}
	forget(f)
}

var _ live.Carrier = (*hosted)(nil)

// Send takes a frame to the process of its node.
func (h *hosted) Send(node int, f *wire.Frame) error {
	f.Run = h.run
	err := h.process.node.Send(h.where[node], f)
	for _, gone := range []error{transport.ErrDown, transport.ErrUnknown, transport.ErrClosed} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", live.ErrGone, err)
		}
	}
	return err
}

// Changed tells the process that conducts the run.
func (h *hosted) Changed(node int, present bool) {
	h.process.report(h.lead, h.run, &protos.NodeChanged{Node: int32(node), Present: present})
}

// Halt tells all others that the part of their nodes is over.
func (h *hosted) Halt() {
	seen := map[string]bool{h.process.config.Name: true}
	for _, name := range h.where {
		if !seen[name] {
			h.process.report(name, h.run, &protos.HaltRun{})
		}
		seen[name] = true
	}
}

// roundTrip is what heartbeats take to the process of a node and back.
func (h *hosted) roundTrip(node int) time.Duration {
	peer, _ := h.process.node.Peer(h.where[node])
	return peer.RoundTrip
}

// shelves are the data of the latest submission whose runs other processes conduct.
type shelves struct {
	submission string
	shelf      *shelf
}

// shelfOf returns the shelf for a submission.
func (p *process) shelfOf(submission string) *shelf {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shelves.submission != submission {
		p.shelves = shelves{submission, newShelf(p.config.Data, 2)}
	}
	return p.shelves.shelf
}

// stageOf makes the stage of a run that another process conducts.
func (p *process) stageOf(m *protos.PlaceRun) (*stage, error) {
	if m.Catalog != p.fingerprint {
		return nil, fmt.Errorf("its catalog (%s) differs from that of the process that took the plan (%s): run the same program on all", p.fingerprint, m.Catalog)
	}
	pl, err := Parse(m.File, []byte(m.Plan))
	if err != nil {
		return nil, err
	}
	own := *p.catalog
	own.SamplesElsewhere = m.Samples != nil
	points, err := pl.points(&own)
	if err != nil {
		return nil, err
	}
	pt := &points[0]
	if len(points) != 1 || len(m.Processes) != len(pt.spec.Plan.Nodes) {
		return nil, fmt.Errorf("a plan of %d points and %d nodes was sent with places for %d", len(points), len(pt.spec.Plan.Nodes), len(m.Processes))
	}
	var task *train.Task
	if m.Samples != nil {
		task, err = pt.sentTask(m.Samples, pt.spec.Plan.Seed)
	} else {
		task, err = pt.task(p.shelfOf(m.Submission), pt.spec.Plan.Seed)
	}
	if err != nil {
		return nil, err
	}
	return pt.place(task, Cluster, false, 1)
}

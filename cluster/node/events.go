package node

import (
	"errors"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/journal"
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
	stage  *experiment.Stage

	sending sync.Mutex
	sent    map[[2]string]record.Link // as of the latest message

	mu     sync.Mutex
	events []*protos.RunEvent
}

var _ world.Observer = (*forwarder)(nil)

func newForwarder(h *hosted, s *experiment.Stage) *forwarder {
	return &forwarder{hosted: h, stage: s, sent: map[[2]string]record.Link{}}
}

// Observe keeps an event until it is sent.
func (f *forwarder) Observe(at time.Duration, node int, e actors.Event) {
	var saved uint64
	if w := f.hosted.World(); w != nil {
		saved = w.Saved(node)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) == maxUnsent {
		f.hosted.end(errors.New("more than a million events wait to be sent to the process that records them"))
		return
	}
	f.events = append(f.events, journal.WireEvent(at, node, saved, &e))
}

// send sends what there is in as many messages as it takes; the last one says until when nothing is
// missing.
func (f *forwarder) send() {
	f.sending.Lock()
	defer f.sending.Unlock()
	f.mu.Lock()
	until := f.hosted.World().Now()
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
	for _, l := range f.stage.OwnLinks() {
		key := [2]string{l.From, l.To}
		if f.sent[key] != l {
			f.sent[key] = l
			changed = append(changed, journal.WireEdge(&l))
		}
	}
	return changed
}

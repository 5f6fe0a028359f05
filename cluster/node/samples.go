package node

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Where a plan has samples sent, the process that conducts a run tells the others which set of
// samples there is, and each asks for its workers' samples. They travel beside the run, not over
// its links, before it begins.

// Limits of samples that are sent.
const (
	// portionValues and portionRows bound one message.
	portionValues = 1 << 18
	portionRows   = 1 << 16
)

// sampleSet describes a task's samples to processes that do not read them.
func sampleSet(t *train.Task) *protos.SampleSet {
	m := &protos.SampleSet{Name: t.Train.Name, Inputs: int32(t.Train.Inputs), Classes: t.Train.Classes,
		Length: int32(t.Train.Len())}
	for _, n := range t.Train.Counts() {
		m.Counts = append(m.Counts, int32(n))
	}
	for _, shard := range t.Shards {
		m.Shards = append(m.Shards, int32(len(shard)))
	}
	return m
}

// arrival takes in the samples of the workers that live in this process.
type arrival struct {
	task *train.Task
	done chan struct{} // closed when all are there

	mu      sync.Mutex
	missing map[int32]int // of each worker
	left    int           // of all together
}

// awaitSamples asks the process that conducts the run for samples, and waits for them.
func (h *hosted) awaitSamples(s *experiment.Stage) error {
	a := &arrival{task: s.Task, done: make(chan struct{}), missing: map[int32]int{}}
	ask := &protos.AskSamples{}
	for i, worker := range s.Workers() {
		if h.Hosts(worker) {
			a.missing[int32(i)] = len(s.Task.Shards[i])
			a.left += len(s.Task.Shards[i])
			ask.Workers = append(ask.Workers, int32(i))
		}
	}
	if a.left == 0 {
		return nil
	}
	h.samples.Store(a)
	defer h.samples.Store(nil)
	if err := h.process.tell(h.Lead(), h.Number(), ask); err != nil {
		return err
	}
	select {
	case <-a.done:
		return nil
	case <-h.stop.Done():
		return context.Cause(h.stop)
	}
}

// arrived takes in some samples.
func (h *hosted) arrived(m *protos.Samples, tensors []*protos.Tensor) {
	a := h.samples.Load()
	if a == nil {
		return
	}
	if err := a.add(m, tensors); err != nil {
		h.end(fmt.Errorf("samples from %s: %w", h.Lead(), err))
	}
}

func (a *arrival) add(m *protos.Samples, tensors []*protos.Tensor) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	set := a.task.Train
	left, known := a.missing[m.Worker]
	switch {
	case a.left == 0:
		return nil
	case !known:
		return fmt.Errorf("worker %d does not live here", m.Worker)
	case len(m.Rows) == 0 || len(m.Rows) > left || len(m.Labels) != len(m.Rows) ||
		int(m.First) != len(a.task.Shards[m.Worker])-left:
		return fmt.Errorf("%d rows and %d labels from %d on; %d are missing", len(m.Rows), len(m.Labels), m.First, left)
	case len(tensors) != 1 || len(tensors[0].Data) != len(m.Rows)*set.Inputs:
		return fmt.Errorf("%d rows of %d inputs do not come with as many values", len(m.Rows), set.Inputs)
	}
	for i, row := range m.Rows {
		if row < 0 || int(row) >= set.Len() || m.Labels[i] < 0 || int(m.Labels[i]) >= len(set.Classes) {
			return fmt.Errorf("row %d of %d with label %d of %d", row, set.Len(), m.Labels[i], len(set.Classes))
		}
		copy(set.X[int(row)*set.Inputs:], tensors[0].Data[i*set.Inputs:(i+1)*set.Inputs])
		set.Y[row] = m.Labels[i]
	}
	copy(a.task.Shards[m.Worker][m.First:], m.Rows)
	a.missing[m.Worker] -= len(m.Rows)
	if a.left -= len(m.Rows); a.left == 0 {
		close(a.done)
	}
	return nil
}

// supply sends a process the samples of the workers that it asks for. Without them it cannot place
// its nodes.
func (c *conductor) supply(name string, m *protos.AskSamples) {
	if err := c.sendShards(name, m.Workers); err != nil {
		c.note(name, func(q *party) {
			if !q.placed {
				q.err = cmp.Or(q.err, fmt.Errorf("its samples cannot be sent: %w", err))
			}
		})
	}
}

func (c *conductor) sendShards(name string, workers []int32) error {
	t := c.stage.Task
	for _, worker := range workers {
		if worker < 0 || int(worker) >= len(t.Shards) {
			return fmt.Errorf("it asks for the samples of worker %d, of %d", worker, len(t.Shards))
		}
		shard := t.Shards[worker]
		portion := min(max(portionValues/t.Train.Inputs, 1), portionRows)
		for first := 0; first < len(shard); first += portion {
			rows := shard[first:min(first+portion, len(shard))]
			if err := c.sendSamples(name, worker, first, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendSamples sends some of a worker's samples. The number of the first one is first.
func (c *conductor) sendSamples(name string, worker int32, first int, rows []int32) error {
	set := c.stage.Task.Train
	m := &protos.Samples{Worker: worker, First: int32(first), Rows: rows}
	tensor := c.process.tensors.Get(len(rows) * set.Inputs)
	for i, row := range rows {
		copy(tensor.Data[i*set.Inputs:], set.Row(int(row)))
		m.Labels = append(m.Labels, set.Y[row])
	}
	frame := &wire.Frame{Kind: wire.User, Run: c.Number(), Head: m, Tensors: []*protos.Tensor{tensor}}
	return c.process.node.SendOn(c.stop, name, frame)
}

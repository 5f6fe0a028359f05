package innetwork

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// worker computes gradients, has each summed with those of all others, and makes the same step of
// the optimizer as they do.
type worker struct {
	env     actors.Env
	rules   Architecture
	batch   float32 // samples of a full one
	local   *train.Local
	replica *peer.Replica
	idle    peer.Idle
	packets *protos.Messages[*protos.Aggregate]
	membership
	repeats

	finished uint64          // steps
	last     *train.Gradient // of the step under way, once it is computed; recorded when that is finished
	gradient *protos.Tensor  // weighted by the batch
	own      []uint64        // its peaks, by chunk

	window  window
	opening uint64         // the packet that opens the step; chunk i is packet opening + 1 + i
	peaks   []uint64       // of all workers, as far as known
	samples float64        // of the batches of all
	mean    *protos.Tensor // of the gradients, as far as there
}

func newWorker(env actors.Env, task *train.Task, a Architecture) (*worker, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	n := task.Model.Params()
	chunks := (n + a.Values - 1) / a.Values
	return &worker{
		env: env, rules: a, batch: float32(task.Batch), local: local, replica: peer.NewReplica(env, task),
		idle: peer.NewIdle(env), packets: newPackets(), own: make([]uint64, chunks), peaks: make([]uint64, chunks),
		mean: env.Tensors().Get(n), repeats: repeats{flights: make([]flight, a.Slots)},
	}, nil
}

var _ actors.Waiter = (*worker)(nil)

// Waiting implements [actors.Waiter].
func (w *worker) Waiting() string {
	if w.stage == behind {
		return "the model of " + w.env.View().Members[w.source].Name
	}
	if w.stage == broken {
		return fmt.Sprintf("switch %s to be there", w.env.View().Members[w.parent].Name)
	}
	if number, ok := w.window.oldest(); ok {
		return fmt.Sprintf("the result of packet %d, of step %d, from switch %s", number, w.finished,
			w.env.View().Members[w.parent].Name)
	}
	return ""
}

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		w.receive(ctx, m)
		m.Release()
	case *train.Gradient:
		w.step(ctx, m)
	case overdue:
		w.overdue(ctx, m)
	}
}

func (w *worker) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		w.start(ctx, head.Joins)
	case *protos.View:
		w.follow(ctx)
	case *protos.Aggregate:
		w.result(ctx, head, m.Tensors)
	case *protos.Report:
		w.answer(ctx, head)
	case *protos.Outcome:
		w.adopt(ctx, head, m.Tensors)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, w.env, head, w.replica.Params, w.replica.Version)
	default:
		actors.Unexpected(w.env, m)
	}
}

// begin starts a step.
func (w *worker) begin() { w.local.Begin(w.replica.Params.Retain()) }

// step takes in the gradient of a step. It counts for the size of its batch.
func (w *worker) step(ctx actor.Context, g *train.Gradient) {
	w.local.End()
	w.last, w.gradient = g, g.Values
	if weight := float32(g.Samples) / w.batch; weight != 1 {
		nn.Scale(w.gradient.Data, weight)
		w.env.Charge(float64(len(w.gradient.Data)))
	}
	w.measure()
	w.env.Charge(float64(len(w.gradient.Data)))
	w.open(ctx)
}

// measure computes the peak of each chunk of the gradient.
func (w *worker) measure() {
	for i := range w.own {
		w.own[i] = peak(w.chunk(w.gradient.Data, i))
	}
}

// chunk is a part of a vector of the model's size.
func (w *worker) chunk(vector []float32, i int) []float32 {
	low := i * w.rules.Values
	return vector[low:min(low+w.rules.Values, len(vector))]
}

// open opens the step as soon as the gradient is there and all have agreed on the step.
func (w *worker) open(ctx actor.Context) {
	if w.last == nil || w.stage != going {
		return
	}
	w.idle.Wait("the sum")
	w.opening = w.window.limit
	w.grant(ctx, 1, false)
}

// grant gives the window more packets to send. They may be late because of a repeat.
func (w *worker) grant(ctx actor.Context, packets int, late bool) {
	first := w.window.limit
	w.window.grant(packets)
	for number := first; number < first+uint64(min(packets, w.rules.Slots)); number++ {
		w.push(ctx, number, late)
	}
}

// push sends a packet if its turn has come.
func (w *worker) push(ctx actor.Context, number uint64, late bool) {
	if w.window.ready(number) {
		w.window.send(number)
		w.flights[w.window.slot(number)] = flight{late: late}
		w.send(ctx, number)
	}
}

// send sends a packet, for the first time or again.
func (w *worker) send(ctx actor.Context, number uint64) {
	m, head := w.packets.Get()
	head.View, head.Node, head.Number, head.Peak, head.Samples = w.view, int32(w.env.Node()), number, 0, 0
	f := &w.flights[w.window.slot(number)]
	head.Again = f.late || f.tries > 0
	switch number {
	case 0:
		head.Peak = w.standing()
	case w.opening:
		head.Samples = uint64(w.last.Samples)
		for _, p := range w.own[:min(len(w.own), w.rules.Slots)] {
			head.Peak = max(head.Peak, p)
		}
	default:
		chunk := int(number - w.opening - 1)
		values := w.chunk(w.gradient.Data, chunk)
		words := w.env.Tensors().Get(len(values))
		fix(words.Data, values, w.peaks[chunk], w.workers)
		w.env.Charge(float64(len(values)))
		m.Tensors = append(m.Tensors, words)
		if next := chunk + w.rules.Slots; next < len(w.own) {
			head.Peak = w.own[next]
		}
	}
	ctx.Send(w.env.View().Members[w.parent].PID, m)
	if w.repeating() {
		w.look(w.depart(w.window.slot(number)))
	}
}

// result takes in a packet of the switch.
func (w *worker) result(ctx actor.Context, head *protos.Aggregate, tensors []*protos.Tensor) {
	if !actors.Known(w.env, head.Node) || head.View != w.view || w.stage <= broken {
		return
	}
	p, err := read(head, tensors)
	var chunk []float32
	number := head.Number - w.opening - 1
	if head.Number > w.opening && number < uint64(len(w.own)) {
		chunk = w.chunk(w.mean.Data, int(number))
	}
	switch {
	case int(head.Node) != w.parent:
		err = fmt.Errorf("this worker's switch is %s", w.env.View().Members[w.parent].Name)
	case err == nil && !w.window.result(p.number):
		return
	case err == nil && len(p.words) != len(chunk):
		err = fmt.Errorf("it has %d values instead of %d", len(p.words), len(chunk))
	}
	if err != nil {
		actors.Fail(w.env, "the result of packet %d by %s in view %d: %w", head.Number,
			w.env.View().Members[head.Node].Name, head.View, err)
		return
	}
	w.heard(p)
	switch p.number {
	case 0:
		w.agree(ctx, p.peak)
	case w.opening:
		for i := range min(len(w.peaks), w.rules.Slots) {
			w.peaks[i] = p.peak
		}
		w.samples = float64(p.samples)
		w.grant(ctx, len(w.own), p.late)
	default:
		float(chunk, p.words, w.peaks[number], w.workers, w.samples/float64(w.batch))
		w.env.Charge(float64(len(chunk)))
		if next := int(number) + w.rules.Slots; next < len(w.peaks) {
			w.peaks[next] = p.peak
		}
		w.push(ctx, p.number+uint64(w.rules.Slots), p.late)
		if w.window.left == 0 {
			w.finish()
		}
	}
}

// finish ends the step with the mean of all gradients, and begins the next.
func (w *worker) finish() {
	w.idle.Resume()
	w.replica.Update(w.mean.Data)
	w.finished++
	w.count()
	w.begin()
}

// count counts this worker's part of the step that is finished.
func (w *worker) count() {
	w.local.Record(w.last)
	w.gradient.Release()
	w.last, w.gradient = nil, nil
}

// read makes a packet of a message.
func read(head *protos.Aggregate, tensors []*protos.Tensor) (packet, error) {
	p := packet{number: head.Number, peak: head.Peak, samples: head.Samples, late: head.Again}
	switch len(tensors) {
	case 0:
	case 1:
		p.words = tensors[0].Data
	default:
		return p, fmt.Errorf("it has %d tensors instead of 1", len(tensors))
	}
	return p, nil
}

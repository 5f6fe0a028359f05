package main

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// worker makes a step with each of its batches in turn: it pulls the weights of the batch's keys
// alone, computes the gradient, and pushes what its filters leave of it.
type worker struct {
	env      actors.Env
	client   *table.Client
	filter   filter
	batches  []*batch
	lists    []*table.Keys // of the batches
	next     int           // batch
	pull     table.Timestamp
	weights  *protos.Tensor
	gradient []float32
	places   []int32
	step     uint64
}

// computed is the result of a step.
type computed struct{ loss float64 }

func newWorker(env actors.Env, task *train.Task, l logistic) (actor.Actor, error) {
	tables, err := l.tables(task)
	if err != nil {
		return nil, err
	}
	place, err := task.Worker(env.View(), env.Node())
	if err != nil {
		return nil, err
	}
	w := &worker{env: env, batches: batches(task, place, l.keys(task))}
	w.filter = filter{filters: l.Filters, penalty: l.Penalty, random: env.Rand("skip"),
		kept: make([]float32, task.Train.Inputs)}
	o := table.Options{Delay: l.Delay, WholeLists: !l.Filters.KeyCaching}
	if w.client, err = table.NewClient(env, tables, l.Servers, o); err != nil {
		return nil, err
	}
	for _, b := range w.batches {
		keys, err := w.client.List(weights, b.keys)
		if err != nil {
			return nil, fmt.Errorf("a batch: %w", err)
		}
		w.lists = append(w.lists, keys)
	}
	return w, nil
}

// Receive has three things to do: to begin, to compute with what was pulled, to push what was
// computed.
func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *computed:
		w.push(ctx, m.loss)
	case *protos.Message:
		done, own := w.client.Receive(ctx, m)
		for _, d := range done {
			if d.Time == w.pull {
				w.compute(d.Values)
			}
		}
		switch m.Head.(type) {
		case *protos.Start:
			w.begin(ctx)
		case *protos.View:
		default:
			if !own {
				actors.Unexpected(w.env, m)
			}
		}
		m.Release()
	}
}

// begin asks for the weights of the next batch.
func (w *worker) begin(ctx actor.Context) { w.pull = w.client.Pull(ctx, w.lists[w.next]) }

// compute computes the gradient by weights, which it takes over.
func (w *worker) compute(weights *protos.Tensor) {
	b := w.batches[w.next]
	w.weights = weights
	w.gradient = append(w.gradient[:0], make([]float32, len(b.keys))...)
	w.env.Compute(actors.Job{Work: b.work(), Step: true,
		Do: func() any { return &computed{b.gradient(weights.Data, w.gradient)} }})
}

// push pushes what the filters leave of the gradient, and goes on with the next batch.
func (w *worker) push(ctx actor.Context, loss float64) {
	b := w.batches[w.next]
	w.places = append(w.places[:0], make([]int32, len(b.keys))...)
	n := w.filter.apply(b, w.weights.Data, w.gradient, w.places)
	w.env.Charge(2 * float64(len(b.keys)))
	w.weights.Release()
	w.weights = nil
	keys := w.lists[w.next]
	if n > 0 && n < len(b.keys) {
		some := make([]uint64, n)
		for i, place := range w.places[:n] {
			some[i] = b.keys[place]
		}
		var err error
		if keys, err = w.client.List(weights, some); err != nil {
			actors.Fail(w.env, "%w", err)
			return
		}
	}
	if n > 0 {
		w.client.Push(ctx, keys, w.env.Tensors().Copy(w.gradient[:n]))
	}
	w.step++
	w.env.Record(actors.Event{Kind: actors.StepDone, Step: w.step, Samples: len(b.signs), Loss: loss})
	if w.next++; w.next == len(w.batches) {
		w.next = 0
		w.report()
	}
	w.begin(ctx)
}

// What the record calls the bytes that each filter has saved so far.
const (
	byCaching      = "bytes saved by key caching"
	byKKT          = "bytes saved by the KKT filter"
	bySignificance = "bytes saved by the significance filter"
	bySkip         = "bytes saved by random skips"
)

// report records what the filters have saved so far.
func (w *worker) report() {
	for _, s := range []struct {
		name  string
		on    bool
		bytes int64
	}{
		{byCaching, w.filter.KeyCaching, w.client.Traffic().Saved}, {byKKT, w.filter.KKT, w.filter.saved.kkt},
		{bySignificance, w.filter.Significance > 0, w.filter.saved.significance},
		{bySkip, w.filter.Skip > 0, w.filter.saved.skip},
	} {
		if s.on {
			w.env.Record(actors.Event{Kind: actors.Measured, Name: s.name, Value: float64(s.bytes)})
		}
	}
}

// judge has the weights whenever the coordinator wants to see the model: it pulls all that there
// are, and makes the parameters of the plan's model of them.
type judge struct {
	env     actors.Env
	client  *table.Client
	all     *table.Keys
	task    *train.Task
	column  map[uint64]int // of a key
	problem *problem
	asked   map[table.Timestamp]*protos.TakeSnapshot
}

// What the record calls the objective, and how many weights are not 0.
const (
	objective = "objective"
	nonzero   = "weights other than 0"
)

func newJudge(env actors.Env, task *train.Task, l logistic) (actor.Actor, error) {
	tables, err := l.tables(task)
	if err != nil {
		return nil, err
	}
	j := &judge{env: env, task: task, column: map[uint64]int{}, asked: map[table.Timestamp]*protos.TakeSnapshot{},
		problem: newProblem(task, l.keys(task), l.Penalty)}
	if j.client, err = table.NewClient(env, tables, l.Servers, table.Options{Delay: table.Eventual}); err != nil {
		return nil, err
	}
	for column := range task.Train.Inputs {
		j.column[keyOf(column, task.Train.Inputs, l.keys(task))] = column
	}
	j.all, err = j.client.Range(weights, 0, l.keys(task)-1)
	return j, err
}

func (j *judge) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	done, own := j.client.Receive(ctx, m)
	for _, d := range done {
		j.answer(ctx, d)
	}
	switch head := m.Head.(type) {
	case *protos.TakeSnapshot:
		j.asked[j.client.Pull(ctx, j.all)] = &protos.TakeSnapshot{Evaluation: head.Evaluation}
	case *protos.Start, *protos.View:
	default:
		if !own {
			actors.Unexpected(j.env, m)
		}
	}
}

// answer gives the coordinator the model: the logit of class 0 is 0, that of class 1 the sum of the
// weights times the inputs.
func (j *judge) answer(ctx actor.Context, d table.Done) {
	params := j.env.Tensors().Get(j.task.Model.Params())
	clear(params.Data)
	second := params.Data[j.task.Train.Inputs:]
	count := 0
	for i, key := range d.Keys {
		second[j.column[key]] = d.Values.Data[i]
		if d.Values.Data[i] != 0 {
			count++
		}
	}
	d.Values.Release()
	value := j.problem.objective(func(key uint64) float32 { return second[j.column[key]] })
	j.env.Record(actors.Event{Kind: actors.Measured, Name: objective, Value: value})
	j.env.Record(actors.Event{Kind: actors.Measured, Name: nonzero, Value: float64(count)})
	train.AnswerSnapshot(ctx, j.env, j.asked[d.Time], params, uint64(d.Time))
	delete(j.asked, d.Time)
	params.Release()
}

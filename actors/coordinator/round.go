package coordinator

import (
	"math"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// ConsensusDistance is the name under which the root mean square of the Euclidean distances
// of all models from their mean is recorded, at every evaluation of several.
const ConsensusDistance = "consensus distance"

// round is an evaluation: a look at the models of several nodes at one instant.
type round struct {
	number uint64
	at     time.Duration
	lag    time.Duration
	epoch  float64
	step   uint64
	looks  []*look // in the order of the plan
	asked  int     // models that have not arrived
	open   int     // verdicts that are not in

	// What the job that takes all models together finds.
	average  []float32
	verdict  train.Verdict // on the average model, unless that is equal to the nodes'
	distance float64
	same     bool // all models are equal, and so is their average
	found    actors.Figures
}

// look is one at the model of a node.
type look struct {
	round     *round
	node      int
	step      uint64
	params    *protos.Tensor   // nil until it has arrived, and if it never does
	voters    []*protos.Tensor // beside it, where the node predicts by a vote
	judgement *judgement
	void      bool // the node has gone without an answer, or holds no trained model yet
}

// judgement is the verdict on equal models: on one look in a round. It is in when that round is
// settled.
type judgement struct {
	round   uint64
	verdict train.Verdict
}

// evaluate asks the nodes whose models are looked at for them.
func (c *coordinator) evaluate(ctx actor.Context) {
	now := c.env.Now()
	lag := c.run.Policy.Lag
	if lag == 0 {
		lag = max(now-c.previous, firstLag)
	}
	c.previous, c.since = now, 0
	c.asked++
	r := &round{number: c.asked, at: now, lag: lag, epoch: c.epoch(), step: c.progressed()}
	c.rounds = append(c.rounds, r)
	for _, node := range c.looked() {
		r.looks = append(r.looks, &look{round: r, node: node, step: c.stepsOf(node)})
		r.asked++
		r.open++
	}
	c.missing += r.asked
	for _, l := range r.looks {
		ctx.Send(c.env.View().Members[l.node].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: r.number,
			Last: c.ending && c.run.Flush}))
	}
	c.env.Record(actors.Event{Kind: actors.SnapshotTaken, Evaluation: r.number, Epoch: r.epoch, Step: c.total})
}

// round returns the unsettled round with a number, or nil.
func (c *coordinator) round(number uint64) *round {
	i, ok := slices.BinarySearchFunc(c.rounds, number, func(r *round, n uint64) int { return int(r.number) - int(n) })
	if !ok {
		return nil
	}
	return c.rounds[i]
}

// find returns the look that a snapshot answers, or nil.
func (c *coordinator) find(number uint64, node int) *look {
	r := c.round(number)
	if r == nil {
		return nil
	}
	looks := r.looks
	k, ok := slices.BinarySearchFunc(looks, node, func(l *look, node int) int { return l.node - node })
	if !ok {
		return nil
	}
	return looks[k]
}

// take has a snapshot judged, unless an equal one of this round, or of one before, which is settled
// first, has been or is.
func (c *coordinator) take(l *look, tensors []*protos.Tensor) {
	l.params = tensors[0].Retain()
	for _, voter := range tensors[1:] {
		l.voters = append(l.voters, voter.Retain())
	}
	key := hash(tensors)
	do := func() any { return verdictIn{l.round.number} }
	l.judgement = c.judged[key]
	r, result := l.round, c.run.Result
	if l.judgement == nil && r.number > 1 && r.at > result.Changed {
		result.Changed, result.ChangedIn = r.at, r.number
	}
	if c.latest[l.node] != key {
		c.latest[l.node], result.Moved = key, max(result.Moved, r.at)
	}
	if l.judgement == nil || l.judgement.round > l.round.number {
		l.judgement = &judgement{round: l.round.number}
		c.judged[key] = l.judgement
		c.run.Result.Computed++
		do = func() any {
			l.judgement.verdict = c.judgeLook(l)
			return verdictIn{l.round.number}
		}
	}
	c.env.Compute(actors.Job{Lag: c.due(l.round), Do: do})
	c.arrived(l.round)
}

// due is how long it takes until the verdicts of a round are wanted. A holder that is busy answers
// late; the verdict comes when it would have come.
func (c *coordinator) due(r *round) time.Duration { return max(r.at+r.lag-c.env.Now(), 1) }

// arrived counts a model that nobody needs to wait for.
func (c *coordinator) arrived(r *round) {
	r.asked--
	c.missing--
	if r.asked == 0 {
		c.compare(r)
	}
	if c.missing == 0 && c.ending {
		c.halt()
	}
}

// compare has the models of a round taken together, if there are several.
func (c *coordinator) compare(r *round) {
	models := r.models()
	if len(models) < 2 {
		return
	}
	r.open++
	c.env.Compute(actors.Job{Lag: c.due(r), Do: func() any {
		r.together(models, c.judge)
		return verdictIn{r.number}
	}})
}

// models are the looks of which the model has arrived.
func (r *round) models() (list []*look) {
	for _, l := range r.looks {
		if l.params != nil && !l.void {
			list = append(list, l)
		}
	}
	return list
}

// together judges the average model and measures how far the models are from it.
func (r *round) together(models []*look, evaluate func(params []float32) train.Verdict) {
	r.average = make([]float32, len(models[0].params.Data))
	n, sum := float64(len(models)), 0.0
	r.same = true
	for k := range r.average {
		mean := 0.0
		for _, l := range models {
			mean += float64(l.params.Data[k])
		}
		mean /= n
		for _, l := range models {
			d := float64(l.params.Data[k]) - mean
			sum += float64(d * d)
		}
		r.average[k] = float32(mean)
		r.same = r.same && math.Float32bits(r.average[k]) == math.Float32bits(models[0].params.Data[k])
	}
	r.distance = math.Sqrt(sum / n)
	if !r.same {
		r.verdict = evaluate(r.average)
	}
}

// leave gives up the models that a node that has gone still owes.
func (c *coordinator) leave(node int) {
	for _, r := range c.rounds {
		for _, l := range r.looks {
			if l.node == node && l.params == nil && !l.void {
				c.void(l)
			}
		}
	}
	c.settleAll()
}

// void excludes a node from a round.
func (c *coordinator) void(l *look) {
	l.void = true
	l.round.open--
	c.arrived(l.round)
}

// settleAll settles the rounds that are next in order and whose verdicts are in.
func (c *coordinator) settleAll() {
	for len(c.rounds) > 0 && c.rounds[0].asked == 0 && c.rounds[0].open == 0 {
		r := c.rounds[0]
		if c.complete(r) {
			return
		}
		c.rounds = c.rounds[1:]
		if c.settle(r) {
			c.rounds = nil
			return
		}
	}
}

// settle records the verdicts of a round, and reports whether they end the run.
func (c *coordinator) settle(r *round) bool {
	models := r.models()
	if len(models) > 0 {
		c.record(r, models)
	}
	p, before := c.run.Policy, c.before
	if len(models) > 0 {
		if before != nil {
			before.release()
		}
		c.before = r
	}
	switch {
	case c.run.Result.Reached && !p.GoOn, c.ending && r.number == c.last:
		c.conclude(r)
		return true
	}
	return false
}

// record puts the verdicts on the models of a round into the record, and notes what has arrived at
// the target with it.
func (c *coordinator) record(r *round, models []*look) {
	c.run.Result.Evaluations += len(models)
	if len(models) > 1 && !r.same {
		c.run.Result.Computed++
	}
	c.recordModels(r, models)
	if len(models) > 1 {
		c.env.Record(actors.Event{Kind: actors.Measured, Name: ConsensusDistance, At: r.at, Dated: true,
			Value: r.distance})
	}
	c.recordFigures(r, models)
	for _, of := range figures {
		c.cross(of, r)
	}
}

// figures are what can be judged.
var figures = [...]actors.Of{actors.AverageModel, actors.Mean, actors.All, actors.Any}

// recordModels records the verdict on each model of a round.
func (c *coordinator) recordModels(r *round, models []*look) {
	for _, l := range models {
		s := l.score()
		c.env.Record(actors.Event{
			Kind: actors.Evaluated, Evaluation: r.number, Origin: l.node, At: r.at, Epoch: r.epoch, Step: l.step,
			Accuracy: s.Accuracy, Loss: s.Loss, Samples: s.Samples,
		})
	}
}

// recordFigures records what the verdicts of a round come to.
func (c *coordinator) recordFigures(r *round, models []*look) {
	r.figures(models, c.run.Policy.Target)
	score := r.found.Score(c.run.Policy.Of)
	c.env.Record(actors.Event{
		Kind: actors.Summarized, Evaluation: r.number, At: r.at, Epoch: r.epoch, Step: r.step,
		Accuracy: score.Accuracy, Loss: score.Loss, Samples: score.Samples, Figures: &r.found,
	})
}

// figures sums the verdicts of a round up.
func (r *round) figures(models []*look, target float64) {
	r.found = actors.Figures{Models: len(models)}
	f := &r.found
	f.All, f.Any = models[0].score(), models[0].score()
	for _, l := range models {
		s := l.score()
		f.Mean.Accuracy += s.Accuracy / float64(len(models))
		f.Mean.Loss += s.Loss / float64(len(models))
		if s.Accuracy < f.All.Accuracy {
			f.All = s
		}
		if s.Accuracy > f.Any.Accuracy {
			f.Any = s
		}
	}
	r.estimate(models, target)
	f.AverageModel = scoreOf(r.verdict)
	if r.same {
		f.AverageModel = models[0].score()
	}
	if len(models) == 1 {
		f.AverageModel, f.Mean = f.Any, f.Any
	}
}

func (l *look) score() actors.Score { return scoreOf(l.judgement.verdict) }

func scoreOf(v train.Verdict) actors.Score {
	return actors.Score{Accuracy: v.Accuracy, Loss: v.Loss, Samples: v.Samples}
}

// cross notes when a figure arrived at the target: interpolated linearly between the last two
// evaluations.
func (c *coordinator) cross(of actors.Of, r *round) {
	result, target := c.run.Result, c.run.Policy.Target
	if !c.arrives(of, r) {
		return
	}
	at, epoch, now := r.at, r.epoch, r.found.Score(of).Accuracy
	if b := c.before; b != nil {
		then, share := b.found.Score(of).Accuracy, 0.0
		if then < target { // or it was taken to be, and is not
			share = (target - then) / (now - then)
		}
		at = b.at + time.Duration(share*float64(r.at-b.at))
		epoch = b.epoch + share*(r.epoch-b.epoch)
	}
	if result.Crossings == nil {
		result.Crossings = map[actors.Of]time.Duration{}
	}
	result.Crossings[of] = at
	if of == c.run.Policy.Of {
		result.Reached, result.TimeToTarget, result.EpochsToTarget = true, at, epoch
	}
}

func (r *round) release() {
	for _, l := range r.models() {
		l.params.Release()
		for _, voter := range l.voters {
			voter.Release()
		}
	}
}

// conclude ends the run with a round. The models come from the last round that has any.
func (c *coordinator) conclude(r *round) {
	result := c.run.Result
	result.Last, result.End = r.number, r.at
	if c.before != nil {
		for _, l := range c.before.models() {
			result.Models = append(result.Models, Model{Node: l.node, Params: slices.Clone(l.params.Data),
				Score: l.score()})
		}
		result.Average = c.before.average
	}
	c.control.Finish()
}

// hash tells models, and those that vote together, apart by their bits.
func hash(models []*protos.Tensor) uint64 {
	d := xxhash.New()
	var b [256]byte
	for _, m := range models {
		for params := m.Data; len(params) > 0; {
			n := min(len(params), len(b)/4)
			for i, v := range params[:n] {
				bits := math.Float32bits(v)
				b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
			}
			_, _ = d.Write(b[:4*n])
			params = params[n:]
		}
	}
	return d.Sum64()
}

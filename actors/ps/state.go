package ps

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

var (
	_ state.Declared = (*server)(nil)
	_ state.Declared = (*worker)(nil)
)

// State implements [state.Declared].
func (s *server) State(st *state.State) {
	st.Bool("begun", &s.begun)
	s.shards.State(st, func(st *state.State, k int, h **shard) {
		if st.Restoring() {
			*h = s.newShard(k)
		}
		(*h).State(st)
	})
	if s.replicas != nil {
		st.Group("replicas", func(st *state.State) { s.replicas.State(st, s.copyState) })
	}
	state.List(st, "snapshots", &s.gathers, func(st *state.State, g **gather) {
		if st.Restoring() {
			*g = &gather{}
		}
		(*g).State(st)
	})
	state.List(st, "asks", &s.asks, func(st *state.State, a **protos.PullShards) { state.Proto(st, "ask", a) })
}

// copyState declares this server's copy of another server's shard.
func (s *server) copyState(st *state.State, k int, of *shards.Copy) {
	if st.Restoring() {
		*of = s.newReplica(k)
	}
	(*of).(*replica).State(st)
}

// State declares the copy of a shard.
func (c *replica) State(s *state.State) {
	state.Proto(s, "head", &c.head)
	state.Each(s, "workers", c.workers, func(s *state.State, _ int, w **protos.Shard_Worker) {
		state.Proto(s, "worker", w)
	})
	s.Tensor("params", &c.params)
	train.OptimizerState(s, "optimizer", c.optimizer)
}

// State declares a snapshot under way.
func (g *gather) State(s *state.State) {
	state.Proto(s, "request", &g.request)
	s.Tensor("params", &g.params)
	state.Bools(s, "there", &g.there)
	state.Int(s, "missing", &g.missing)
	state.Int(s, "version", &g.version)
}

// State declares the parameters, and the shard's view of its workers.
func (h *shard) State(s *state.State) {
	s.Tensor("params", &h.params)
	state.Int(s, "version", &h.version)
	train.OptimizerState(s, "optimizer", h.optimizer)
	s.Part("clocks", h.clocks)
	train.DecoderState(s, "gradients", h.gradients)
	state.Each(s, "workers", h.workers, func(s *state.State, node int, w *worked) { h.workerState(s, node, w) })
	state.Int(s, "present", &h.present)
	state.Int(s, "dropped", &h.dropped)
	if h.round != nil {
		s.Part("round", h.round)
	}
	if e := h.epoch; e != nil {
		state.Int(s, "epoch", &e.number)
		state.Int(s, "seen", &e.seen)
	}
	if h.log != nil {
		s.Part("log", h.log)
		state.Each(s, "told", h.told, func(s *state.State, _ int, k *known) { k.State(s) })
	}
}

// workerState declares the shard's view of a worker.
func (h *shard) workerState(s *state.State, node int, w *worked) {
	answered := w.down != nil
	actors.MemberState(s, "present", h.env, node, &w.pid)
	state.Int(s, "life", &w.life)
	s.Bool("rests", &w.rests)
	state.Int(s, "epoch", &w.epoch)
	s.Bool("awake", &w.awake)
	state.Int(s, "came", &w.came)
	state.Int(s, "goes", &w.goes)
	s.Bool("answered", &answered)
	if s.Restoring() {
		if w.life > 0 {
			w.up = h.decoder()
		}
		if answered {
			w.down = h.compressor.sender(h.params.Data)
		}
	}
	if w.up != h.gradients {
		train.DecoderState(s, "up", w.up)
	}
	train.EncoderState(s, "down", w.down)
}

// State declares the last report about a worker to the replicas.
func (k *known) State(s *state.State) {
	s.Bool("told", &k.told)
	s.Part("clock", &k.clock)
	state.Int(s, "life", &k.life)
	state.Int(s, "epoch", &k.epoch)
	state.Int(s, "came", &k.came)
	state.Int(s, "goes", &k.goes)
	s.Bool("rests", &k.rests)
	s.Bool("present", &k.present)
	s.Bool("gradient", &k.gradient)
}

// State declares the gradients of the round under way. The list of workers in the last sum is scratch
// memory: it is of no use after the step.
func (r *round) State(s *state.State) {
	state.Each(s, "gradients", r.gradients, func(s *state.State, _ int, t **protos.Tensor) { s.Tensor("values", t) })
	state.Each(s, "pushes", r.pushes, func(s *state.State, _ int, p *pushID) {
		state.Int(s, "life", &p.life)
		state.Int(s, "number", &p.number)
	})
	state.Bools(s, "missing", &r.missing)
}

// State implements [state.Declared]. The owners of the shards follow from the view, which may be later
// than the one that the worker was made in.
func (w *worker) State(s *state.State) {
	if s.Restoring() {
		w.locate()
	}
	s.Part("local", w.local)
	if w.team != nil {
		s.Part("team", w.team)
	}
	s.Bool("busy", &w.busy)
	s.Part("round", &w.round)
	state.Each(s, "parts", w.parts, func(s *state.State, _ int, p **part) { (*p).State(s) })
	state.Int(s, "behind", &w.behind)
	state.Int(s, "since", &w.since)
	s.Messages("early", &w.early)
	s.Part("fleet", &w.fleet)
	s.Tensor("params", &w.params)
	state.Int(s, "epoch", &w.epoch)
	state.Int(s, "left", &w.left)
	state.Int(s, "idle", &w.idle)
	s.Bool("waiting", &w.waiting)
}

// State declares the worker's own model, and the gradients since its last push.
func (r *localRound) State(s *state.State) {
	train.OptimizerState(s, "optimizer", r.optimizer)
	s.Tensor("model", &r.model)
	s.Tensor("sum", &r.sum)
	state.Int(s, "steps", &r.steps)
	state.Int(s, "samples", &r.samples)
}

// State declares the worker's view of a shard.
func (p *part) State(s *state.State) {
	s.Group("latest", func(s *state.State) {
		s.Tensor("params", &p.latest.params)
		state.Int(s, "version", &p.latest.version)
		state.Int(s, "epoch", &p.latest.epoch)
	})
	state.Int(s, "version", &p.version)
	state.Int(s, "life", &p.life)
	state.Int(s, "view", &p.view)
	s.Bool("fresh", &p.fresh)
	state.Int(s, "clock", &p.clock)
	state.Int(s, "heard", &p.heard)
	state.Int(s, "pushes", &p.pushes)
	state.List(s, "sent", &p.sent, func(s *state.State, sent *push) { sent.State(s) })
	state.Int(s, "awaits", &p.awaits)
	state.Int(s, "epoch", &p.epoch)
	if s.Restoring() && p.life > 0 {
		p.meet()
	}
	train.EncoderState(s, "up", p.up)
	train.DecoderState(s, "down", p.down)
}

// State declares a push that the worker may retransmit.
func (p *push) State(s *state.State) {
	state.Int(s, "step", &p.step)
	state.Int(s, "version", &p.version)
	state.Int(s, "epoch", &p.epoch)
	state.Int(s, "samples", &p.samples)
	s.Bool("rests", &p.rests)
	s.Bool("whole", &p.whole)
	state.Int(s, "number", &p.number)
	s.Tensor("values", &p.values)
}

package holders

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// A plan may kill each process that carries it out: it needs more memory than there is, or makes
// the runtime of Go give up. Its submission would be handed from process to process for ever. So an
// attempt is known to a majority of the holders before it begins, and stays in the plan until a run
// has finished or the attempt is given up in order. The attempts that are left are of processes
// that have died of the plan, or have died by chance: one whose run had advanced, by an evaluation
// or a checkpoint, is likely to be of the second sort.

// Attempt adds an attempt of this process to a submission that it carries out. It returns when a
// majority of the holders has it: the attempt may begin. The error is that of Commit.
func (s *Service) Attempt(ctx context.Context, id string) error {
	return s.reach(ctx, id, func(h *holding) {
		h.plan.Attempts = append(h.plan.Attempts, s.attempt())
	})
}

// attempt is a new one of this process.
func (s *Service) attempt() *protos.Attempt {
	return &protos.Attempt{Process: s.config.Process, Incarnation: s.config.Incarnation}
}

// owns reports whether an attempt is this process's, and under way.
func (s *Service) owns(a *protos.Attempt) bool {
	return a.Process == s.config.Process && a.Incarnation == s.config.Incarnation && !a.Unrecorded
}

// Advanced has the other holders know that the run under way has got ahead since the attempt of
// this process began. It does not wait.
func (s *Service) Advanced(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil || h.duty == nil || h.ended {
		return
	}
	if s.markAdvanced(h) {
		s.advance(h)
	}
}

// markAdvanced notes that the attempt of this process has advanced, and reports whether that is
// news; s.mu is held.
func (s *Service) markAdvanced(h *holding) bool {
	i := slices.IndexFunc(h.plan.Attempts, s.owns)
	if i < 0 || h.plan.Attempts[i].Advanced {
		return false
	}
	h.plan = proto.CloneOf(h.plan)
	h.plan.Attempts[i].Advanced = true
	return true
}

// saved has nothing count that died before the run was saved; s.mu is held.
func (s *Service) saved(h *holding) {
	s.markAdvanced(h)
	if slices.ContainsFunc(h.plan.Attempts, func(a *protos.Attempt) bool { return !s.owns(a) }) {
		h.plan = proto.CloneOf(h.plan)
		h.plan.Attempts = slices.DeleteFunc(h.plan.Attempts, func(a *protos.Attempt) bool { return !s.owns(a) })
	}
}

// Deaths are the attempts at a submission, since a run was finished or saved last, whose processes
// have died meanwhile, or have handed it over because they could not keep the record.
func (s *Service) Deaths(id string) (dead []*protos.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil {
		return nil
	}
	for _, a := range h.plan.Attempts {
		if !s.owns(a) && (a.Unrecorded || a.Process == s.config.Process ||
			s.config.Gone(a.Process, a.Incarnation)) {
			dead = append(dead, a)
		}
	}
	return dead
}

// giveBack removes the attempt of this process from a plan, because it leaves in order.
func (s *Service) giveBack(plan *protos.HeldPlan) *protos.HeldPlan {
	if !slices.ContainsFunc(plan.Attempts, s.owns) {
		return plan
	}
	plan = proto.CloneOf(plan)
	plan.Attempts = slices.DeleteFunc(plan.Attempts, s.owns)
	return plan
}

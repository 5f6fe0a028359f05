package holders

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// A plan can kill every process that runs it: it needs more memory than there is, or makes the Go
// runtime abort. Its submission would be handed from process to process for ever. So each
// attempt is committed before it begins, and the attempt stays in the plan until a run has
// finished or the process gives it up cleanly. The attempts left over belong to processes that the
// plan has killed, or that died by chance: chance is more likely if the run had made progress, by an
// evaluation or a checkpoint.

// Attempt adds an attempt of this process to a submission that it conducts. It returns when the attempt
// is committed: then it may begin. The error is that of End.
func (s *Service) Attempt(ctx context.Context, id string) error {
	return s.reach(ctx, id, false, func(h *holding) {
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

// Advanced tells the other holders that the run has made progress since this process's attempt began.
// It does not wait.
func (s *Service) Advanced(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil || h.duty == nil || h.duty.lost || h.ended {
		return
	}
	if s.markAdvanced(h) {
		s.advance(h)
	}
}

// markAdvanced marks this process's attempt as advanced, and reports whether it was not before; s.mu
// is held.
func (s *Service) markAdvanced(h *holding) bool {
	i := slices.IndexFunc(h.plan.Attempts, s.owns)
	if i < 0 || h.plan.Attempts[i].Advanced {
		return false
	}
	h.plan = proto.CloneOf(h.plan)
	h.plan.Attempts[i].Advanced = true
	return true
}

// saved drops the attempts from before the run was saved; s.mu is held.
func (s *Service) saved(h *holding) {
	s.markAdvanced(h)
	if slices.ContainsFunc(h.plan.Attempts, func(a *protos.Attempt) bool { return !s.owns(a) }) {
		h.plan = proto.CloneOf(h.plan)
		h.plan.Attempts = slices.DeleteFunc(h.plan.Attempts, func(a *protos.Attempt) bool { return !s.owns(a) })
	}
}

// Deaths returns the attempts at a submission, since a run last finished or was saved, whose processes
// have died or have handed it over because they could not keep the record. An absent
// process may only be paused, and does not count as dead.
func (s *Service) Deaths(id string) (dead []*protos.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil {
		return nil
	}
	for _, a := range h.plan.Attempts {
		if !s.owns(a) && (a.Unrecorded || a.Process == s.config.Process ||
			s.config.Gone(a.Process, a.Incarnation) && !s.config.Silent(a.Process, a.Incarnation)) {
			dead = append(dead, a)
		}
	}
	return dead
}

// withoutOwnAttempt removes this process's attempt from a plan, because the process leaves cleanly.
func (s *Service) withoutOwnAttempt(plan *protos.HeldPlan) *protos.HeldPlan {
	if !slices.ContainsFunc(plan.Attempts, s.owns) {
		return plan
	}
	plan = proto.CloneOf(plan)
	plan.Attempts = slices.DeleteFunc(plan.Attempts, s.owns)
	return plan
}

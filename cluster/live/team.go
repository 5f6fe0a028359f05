package live

import (
	"sync/atomic"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/live/rt"
)

// squad is a team at work.
type squad struct {
	actors.Team
	env     *env
	begun   atomic.Int64 // steps
	working atomic.Int64 // threads that have not ended
	deliver func(result any)
}

// ComputeTeam hands every thread of a team over to the pool. One that gets a thread of the pool
// only when the others have begun all steps has nothing left to do.
func (e *env) ComputeTeam(team actors.Team) {
	if e.life.over() {
		return
	}
	s := &squad{Team: team, env: e}
	s.Threads = min(team.Threads, team.Steps)
	s.working.Store(int64(s.Threads))
	e.life.mailbox.begin()
	s.deliver = e.book(team.Threads*team.Cores, e.life.walk.TeamCost(team))
	for thread := range s.Threads {
		e.submit(rt.Steps, func() { s.work(thread) })
	}
}

// work makes steps on one thread until all have begun. The last thread computes the result.
func (s *squad) work(thread int) {
	defer func() {
		if s.working.Add(-1) == 0 {
			s.env.compute(s.Result, s.deliver)
		}
	}()
	defer s.env.recover()
	for !s.env.life.over() {
		step := int(s.begun.Add(1)) - 1
		if step >= s.Steps {
			return
		}
		s.Begin(thread, step)
		s.End(thread, step)
	}
}

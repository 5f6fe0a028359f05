package world

import (
	"math/rand/v2"

	"github.com/gradwire/gradwire/actors"
)

// Interleave does a team's steps on the calling goroutine, in an order drawn by a seed: again and
// again one of the threads that have something left to do, each with the same probability, begins
// its next step or ends the one that it has begun.
func Interleave(team actors.Team, seed uint64) any {
	random := rand.New(rand.NewPCG(seed, 0))
	type thread struct {
		number, step int
		begun        bool
	}
	able := make([]thread, min(team.Threads, team.Steps))
	for i := range able {
		able[i].number = i
	}
	for next := 0; len(able) > 0; {
		i := random.IntN(len(able))
		t := &able[i]
		switch {
		case t.begun:
			team.End(t.number, t.step)
			t.begun = false
		case next < team.Steps:
			t.step, t.begun = next, true
			team.Begin(t.number, t.step)
			next++
		default:
			able = append(able[:i], able[i+1:]...)
		}
	}
	return team.Result()
}

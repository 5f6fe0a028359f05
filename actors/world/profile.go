package world

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
)

// Profile is the emulated speed of a node.
type Profile struct {
	// Cores is how many jobs of one core run side by side, at least 1.
	Cores int
	// Speed is in FLOP/s a core.
	Speed float64
	// Step, where positive, is the time of every training step, or of the first if it wanders.
	Step time.Duration
	// Wander is how that time changes from one step to the next.
	Wander Wander
	// Slowdowns are when the node is slower than this.
	Slowdowns []Slowdown
}

// Wander is a random walk: after each step the time of the next shifts by a uniform whole number of
// nanoseconds in [−By, +By] and then moves to the nearest value within [Min, Max]. The zero value
// stands still.
type Wander struct {
	By, Min, Max time.Duration
}

// Unlimited is the profile of a node that computes in no time, as the coordinator's.
var Unlimited = Profile{Cores: 1, Speed: math.Inf(1)}

// Cost is the time that the profile asks for a job; of a step, before it has wandered.
func (p Profile) Cost(job actors.Job) time.Duration {
	if job.Step && p.Step > 0 {
		return p.Step
	}
	cores := min(max(job.Cores, 1), max(p.Cores, 1))
	return p.Time(job.Work / float64(cores))
}

// TeamCost is the time that the profile asks for a team: its threads, or as many of them as there
// are cores for, make one step after the other side by side, all equally long.
func (p Profile) TeamCost(team actors.Team) time.Duration {
	cores := min(max(team.Cores, 1), max(p.Cores, 1))
	turns := float64(p.turns(team))
	if p.Step > 0 {
		return time.Duration(min(turns*float64(p.Step), float64(longest)))
	}
	return p.Time(turns * team.Work / float64(team.Steps*cores))
}

// turns is how many steps the busiest thread of a team makes.
func (p Profile) turns(team actors.Team) int {
	cores := min(max(team.Cores, 1), max(p.Cores, 1))
	abreast := min(team.Threads, max(p.Cores, 1)/cores)
	return (team.Steps + abreast - 1) / abreast
}

// longest is the time of a job that a run will not live to see the end of: a century.
const longest = 100 * 365 * 24 * time.Hour

// Time is how long one core needs for work FLOPs, at most a century.
func (p Profile) Time(work float64) time.Duration {
	return time.Duration(min(work/p.Speed*1e9, float64(longest)))
}

// Walk is the profile of a node in one of its lives: where the time of its steps has wandered.
type Walk struct {
	profile Profile    // with the time of the next step
	random  *rand.Rand // nil for a time that stays
	source  *rand.PCG  // of random
}

// Walk begins that of a life whose actor has random streams of an owner. The time of a node's n-th
// step depends on these and on the seed alone, not on what the node waits for.
func (p Profile) Walk(seed uint64, owner string) *Walk {
	walk := &Walk{profile: p}
	if p.Step > 0 && p.Wander.By > 0 {
		walk.source = actors.Source(seed, owner, "wander")
		walk.random = rand.New(walk.source)
	}
	return walk
}

// State declares the current time of a step, and the position of the random stream.
func (w *Walk) State(s *state.State) {
	if w.random != nil {
		state.Int(s, "step", &w.profile.Step)
		s.Random("random", w.source)
	}
}

// Cost is the time that the node needs for its next job.
func (w *Walk) Cost(job actors.Job) time.Duration {
	cost := w.profile.Cost(job)
	if job.Step && w.random != nil {
		to := w.profile.Wander
		shift := time.Duration(w.random.Int64N(2*int64(to.By)+1)) - to.By
		w.profile.Step = min(max(cost+shift, to.Min), to.Max)
	}
	return cost
}

// TeamCost is the time that the node needs for its next team, whose turns wander like steps.
func (w *Walk) TeamCost(team actors.Team) (cost time.Duration) {
	if w.random == nil {
		return w.profile.TeamCost(team)
	}
	for range w.profile.turns(team) {
		cost = min(cost+w.Cost(actors.Job{Step: true}), longest)
	}
	return cost
}

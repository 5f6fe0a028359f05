package world

import (
	"math"
	"time"

	"github.com/gradwire/gradwire/actors"
)

// Profile is the emulated speed of a node.
type Profile struct {
	// Cores is how many jobs of one core run side by side, at least 1.
	Cores int
	// Speed is in FLOP/s a core.
	Speed float64
	// Step, where positive, is the time of every training step.
	Step time.Duration
}

// Unlimited is the profile of a node that computes in no time, as the coordinator's.
var Unlimited = Profile{Cores: 1, Speed: math.Inf(1)}

// Cost is the time that the profile asks for a job.
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
	abreast := min(team.Threads, max(p.Cores, 1)/cores)
	turns := float64((team.Steps + abreast - 1) / abreast)
	if p.Step > 0 {
		return time.Duration(min(turns*float64(p.Step), float64(longest)))
	}
	return p.Time(turns * team.Work / float64(team.Steps*cores))
}

// longest is the time of a job that a run will not live to see the end of: a century.
const longest = 100 * 365 * 24 * time.Hour

// Time is how long one core needs for work FLOPs, at most a century.
func (p Profile) Time(work float64) time.Duration {
	return time.Duration(min(work/p.Speed*1e9, float64(longest)))
}

package experiment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/nn/optim"
)

// A run makes progress when an update changes a judged model. Steps of workers and counts of
// updates do not show progress: with a learning rate of 0, every model keeps its parameters.

const (
	// briefSteps is how many steps of each worker end a run that need not have led to an update.
	briefSteps = 2
)

// unproductive returns an incident if no update changed a judged model for most of the run, or
// since the nodes that hold the models and those that train have stalled. Runs of plans in which no
// node trains make no updates and are none.
func (s *Stage) unproductive(r *record.Run, data *record.Data, out Outcome) []record.Incident {
	end := out.Halted
	if s.result.Last > 0 {
		end = s.result.End
	}
	last, ever, vain := s.lastChange(data, out)
	last = min(last, end)
	silence := end - last
	atMost := silence
	if vain && s.result.ChangedIn == 2 && s.result.Moved < s.result.End {
		atMost = end // the last change may be as early as the initial evaluation
		if share := s.effectiveShare(data); share < 1 {
			atMost = max(silence, end-time.Duration(share*float64(end)))
		}
	}
	switch {
	case len(s.Task.Workers) == 0, !ever && s.brief(r, end):
		return nil
	case ever && silence < leastSilence(r), !world.MostOf(atMost, end) && !s.frozen(out):
		return append(s.untrained(r, data, out), s.spent(data)...)
	}
	what := fmt.Sprintf("no update changed a judged model in %.3g s", end.Seconds())
	if ever {
		what = fmt.Sprintf("no update changed a judged model after %.3g s, for %.3g s", last.Seconds(),
			silence.Seconds())
	}
	why := s.hindrances(end, out)
	if vain {
		why = append(why, "updates were counted, and evaluations found the same parameters again")
	}
	what += ": " + strings.Join(why, "; ")
	return []record.Incident{{At: last.Seconds(), Node: s.keeper(out), What: what, Harm: record.ToAll}}
}

// untrained returns an incident for each node whose model took in no update while other models did.
// It returns none unless the worst model is judged.
func (s *Stage) untrained(r *record.Run, data *record.Data, out Outcome) (incidents []record.Incident) {
	if s.Point.Spec.Plan.Evaluate.Of != plan.OfAll || !data.Learned || s.brief(r, out.Halted) {
		return nil
	}
	for _, i := range data.Untrained {
		since := s.Deployment.Since(i, out.Halted)
		if slices.Contains(s.holders, i) && s.Deployment.Present(i, out.Halted) &&
			world.MostOf(out.Halted-since, out.Halted) {
			incidents = append(incidents, record.Incident{At: since.Seconds(), Node: s.Names[i], Harm: record.ToAll,
				What: fmt.Sprintf("no update changed its model in %.3g s, and the worst model is judged",
					(out.Halted - since).Seconds())})
		}
	}
	return incidents
}

// spent returns an incident if a learning rate was negligible for most of the run. Evaluations miss this
// if only the last one found a change.
func (s *Stage) spent(data *record.Data) []record.Incident {
	share := s.effectiveShare(data)
	if !world.MostOf(time.Duration((1-share)*float64(time.Hour)), time.Hour) {
		return nil
	}
	return []record.Incident{{Node: actors.Coordinator, Harm: record.ToAll, What: fmt.Sprintf(
		"no update changed a judged model in the last %.3g %% of the run: a learning rate was %.3g or less there",
		100*(1-share), optim.Negligible)}}
}

// effectiveShare returns the share of the run before a learning rate became negligible for good; 1 if no
// rate did. It follows from the schedules and the processed samples.
func (s *Stage) effectiveShare(data *record.Data) (share float64) {
	const parts = 1000
	if share = 1; s.Point.counts || len(data.Curve) == 0 {
		return share
	}
	epoch := float64(s.Point.epochSamples(s.Task.Train.Len()))
	batches := data.Curve[len(data.Curve)-1].Epoch * epoch / float64(s.Task.Batch)
	for _, c := range s.Point.rateClocks(s.Task.Method, epoch) {
		part := parts
		for part > 0 && c.schedule.Rate(int(batches/c.batches*float64(part)/parts)) <= optim.Negligible {
			part--
		}
		share = min(share, float64(part)/parts)
	}
	return share
}

// trivial returns the incident of a run that ended because the initial model reached the target.
func (s *Stage) trivial(out Outcome) []record.Incident {
	return []record.Incident{{Node: s.keeper(out), Harm: record.ToAll,
		What: "the initial model reached the target, which ended the run: no update changed a judged model"}}
}

// lastChange returns the time of the latest update that changed a judged model, and whether there
// was one. vain reports that later updates left the parameters as evaluations had found them.
// Evaluations stand in for recorded updates, because some architectures record none. A counting run
// changes no parameters, so there the recorded updates decide.
func (s *Stage) lastChange(data *record.Data, out Outcome) (last time.Duration, ever, vain bool) {
	changed := s.result.Changed
	switch {
	case data.Learned && (s.Point.counts || changed >= data.LastUpdate):
		return data.LastUpdate, true, false
	case !data.Learned && (out.Unfinished || data.Overtime): // changes come from updates after the end
		return 0, false, false
	}
	return changed, changed > 0, data.Learned
}

// brief reports whether a run has ended because of its first few steps.
func (s *Stage) brief(r *record.Run, end time.Duration) bool {
	stop := s.Point.Spec.Plan.Stop
	timed := stop.Time > 0 && end >= time.Duration(stop.Time)
	return !timed && stop.Rounds == 0 && r.Steps > 0 && r.Steps <= uint64(briefSteps*len(s.Task.Workers))
}

// leastSilence is the shortest time without an update that says something on the run's clock.
func leastSilence(r *record.Run) time.Duration {
	if r.Clock == string(VirtualTime) {
		return 0
	}
	return leastRealPause
}

// frozen reports whether, for far longer than ever before, no node that trains has made a step and
// no node that only holds a model, and waits, has taken in an update.
func (s *Stage) frozen(out Outcome) bool {
	paces, longest := s.Collector.Paces()
	holders, workers := 0, 0
	for i, p := range paces {
		role := s.Point.Spec.Roles[i]
		if !role.Trains && !role.Holds || !s.Deployment.Present(i, out.Halted) {
			continue
		}
		p.Last = max(p.Last, s.Deployment.Since(i, out.Halted))
		_, waits := out.Waits[i]
		if !waits && !role.Trains || !p.StoodStill(out.Halted, longest, out.LeastPause, true) {
			return false
		}
		if role.Trains {
			workers++
		} else {
			holders++
		}
	}
	return holders > 0 && workers > 0
}

// hindrances are why a run makes no progress at an instant, as far as that is known: who waits for
// whom, who is paused, and that nobody is there.
func (s *Stage) hindrances(at time.Duration, out Outcome) (why []string) {
	if waits := s.Deployment.Waiting(out.Waits); waits != "" {
		why = append(why, waits)
	}
	var paused []string
	for _, c := range s.Deployment.Schedule {
		if c.Do == world.Pause && c.At <= at && c.At+c.For >= at && s.Deployment.Present(c.Node, at) {
			paused = append(paused, s.Names[c.Node])
		}
	}
	if more := len(paused) - mostPaused; more > 0 {
		paused = append(paused[:mostPaused], fmt.Sprintf("%d more", more))
	}
	if len(paused) > 0 {
		why = append(why, "paused: "+strings.Join(paused, ", "))
	}
	if !s.attended(at) {
		why = append(why, "no node that trains is there")
	}
	if len(why) == 0 {
		why = append(why, "no node waits for another")
	}
	return why
}

// unattended returns an incident for a paused coordinator, which evaluates late and ends the run
// late. It returns none if the coordinator has reported a delay itself.
func (s *Stage) unattended(out Outcome) []record.Incident {
	if slices.ContainsFunc(s.result.Incidents, func(i coordinator.Incident) bool { return i.Late }) {
		return nil
	}
	for _, c := range s.Deployment.Schedule {
		long := c.Do == world.Pause && c.For > coordinator.Patience && c.At < out.Halted
		if long && c.Node == len(s.Deployment.Nodes) {
			return []record.Incident{{At: c.At.Seconds(), Node: actors.Coordinator, Harm: record.ToTimes,
				What: fmt.Sprintf("the coordinator was paused for %v: evaluations, and the end of the run, came late",
					min(c.For, out.Halted-c.At))}}
		}
	}
	return nil
}

// mostPaused bounds how many paused nodes are named.
const mostPaused = 8

// attended reports whether a node that trains is there at an instant.
func (s *Stage) attended(at time.Duration) bool {
	for _, i := range s.Workers() {
		if s.Deployment.Present(i, at) {
			return true
		}
	}
	return false
}

// keeper is the node at which the lack of updates is told: the first that waits of those that hold
// a judged model, else the first that is there.
func (s *Stage) keeper(out Outcome) string {
	name := actors.Coordinator
	for _, i := range s.holders {
		if _, waits := out.Waits[i]; waits {
			return s.Names[i]
		}
		if name == actors.Coordinator && s.Deployment.Present(i, out.Halted) {
			name = s.Names[i]
		}
	}
	return name
}

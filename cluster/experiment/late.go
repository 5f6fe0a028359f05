package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/nn/optim"
)

// instants returns the times at which settings of a point take effect, including the first exchange between
// workers. pass is the length of a worker's pass through its samples, in steps; 0 if unknown.
func (p *Point) instants(pass float64) []plan.Instants {
	all := p.Spec.Instants
	if at, due := p.firstExchange(pass); at != nil {
		all = append(slices.Clip(all), plan.Instants{
			At: at, Due: []unit.Duration{instant(due)},
			Lost: "workers train alone: the first exchange is due after " + roughly(due) + " at the earliest",
		})
	}
	return all
}

// forever is longer than any run, in seconds, and fits a time.Duration.
const forever = 9e9

// firstExchange returns the setting that determines the first exchange between workers, and the earliest
// time of the exchange in seconds. Until then no worker waits for another, so the time follows from the
// speed of the fastest worker. The setting is nil if the time is unknown.
func (p *Point) firstExchange(pass float64) (at *syntax.Node, earliest float64) {
	speed := p.fastest()
	for _, c := range p.Spec.Counted {
		if c.For != "interval" || c.Value == 0 {
			continue
		}
		due := c.Value
		switch c.Unit {
		case "steps":
			due /= speed
		case "passes":
			due *= pass / speed
		}
		unresolved := c.Spans && c.Wanted == 0
		switch {
		case unresolved, math.IsInf(due, 0), math.IsNaN(due), due == 0:
			return nil, 0
		case at == nil || due < earliest:
			earliest, at = due, c.At
			if at == nil {
				at = p.Spec.ArchitectureSection
			}
		}
	}
	return at, earliest
}

// scheduleEnds returns the earliest times at which the schedules of learning rates reach their horizons,
// as if all workers were as fast as the fastest. Schedules without a horizon are left out.
func (p *Point) scheduleEnds(t *train.Task) (all []plan.Instants) {
	epoch := float64(p.epochSamples(t.Train.Len()))
	end := p.stopBatches(epoch)
	for _, c := range p.rateClocks(t.Method, epoch) {
		steps := float64(optim.Horizon(c.schedule))
		due := steps * c.batches / (float64(trainers(p.Spec)) * p.fastest())
		i := plan.Instants{At: c.at, Due: []unit.Duration{instant(due)},
			Lost: "the schedule of the rate is longer than the run: it ends after " + roughly(due) + " at the earliest"}
		const margin = 1.05 // because the last batch of an epoch may be smaller
		switch {
		case end > 0 && steps*c.batches > margin*end:
			i.Due[0] = instant(forever)
			i.Lost = fmt.Sprintf("the schedule of the rate is longer than the run: it takes %.0f steps, and the run "+
				"makes %.0f", steps, math.Ceil(end/c.batches))
		case steps == 0 || math.IsNaN(due) || math.IsInf(due, 0):
			continue
		}
		all = append(all, i)
	}
	return all
}

// rateClock is the schedule of an optimizer's learning rate, with the number of batches that all workers
// process per step of that optimizer.
type rateClock struct {
	at       *syntax.Node
	schedule optim.Schedule
	batches  float64
}

// rateClocks returns the schedules of the workers' optimizer and of the outer optimizer. epoch is the
// number of samples in an epoch.
func (p *Point) rateClocks(workers optim.Method, epoch float64) (all []rateClock) {
	batches := p.pace(epoch).Batches
	if r, rated := workers.(optim.Rated); rated {
		all = append(all, rateClock{at: p.Root.At("train").At("optimizer").At("rate"), schedule: r.Schedule(),
			batches: batches})
	}
	if a, is := p.Spec.Architecture.(train.Outer); is {
		m, steps := a.OuterOptimizer()
		if r, rated := m.(optim.Rated); rated {
			all = append(all, rateClock{at: p.Spec.ArchitectureSection.At("outer").At("rate"),
				schedule: r.Schedule(), batches: batches * float64(steps)})
		}
	}
	return all
}

// stopBatches returns the number of batches that all workers process before a stop rule in epochs, steps
// or rounds ends the run; 0 if the plan has no such rule.
func (p *Point) stopBatches(epoch float64) float64 {
	stop := &p.Spec.Plan.Stop
	batches := math.Inf(1)
	if stop.Epochs > 0 {
		batches = stop.Epochs * epoch / float64(p.Spec.Batch)
	}
	if stop.Steps > 0 {
		_, each := stepUnit(p, stop.Steps)
		batches = min(batches, float64(stop.Steps)*each)
	}
	if stop.Rounds > 0 {
		batches = min(batches, float64(stop.Rounds)*p.pace(epoch).Batches)
	}
	if math.IsInf(batches, 1) {
		return 0
	}
	return batches
}

// fastest returns the steps per second of the fastest worker.
func (p *Point) fastest() (speed float64) {
	for i, r := range p.Spec.Roles {
		if r.Trains {
			speed = max(speed, mostSteps(p.Spec, i))
		}
	}
	return speed
}

// instant converts seconds to a duration, bounded by forever.
func instant(seconds float64) unit.Duration {
	return unit.Duration(min(seconds, forever) * float64(time.Second))
}

// lateness collects the instants that are due after the end of the runs of forecast points.
type lateness struct {
	late []lateNote
	met  []syntax.Pos // places in the plan whose instants a point reaches
}

// lateNote is a note about the instants at a place in the plan that some points never reach.
type lateNote struct {
	place  syntax.Pos
	text   string   // the note for the first of the points
	points []string // labels of the points that end before the instant
}

// add compares the instants of a labelled point with the forecast length of its runs, in seconds.
func (l *lateness) add(p *Point, label string, t *train.Task, end float64) {
	const margin = 1.25 // for the error of the forecast
	stop := &p.Spec.Plan.Stop
	without := p.instants(0)
	if resolved, err := p.resolve(float64(p.epochSamples(t.Train.Len()))); err == nil {
		p = resolved
	}
	for _, i := range slices.Concat(p.instants(leastPass(t)), p.scheduleEnds(t)) {
		noted := func(o plan.Instants) bool { return o.At == i.At && stop.Late(o) != "" }
		if slices.ContainsFunc(without, noted) {
			continue // the plan's own notes include it
		}
		text := stop.Late(i)
		if text == "" {
			text = i.Late(unit.Duration(margin*end*float64(time.Second)), "a run ends after about "+roughly(end))
		}
		place := i.At.Pos
		known := slices.IndexFunc(l.late, func(n lateNote) bool { return n.place == place })
		switch {
		case text == "":
			l.met = append(l.met, place)
		case known < 0:
			l.late = append(l.late, lateNote{place, text, []string{label}})
		default:
			l.late[known].points = addNew(l.late[known].points, []string{label})
		}
	}
}

// notes returns the texts about late instants. A text names its points if other points reach the instant.
func (l *lateness) notes(parts []part) (all []string) {
	for _, n := range l.late {
		if slices.Contains(l.met, n.place) {
			var points []string
			for _, p := range parts {
				if slices.Contains(n.points, p.label) {
					points = append(points, p.label)
				}
			}
			n.text = atPoints(n.text, points)
		}
		all = append(all, n.text)
	}
	return all
}

// atPoints names the points for which a note holds, in its first line.
func atPoints(note string, points []string) string {
	const most = 3
	more := ""
	if n := len(points) - most; n > 0 {
		points, more = points[:most], fmt.Sprintf("; and at %d more points", n)
	}
	text, source, placed := strings.Cut(note, "\n")
	text += " (at " + strings.Join(points, "; ") + more + ")"
	if placed {
		text += "\n" + source
	}
	return text
}

// leastPass returns the length of the shortest pass of a worker through its samples, in steps; 0 with a
// population, whose clients take turns on the workers.
func leastPass(t *train.Task) float64 {
	if t.Clients != nil {
		return 0
	}
	least := math.Inf(1)
	for _, rows := range t.Shards {
		if len(rows) > 0 {
			least = min(least, math.Ceil(float64(len(rows))/float64(t.Batch)))
		}
	}
	return least
}

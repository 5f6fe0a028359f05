package experiment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/nn"
)

// models are those that a run has ended with: the one that is judged, or each of those that are
// judged together.
func (n run) models(s *Stage, shelf *shelf.Shelf) (m record.Models, err error) {
	p := n.point.Spec.Plan
	of, ends := record.Of(p.Evaluate.Of), s.result.Models
	m.Tensors = tensors(s.Task.Model)
	if m.Metadata, err = n.point.metadata(shelf, n.seed); err != nil {
		return m, err
	}
	m.Metadata["of"] = string(of)
	switch {
	case len(ends) == 1:
		m.Judged = ends[0].Params
	case of == record.AverageModel:
		m.Judged = s.result.Average
	}
	if m.Judged == nil || len(ends) > 1 && p.Record == plan.RecordModels {
		for _, e := range ends {
			m.Nodes = append(m.Nodes, record.NodeModel{Node: s.Names[e.Node], Params: e.Params,
				Accuracy: e.Score.Accuracy})
		}
	}
	return m, nil
}

// judge says how much the figures of a run are worth.
func judge(r *record.Run, s *Stage, out Outcome, data *record.Data, failure error) {
	for _, i := range s.result.Incidents {
		known := record.Incident{At: i.At.Seconds(), Node: s.Names[i.Node], What: i.What, Harm: record.ToAll}
		if i.Late {
			known.Harm = record.ToTimes
		}
		if !slices.ContainsFunc(out.Incidents, func(o record.Incident) bool { return sameIncident(o, known) }) {
			r.Incidents = append(r.Incidents, known)
		}
	}
	stalled, all := s.stalled(out)
	begun := s.result.Last == 0 || s.result.End > 0 // else the initial model reached the target
	told := !out.Watched && begun
	if told {
		r.Incidents = append(r.Incidents, stalled...)
	}
	switch {
	case failure != nil:
	case !begun:
		r.Incidents = append(r.Incidents, s.trivial(out)...)
	case !told || !all:
		r.Incidents = append(r.Incidents, s.unproductive(r, data, out)...)
	}
	r.Incidents = append(r.Incidents, s.unattended(out)...)
	if failure == nil && out.Stalled > 0 && len(r.Incidents) == 0 && !slices.ContainsFunc(out.Incidents, harms) {
		r.Incidents = append(r.Incidents, record.Incident{At: out.Stalled.Seconds(), Node: actors.Coordinator,
			What: "nobody did anything from here to the end", Harm: record.ToAll})
	}
	degraded := out.Degraded || len(r.Incidents) > 0
	r.Incidents = append(r.Incidents, out.Incidents...)
	r.Outcome = record.Done
	switch {
	case failure != nil:
		r.Outcome = record.Failed
		r.Incidents = append(r.Incidents, record.Incident{At: out.End.Seconds(), Node: culprit(failure),
			What: firstLine(failure.Error()), Harm: record.ToAll})
	case degraded:
		r.Outcome = record.Degraded
	}
	slices.SortStableFunc(r.Incidents, func(a, b record.Incident) int { return cmp.Compare(a.At, b.At) })
}

// harms reports whether an incident degrades a run.
func harms(i record.Incident) bool { return i.Harm != record.NoHarm }

// sameIncident reports whether the process that conducts a run has told of what its coordinator
// noticed: the same node, about the same instant, and not the coordinator, of which both tell what
// they alone saw.
func sameIncident(a, b record.Incident) bool {
	return a.Node == b.Node && a.Node != actors.Coordinator && math.Abs(a.At-b.At) < 5
}

// firstLine leaves out where in the program an actor panicked.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// culprit is the node that an error is about, the coordinator where that is not known.
func culprit(err error) string {
	var diverged *train.DivergedError
	if errors.As(err, &diverged) {
		return diverged.Node
	}
	return actors.Coordinator
}

// row sums a run up.
func (r *Runner) row(next run, s *Stage, out Outcome, data *record.Data, wall time.Duration) *record.Run {
	traits := r.Venue.Traits()
	row := &record.Run{
		Number: next.number, Point: settings(next.point.Labels), Seed: next.seed,
		PlanDigest: r.digests[settings(next.point.Labels).Key()],
		Of:         record.Of(next.point.Spec.Plan.Evaluate.Of), Reached: s.result.Reached,
		Steps: data.Steps, Messages: data.Messages, Bytes: data.Bytes, Evaluations: s.result.Evaluations,
		Unmeasured: data.Unmeasured,
		Clock:      string(traits.Clock), Insecure: traits.Insecure, Wall: wall.Seconds(), Lateness: out.Lateness,
		NodeTimeout: traits.NodeTimeout.Seconds(),
		Resumed:     out.Resumed.Seconds(),
		DeadLetters: out.DeadLetters, Stalled: out.Stalled.Seconds(), Judged: s.judged(),
		Choice: recordedChoice(next.point.Spec, next.point.Spec.Choice),
	}
	row.FinalAccuracy, row.BestAccuracy = data.Accuracies()
	row.Duration = cmp.Or(s.result.End, out.End).Seconds()
	if n, sample := len(s.holders), next.point.Spec.Plan.Evaluate.Sample; sample != nil && *sample < n {
		row.Holders = n
	}
	if next.point.Spec.Plan.Evaluate.Early {
		row.Early = &record.Early{Bound: train.BoundName, Confidence: 1 - train.ErrorProbability,
			Partial: data.Partial()}
	}
	if accuracy, _ := Target(next.point.Spec.Plan); accuracy > 0 {
		row.Target = &accuracy
	}
	for of, at := range s.result.Crossings {
		if row.Crossings == nil {
			row.Crossings = map[record.Of]float64{}
		}
		row.Crossings[of] = at.Seconds()
	}
	if s.result.Reached {
		t, e := s.result.TimeToTarget.Seconds(), s.result.EpochsToTarget
		row.TimeToTarget, row.EpochsToTarget = &t, &e
	}
	if out.Digest != nil {
		row.Digest = digest(*out.Digest, s.result.Models)
	}
	return row
}

// digest hashes a run's messages, whose hash is given, and the final parameters of its models.
func digest(messages uint64, models []coordinator.Model) string {
	d := xxhash.New()
	b := binary.LittleEndian.AppendUint64(nil, messages)
	for _, m := range models {
		for _, v := range m.Params {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	_, _ = d.Write(b)
	return fmt.Sprintf("%016x", d.Sum64())
}

func tensors(m nn.Model) []safetensors.Tensor {
	var ts []safetensors.Tensor
	for _, t := range m.Tensors() {
		ts = append(ts, safetensors.Tensor{Name: t.Name, Shape: slices.Clone(t.Shape), Offset: t.Offset})
	}
	return ts
}

// stalled returns an incident for each waiting node that had stalled by the end of its part. all
// reports that every training node present had stalled. A node can wait for a message in flight if
// other training nodes went on to the end and no message was lost. Such a node has stalled only if
// it waited for most of its part of a run that did not end at its target: the others can reach that
// before the first message arrives over a slow link.
func (s *Stage) stalled(out Outcome) (incidents []record.Incident, all bool) {
	paces, longest := s.Collector.Paces()
	longest = cmp.Or(longest, out.Halted/(2*world.StillFactor)) // nobody has made two steps
	all = true
	var most []record.Incident
	for i, p := range paces {
		role := s.Point.Spec.Roles[i]
		if !role.Trains || !s.Deployment.Present(i, out.Halted) {
			continue
		}
		cause, waits := out.Waits[i]
		joined := s.Deployment.Since(i, out.Halted)
		p.Last = max(p.Last, joined)
		if !waits || !p.StoodStill(out.Halted, longest, out.LeastPause, true) {
			all = false
			continue
		}
		incidents = append(incidents, record.Incident{
			At: p.Last.Seconds(), Node: s.Names[i],
			What: fmt.Sprintf("stalled from here to the end, %.3g s: it waits for %s", (out.Halted - p.Last).Seconds(),
				cause),
			Harm: record.ToAll,
		})
		if world.MostOf(out.Halted-p.Last, out.Halted-joined) {
			most = append(most, incidents[len(incidents)-1])
		}
	}
	if all = all && len(incidents) > 0; all || s.Network.Dropped() > 0 || out.Stalled > 0 {
		return incidents, all
	}
	if s.result.Reached && s.Point.Spec.Plan.Stop.Target != nil {
		return nil, false
	}
	return most, false
}

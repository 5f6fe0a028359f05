package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/record/choosing"
	"github.com/gradwire/gradwire/cluster/record/goodput"
)

// Setting is the value that a key of the plan has at a point of its sweep.
type Setting struct {
	// Key is the path in the plan.
	Key string
	// Value is the value or its label. In JSON it stands as a number or a truth value
	// where it reads as one.
	Value string
}

// Point is a combination of a sweep's values, in the order of the sweep's keys;
// empty in a plan without a sweep.
type Point []Setting

// maxSettings is the most keys of a point that is read back: more than a sweep of as many
// axes of two values has points.
const maxSettings = 1000

// String writes "key=value; key=value".
func (p Point) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s.Key + "=" + s.Value)
	}
	return b.String()
}

// Value returns the value of a key; empty if the point has none.
func (p Point) Value(key string) string {
	for _, s := range p {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// Key is the same for equal points only.
func (p Point) Key() string {
	var b strings.Builder
	for _, s := range p {
		fmt.Fprintf(&b, "%q=%q;", s.Key, s.Value)
	}
	return b.String()
}

// MarshalJSON writes an object whose keys keep their order.
func (p Point) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, s := range p {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, quote(s.Key)...), ':')
		if isLiteral(s.Value) {
			b = append(b, s.Value...)
		} else {
			b = append(b, quote(s.Value)...)
		}
	}
	return append(b, '}'), nil
}

// isLiteral reports whether a value reads as a number or a truth value of JSON.
func isLiteral(value string) bool {
	if value == "true" || value == "false" {
		return true
	}
	if value == "" || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	return json.Valid([]byte(value)) && !strings.ContainsAny(value, " \t\r\n")
}

// UnmarshalJSON reads an object of strings, numbers and truth values, in its order.
func (p *Point) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("a point must be an object of values")
	}
	*p = Point{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		value, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder lets no other key pass
		s := Setting{Key: name, Value: fmt.Sprint(value)}
		switch value.(type) {
		case string, json.Number, bool:
		default:
			return fmt.Errorf("key %q of a point: a string, a number, true or false is accepted", name)
		}
		if len(*p) == maxSettings {
			return fmt.Errorf("a point has more than the %d keys that are accepted", maxSettings)
		}
		if slices.ContainsFunc(*p, func(o Setting) bool { return o.Key == s.Key }) {
			return fmt.Errorf("key %q is given twice in a point", name)
		}
		*p = append(*p, s)
	}
	return nil
}

// Outcome says how much the figures of a run are worth.
type Outcome string

// The outcomes.
const (
	// Done: everything happened as the plan says.
	Done Outcome = "done"
	// Degraded: the run went to its end, but lost state or had nodes that stood still.
	Degraded Outcome = "degraded"
	// Failed: the run could not go on.
	Failed Outcome = "failed"
	// CountedOnly: the run sent the plan's messages and trained nothing.
	CountedOnly Outcome = "counted"
)

// Incident is something that makes the figures of a run worth less.
type Incident struct {
	// At is in seconds on the run's clock.
	At float64 `json:"at_s"`
	// Node is the node that it happened to, or "coordinator".
	Node string `json:"node"`
	// What says what happened, and why, in a sentence without a full stop.
	What string `json:"what"`
	// Harm is what it does to the run's figures.
	Harm Harm `json:"harm,omitempty"`
}

// Harm is which figures of a run an incident makes worth less; one with any degrades the run.
type Harm string

const (
	// NoHarm is done by what was made good.
	NoHarm Harm = ""
	// ToTimes is the harm of what came late on a busy machine: nothing was lost.
	ToTimes Harm = "times"
	// ToAll is the harm of what was lost, or is in doubt.
	ToAll Harm = "all"
)

// LostNothing reports whether incidents harmed times, and no other figure.
func LostNothing(incidents []Incident) bool {
	harmed := func(h Harm) bool {
		return slices.ContainsFunc(incidents, func(i Incident) bool { return i.Harm == h })
	}
	return harmed(ToTimes) && !harmed(ToAll)
}

// Of says which model an accuracy is of, where several nodes hold one; see [actors.Of].
type Of = actors.Of

// What can be judged.
const (
	AverageModel = actors.AverageModel
	Mean         = actors.Mean
	All          = actors.All
	Any          = actors.Any
)

// Run is what a run has led to: an element of runs in summary.json.
type Run struct {
	// Number is the run's place in the plan, from 0: point after point, and within
	// a point seed after seed. Its folder is named after it.
	Number int    `json:"run"`
	Point  Point  `json:"point"`
	Seed   uint64 `json:"seed"`
	// PlanDigest is the hash, in hexadecimal, of the plan's settings at the run's point without the
	// seed. Runs of equal points and different hashes are no repeats. Older records lack it.
	PlanDigest string `json:"plan_digest,omitempty"`
	// Outcome says how much the figures are worth, and Incidents what has happened that makes them
	// worth less.
	Outcome   Outcome    `json:"outcome"`
	Incidents []Incident `json:"incidents,omitempty"`
	// Resumed is the time in seconds at which the run was resumed from a checkpoint. It is 0 for a run that
	// was never interrupted, or that is known to equal such a run. Comparisons leave resumed runs out.
	Resumed float64 `json:"resumed_s,omitempty"`
	// ComparedIfResumed makes comparisons include the run even if it was resumed. No file holds it.
	ComparedIfResumed bool `json:"-"`
	// Counted marks a run that sent the plan's messages and trained nothing: it has no accuracy,
	// target, digest or model. Its outcome is CountedOnly instead of Done.
	Counted bool `json:"counted,omitempty"`
	// Of is what is judged: which model, or which of several, the accuracies and the target are
	// about.
	Of Of `json:"of"`
	// Target is the accuracy at which the run ends, as a fraction. Nil stands for what its point
	// sets stop.target to, or else the summary's.
	Target *float64 `json:"target,omitempty"`
	// Reached says whether what is judged arrived at the target; if not, the times to it are nil.
	Reached bool `json:"reached"`
	// TimeToTarget is in seconds on the run's clock.
	TimeToTarget   *float64 `json:"time_to_target_s"`
	EpochsToTarget *float64 `json:"epochs_to_target"`
	// Bracket has the evaluations between which the target was reached; nil where it was not, or
	// they are not known. SaveRun fills it in.
	Bracket *Bracket `json:"bracket,omitempty"`
	// Crossings are the seconds after which each of the four figures arrived at the target; one
	// that did not before the run ended is not in it.
	Crossings map[Of]float64 `json:"crossings_s,omitempty"`
	// FinalAccuracy is the accuracy at the last evaluation, BestAccuracy the highest of all.
	FinalAccuracy Float `json:"final_accuracy"`
	BestAccuracy  Float `json:"best_accuracy"`
	// Steps of all workers, and Messages and Bytes on all links without control, up to the record's
	// end.
	Steps    uint64 `json:"steps"`
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"`
	// Evaluations counts the verdicts.
	Evaluations int `json:"evaluations"`
	// Early says how far evaluations may be trusted of which a part of the test set was enough; nil
	// where all were of the whole set.
	Early *Early `json:"early,omitempty"`
	// Models is how many models were looked at together, at most. SaveRun fills it in.
	Models int `json:"models,omitempty"`
	// Holders is how many nodes of the plan hold a model, where evaluate.sample has fewer of them
	// looked at.
	Holders int `json:"holders,omitempty"`
	// Judged are the nodes whose models the last evaluation was of, where several nodes hold one;
	// nil elsewhere. A node that joined and has got no trained model is not one of them.
	Judged *Judged `json:"judged,omitempty"`
	// Clock is "virtual", "real" or "cluster".
	Clock string `json:"clock"`
	// Insecure marks a run on a cluster whose connections were neither encrypted nor authenticated.
	Insecure bool `json:"insecure,omitempty"`
	// NodeTimeout is the silence, in seconds, after which the process that led the run on a cluster
	// counted another process as absent (gradwire node --node-timeout).
	NodeTimeout float64 `json:"node_timeout_s,omitempty"`
	// Duration is the length of the record in seconds on the run's clock; Wall the seconds that it
	// took.
	Duration float64 `json:"run_s"`
	Wall     float64 `json:"wall_s"`
	// Epochs are those up to the record's end. SaveRun fills them in.
	Epochs float64 `json:"run_epochs,omitempty"`
	// Choice is how a setting was chosen that the plan leaves to the program; nil for none.
	Choice *choosing.Choice `json:"choice,omitempty"`
	// Digest is the hash of the run's messages and final parameters, in hexadecimal.
	Digest string `json:"digest"`
	// DeadLetters counts messages that found no receiver.
	DeadLetters uint64 `json:"dead_letters,omitempty"`
	// Stalled is the instant in seconds from which on no node did anything, in a run that only
	// its bound on time ended; 0 if they did something to the end.
	Stalled float64 `json:"stalled_s,omitempty"`
	// Unmeasured counts measurements that were not kept, because the run made more than
	// MaxMeasured.
	Unmeasured uint64 `json:"unmeasured,omitempty"`
	// Goodput is what faults have left of the run's work, and Faults what they were; nil without.
	Goodput *goodput.Goodput `json:"goodput,omitempty"`
	Faults  []goodput.Fault  `json:"faults,omitempty"`
	// Lateness says how late a real clock was; nil for the virtual one, which is never late.
	*Lateness
}

// Serverless reports whether several nodes hold models. None of these has versions then, and no
// update a staleness.
func (r *Run) Serverless() bool { return r.Models > 1 || r.Holders > 1 }

// MaxJudged is how many names Judged lists.
const MaxJudged = 32

// Judged are the nodes that an evaluation was of. The file models.csv has those of each evaluation,
// and curve.csv how many they were.
type Judged struct {
	// Count is the number of evaluated nodes. Nodes has the names of the first MaxJudged, in the
	// order of the plan.
	Count int      `json:"count"`
	Nodes []string `json:"nodes"`
}

// Bracket has the evaluations around an arrival at the target: the last one before it and the first
// that showed it. The first evaluation has none before it, and then After is 0.
type Bracket struct {
	// TimeAfter and TimeBefore are in seconds on the run's clock.
	TimeAfter    float64 `json:"after_s"`
	TimeBefore   float64 `json:"before_s"`
	EpochsAfter  float64 `json:"after_epochs"`
	EpochsBefore float64 `json:"before_epochs"`
}

// Early is about evaluations of models that are surely below the target. They are of a random part
// of the test set, give an estimate of the accuracy, and no loss. The evaluations before and after
// an arrival at the target, and the last one, are of the whole set.
type Early struct {
	// Bound names what says that an accuracy is surely below the target, and Confidence is the
	// probability, at least, with which that is right of a model each time that it is judged.
	Bound      string  `json:"bound"`
	Confidence float64 `json:"confidence"`
	// Partial counts the evaluations in the curve of which a figure is an estimate.
	Partial int `json:"partial"`
}

// Lateness says how well a real clock kept to its plan.
type Lateness struct {
	// Late says that the machine could not keep up.
	Late bool `json:"late"`
	// P99 is in seconds: 99 % of the messages were not later than this.
	P99 Float `json:"lateness_p99_s"`
}

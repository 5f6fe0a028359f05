package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/choosing"
)

func TestTableNamesTheFastestTheUndecidedAndWhatIsJudged(t *testing.T) {
	text := tableOf(t, joined(0.9, arrivals("slow", 30, 1, 4, record.AverageModel),
		arrivals("fast", 10, 1, 4, record.AverageModel)))
	for _, want := range []string{
		" final accuracy ", " (average model), % ", "Judged: the accuracy of the average model.\n", "] *  ",
		"* fastest. Medians, [ ] 95 % interval.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	s := joined(0.9, arrivals("a", 10, 1, 1, record.Mean), arrivals("b", 10.5, 2, 1, record.Mean),
		arrivals("c", 40, 1, 1, record.Mean))
	text = tableOf(t, s)
	if strings.Contains(text, "Judged") || strings.Contains(text, "* fastest") || strings.Count(text, "] =") != 2 ||
		!strings.Contains(text, "= among the fastest. Medians, [ ] 95 % interval.\n") {
		t.Errorf("two that cannot be told apart:\n%s", text)
	}
	method := strings.Join(Method(s), "\n")
	for _, want := range []string{
		"in a one-sided t test of log times, paired by seeds, at the level 0.045 ÷ (points − 1)",
		"Repeats that would separate a, whose runs take the least time in the mean, from the other leaders with " +
			"80 % power: b ", "Intervals are of the median",
	} {
		if !strings.Contains(method, want) {
			t.Errorf("%q is not in\n%s", want, method)
		}
	}
}

// F8: points of several targets are compared within each, and the notes name them.
func TestTableComparesWithinOneTarget(t *testing.T) {
	var all [][]record.Run
	for i, target := range []float64{0.5, 0.8} {
		for k, seconds := range []float64{10, 20} {
			runs := arrivals(string(rune('a'+2*i+k)), seconds*(1+2*target), 1, 1, record.Mean)
			for n := range runs {
				runs[n].Target = &target
			}
			all = append(all, runs)
		}
	}
	if text := tableOf(t, joined(0.5, all...)); strings.Count(text, "] *") != 2 {
		t.Errorf("%s", text)
	}
}

func TestTableTellsOfRunsThatFailedOrAreDegraded(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 1, record.Mean), arrivals("b", 20, 1, 1, record.Mean))
	for i := range 8 {
		r := &s.Runs[3*i]
		r.Outcome, r.Incidents = record.Degraded, []record.Incident{{At: 6.25, Node: "server",
			What: "its model was lost"},
			{At: 7, Node: "w1", What: "stalled"}, {At: 8, Node: "w2", What: "x"}}
	}
	r := &s.Runs[0]
	r.Outcome, r.Reached, r.TimeToTarget, r.EpochsToTarget, r.Incidents = record.Failed, false, nil, nil,
		[]record.Incident{{At: 0.5, Node: "peer3", What: "the loss is NaN"}}
	s.Groups = record.GroupRuns(s.Runs, s.Target)
	text := tableOf(t, s)
	for _, want := range []string{
		"Of 40 runs 1 failed, 7 degraded:\n", "run 0 (k=a, seed 0) failed: peer3 at 0.5 s: the loss is NaN.\n",
		"run 3 (k=a, seed 3) degraded: server at 6.25 s: its model was lost; w2 at 8 s: x; and 1 more.\n",
		"and 3 more.\n", "19/20",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	const want = "1 of 40 runs did not reach 90 %: their times are censored at their ends, or without a bound if " +
		"they failed. Medians are by Kaplan and Meier's curve. No point is called slower than a point that reached the " +
		"target in a smaller share of its runs."
	if method := Method(s); !slices.Contains(method, want) {
		t.Errorf("%q is not in %q", want, method)
	}
}

func TestTableSaysThatRunsArriveInTwoHeaps(t *testing.T) {
	runs := arrivals("a", 10, 0.1, 1, record.Mean)
	for i := range 2 {
		*runs[7*i].TimeToTarget *= 4
	}
	text := tableOf(t, joined(0.9, runs, arrivals("b", 20, 0.1, 1, record.Mean)))
	const want = "Runs arrive in two heaps: a: 18 after 9.78 s to 10.1 s, 2 after 40 s to 40.9 s.\n"
	if !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

func TestTableNamesASampleOfTheModelsAndWhatWasChosen(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 2, record.Mean), arrivals("b", 20, 1, 1, record.Mean))
	for i := range s.Runs {
		s.Runs[i].Holders = 5
	}
	s.Tunings = []record.Tuning{{
		Point: record.Point{{Key: "k", Value: "a"}}, Chosen: 1, Duration: 106,
		Edges:      []string{"train.optimizer.rate 0.2 is the largest candidate: a larger one may be better"},
		Candidates: []record.Candidate{{}, {Values: record.Point{{Key: "train.optimizer.rate", Value: "0.2"}}}},
	}}
	text := tableOf(t, s)
	for _, want := range []string{
		"Looked at are the models of a sample: 2 of 5 nodes; 1 of 5 nodes (evaluate.sample).\n",
		"Chosen on the validation samples, in the place of what the plan says: a with train.optimizer.rate=0.2.\n",
		"train.optimizer.rate 0.2 is the largest candidate: a larger one may be better (a).\n",
		"That took 2 further runs of 106 s on their clocks, which no figure here counts.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestTableTellsWhatWasChosenByTheNetwork(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 2, record.Mean), arrivals("b", 20, 1, 1, record.Mean))
	made := &choosing.Choice{Setting: "architecture.algorithm", Chosen: "tree",
		Costs: []choosing.Cost{{Word: "tree", Seconds: 0.01234567}, {Word: "ring", Seconds: 2}}}
	for i := range s.Runs {
		if s.Runs[i].Point[0].Value == "b" {
			s.Runs[i].Choice = made
		}
	}
	const want = "Chosen by the network: b: architecture.algorithm is tree; by formula an exchange takes 12.3ms with " +
		"tree, 2s with ring.\n"
	if text := tableOf(t, s); !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

// Runs that go to a number of epochs end at different times.
func TestMethodSaysThatRunsEndedTooEarlyToBeCompared(t *testing.T) {
	short := arrivals("short", 10, 1, 1, record.Mean)
	for i := range short[:9] {
		r := &short[i]
		r.Reached, r.TimeToTarget, r.EpochsToTarget, r.Bracket, r.Duration, r.Epochs = false, nil, nil, nil, 5, 6
	}
	text := strings.Join(Method(joined(0.9, arrivals("long", 40, 1, 1, record.Mean), short)), "\n")
	if !strings.Contains(text,
		"A later bound, such as stop.time, may tell more about short beside long: some of their runs ended without "+
			"reaching the target.") {
		t.Errorf("%s", text)
	}
}

// A run that could not go on had no bound to stand still to: its incident says why it ended.
func TestTableCallsAFailedRunFailedAlone(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 1, record.Mean))
	s.Runs[0].Outcome, s.Runs[0].Stalled = record.Failed, 0.02
	if text := tableOf(t, s); strings.Contains(text, "stalled") {
		t.Errorf("%s", text)
	}
}

func TestTableTellsIncidentsOfRunsThatAreDone(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 1, record.Mean))
	s.Runs[0].Outcome = record.Done
	s.Runs[0].Incidents = []record.Incident{{At: 2, Node: "n1", What: "process b was paused for 3s"}}
	if text := tableOf(t, s); !strings.Contains(text, "Incidents that made no result unreliable:\n") ||
		!strings.Contains(text, "done: n1 at 2 s: process b was paused for 3s.") {
		t.Errorf("%s", text)
	}
}

func TestTableSaysHowManyMeasurementsAreMissing(t *testing.T) {
	s := small()
	s.Runs[0].Unmeasured, s.Runs[2].Unmeasured = 5, 7
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	want := "2 of 3 runs measured more than is kept of a run: 12 measurements are missing.\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, b.String())
	}
}

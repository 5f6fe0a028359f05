package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

var target = 0.92

// at makes up runs of a point of one setting.
func at(key, value string, seconds ...float64) []record.Run {
	return reporttest.Runs(record.Point{{Key: key, Value: value}}, nil, nil, seconds...)
}

// around are n times close to a value, the same offsets for all.
func around(middle float64, n int) (all []float64) {
	for i := range n {
		all = append(all, middle*(1+0.02*float64((i*7)%5-2)))
	}
	return all
}

func ended(value string, accuracies ...float64) []record.Run {
	runs := at("data.split", value, around(5, len(accuracies))...)
	for i := range runs {
		r := &runs[i]
		r.Reached, r.TimeToTarget, r.EpochsToTarget, r.Bracket = false, nil, nil, nil
		r.FinalAccuracy, r.BestAccuracy = record.Float(accuracies[i]), record.Float(accuracies[i])
	}
	return runs
}

func degrade(runs []record.Run, n int, outcome record.Outcome) []record.Run {
	for i := range n {
		runs[i].Outcome = outcome
	}
	return runs
}

// resume marks the first n runs as resumed from a checkpoint.
func resume(runs []record.Run, n int, compared bool) []record.Run {
	for i := range n {
		runs[i].Resumed, runs[i].ComparedIfResumed = 0.1, compared
	}
	return runs
}

// judged makes up runs of several models that are judged by a figure, such as their mean.
func judged(of record.Of, seconds ...float64) []record.Run {
	runs := at("evaluate.of", string(of), seconds...)
	for i := range runs {
		runs[i].Of, runs[i].Models = of, 4
	}
	return runs
}

func split(value string, seconds ...float64) []record.Run { return at("data.split", value, seconds...) }

// two makes up runs of a point of a split and an architecture.
func two(split, kind string, seconds ...float64) []record.Run {
	p := record.Point{{Key: "data.split", Value: split}, {Key: "architecture", Value: kind}}
	return reporttest.Runs(p, nil, nil, seconds...)
}

// never are the ends of n runs that do not arrive.
func never(n int) []float64 { return slices.Repeat([]float64{-60}, n) }

func of(all ...[]record.Run) record.Summary   { return reporttest.Summary(&target, all...) }
func free(all ...[]record.Run) record.Summary { return reporttest.Summary(nil, all...) }

// stalled are runs of which one did nothing from some time on.
func stalled() []record.Run {
	runs := split("iid", around(1.3, 5)...)
	runs[2].Stalled = 0.5
	return runs
}

func unfinished() record.Summary {
	s := of(split("iid", around(1.3, 5)...))
	s.RunsPlanned, s.Complete = 10, false
	return s
}

// many are runs of six splits and two architectures, each of which is the faster one in three.
func many() (all [][]record.Run) {
	for i := range 6 {
		share := fmt.Sprintf("share %d", i)
		all = append(all, two(share, "gossip", around(3, 5)...), two(share, "local", around(float64(1+4*(i%2)), 5)...))
	}
	return all
}

// headlines are records and what is true of them.
var headlines = map[string]struct {
	s    record.Summary
	want string
}{
	"a fastest, one that misses and one that never arrives": {of(split("iid", around(1.3, 10)...),
		split("near: most", append(around(13, 8), -60, -60)...), split("far: most", never(10)...)),
		"iid reaches 92 % first: after 1.3 s, in 10 of 10 runs. near: most takes 13.1 s (8 of 10 runs); " +
			"far: most never did."},
	"a fast one that misses": {
		of(split("local", append(around(2.1, 6), -12, -12, -12, -12)...),
			split("gossip", around(7.5, 10)...)),
		"local (2.16 s, 6 of 10 runs) and gossip (7.5 s) cannot be told apart in their time to 92 %. local reached the " +
			"target in a smaller share of runs than another leader, and so cannot be called faster than that leader. A later " +
			"bound, such as stop.time, may tell more. Times are compared up to 12 s, the earliest end of a run " +
			"that did not reach the target.",
	},
	"a fastest that misses": {
		of(split("a", append(around(2, 9), -12)...), split("b", append(around(9, 8), -12, -12)...)),
		"a reaches 92 % first: after 2 s, in 9 of 10 runs. b takes 9.09 s (8 of 10 runs). Times are compared up to 12 s, " +
			"the earliest end of a run that did not reach the target.",
	},
	"only one always arrives": {
		of(split("a", append(around(3, 8), -60, -60)...),
			split("b", append(around(2, 5), never(5)...)...), split("c", around(40, 10)...),
			split("lone", append(around(1, 1), never(9)...)...)),
		"b (2.08 s, 5 of 10 runs), a (3.03 s, 8 of 10 runs) and c (40 s) cannot be told apart in their time to 92 %; lone is " +
			"slower (95 % confidence). b and a reached the target in a smaller share of runs than another leader, and so " +
			"cannot be called faster than that leader. A later bound, such as stop.time, may tell more. Times are compared up to 60 s, the " +
			"earliest end of a run that did not reach the target.",
	},
	"many losers": {of(split("a", around(1, 5)...), split("b", around(2, 5)...), split("c", around(3, 5)...),
		split("d", around(4, 5)...), split("e", around(900, 5)...), split("f", around(6, 5)...)),
		"a reaches 92 % first: after 1 s, in 5 of 5 runs. b takes 2 s; c takes 3 s; d takes 4 s; the other 2 are " +
			"slower."},
	"two leaders": {
		of(split("a", 12, 13, 12.2, 11.9), split("b", 12.8, 12.1, 12.9, 12.3), split("c",
			around(40, 4)...)),
		"a (12.1 s) and b (12.6 s) cannot be told apart in their time to 92 %; c is slower (95 % confidence). To separate the " +
			"leaders, run 69 repeats (80 % power).",
	},
	"equal leaders": {of(split("a", around(12, 5)...), split("b", around(12, 5)...)),
		"a (12 s) and b (12 s) cannot be told apart in their time to 92 %. Some are too close to be separated by " +
			"more repeats."},
	"one repeat": {of(split("iid", 1.3), split("near", 13), split("far", -60)),
		"One repeat decides nothing, at least 3 are needed to compare. Time to 92 %: iid 1.3 s; near 13 s; far not " +
			"reached."},
	"two repeats": {of(split("iid", 1.3, 1.4), split("near", 13, 14)),
		"2 repeats decide nothing, at least 3 are needed to compare. Time to 92 %: iid 1.35 s; near 13.5 s."},
	"one point": {of(split("iid", 1, 2, 3)), "3 of 3 runs reached 92 %, from 1 s to 3 s; the median is 2 s."},
	"points that are judged otherwise": {
		of(judged("mean", 1, 2, 3), judged("any", 1, 2, 4)),
		"With mean, 3 of 3 runs reached 92 %, from 1 s to 3 s; the median is 2 s. With any, 3 of 3 runs reached 92 %, " +
			"from 1 s to 4 s; the median is 2 s.",
	},
	"points that are judged otherwise, without a target": {free(judged("mean", -1), judged("any", -1)),
		"With mean, the run ended at an accuracy of 60 %. With any, the run ended at an accuracy of 60 %."},
	"one run": {of(split("iid", 1)),
		"The run reached 92 % after 1 s; one repeat does not show how much that varies."},
	"one point, most not": {of(split("iid", 0.5, -60, -60)),
		"1 of 3 runs reached 92 %, the first after 500 ms."},
	"one point, never": {of(split("iid", never(3)...)), "No run reached 92 %: the best accuracy was 65 %."},
	"nobody": {of(split("a", never(3)...), split("b", never(3)...)),
		"No run reached 92 %: the best accuracy was 65 %, of a."},
	"no target": {free(ended("a", 0.95, 0.951, 0.952), ended("b", 0.9, 0.91, 0.92), ended("c", 0.8, 0.8, 0.8)),
		"a ended highest, at an accuracy of 95.1 %, and c lowest, at 80 % (medians); each of its 3 runs is above all " +
			"others."},
	"no target, overlap": {free(ended("a", 0.95, 0.91, 0.952), ended("b", 0.9, 0.91, 0.92)),
		"a ended highest, at an accuracy of 95 %, and b lowest, at 91 % (medians), but runs of a overlap with those " +
			"of b."},
	"no target, one repeat": {free(ended("a", 0.95), ended("b", 0.9)),
		"a ended highest, at an accuracy of 95 %, and b lowest, at 90 %; one repeat decides nothing."},
	"no target, one run": {free(ended("a", 0.95)), "The run ended at an accuracy of 95 %."},
	"no target, one point": {free(ended("a", 0.95, 0.9)),
		"2 runs ended at accuracies from 90 % to 95 %; the median is 92.5 %."},
	"degraded": {of(degrade(split("iid", around(1.3, 5)...), 2, record.Degraded)),
		"2 of 5 runs are degraded: their figures are worth less. 5 of 5 runs reached 92 %, from 1.25 s to 1.35 s; " +
			"the median is 1.3 s."},
	"one resumed": {of(resume(split("iid", around(1.3, 5)...), 1, false)),
		"1 of 5 runs was resumed from a checkpoint. Comparisons leave it out; gradwire report --with-resumed " +
			"includes it. 4 of 4 runs reached 92 %, from 1.27 s to 1.35 s; the median is 1.31 s."},
	"resumed": {of(resume(split("iid", around(1.3, 5)...), 2, false)),
		"2 of 5 runs were resumed from a checkpoint. Comparisons leave them out; gradwire report --with-resumed " +
			"includes them. 3 of 3 runs reached 92 %, from 1.27 s to 1.35 s; the median is 1.33 s."},
	"one resumed, compared": {of(resume(split("iid", around(1.3, 5)...), 1, true)),
		"1 of 5 runs was resumed from a checkpoint. Comparisons include it. 5 of 5 runs reached 92 %, from " +
			"1.25 s to 1.35 s; the median is 1.3 s."},
	"resumed, compared": {of(resume(split("iid", around(1.3, 5)...), 2, true)),
		"2 of 5 runs were resumed from a checkpoint. Comparisons include them. 5 of 5 runs reached 92 %, from " +
			"1.25 s to 1.35 s; the median is 1.3 s."},
	"the run resumed": {of(resume(split("iid", 1), 1, false)),
		"The run was resumed from a checkpoint. Comparisons leave it out; gradwire report --with-resumed includes " +
			"it. The run reached 92 % after 1 s; one repeat does not show how much that varies."},
	"some failed": {
		of(split("iid", 1.3, 0, 1.4, 1.35), split("far", around(30, 4)...)),
		"1 of 8 runs failed. iid (1.38 s, 3 of 4 runs) and far (29.7 s) cannot be told apart in their time to 92 %. iid " +
			"reached the target in a smaller share of runs than another leader, and so cannot be called faster than that " +
			"leader. A later bound, such as stop.time, may tell more.",
	},
	"all failed": {of(split("iid", 0, 0), split("far", 0, 0)), "All 4 runs failed: there is no result."},
	"failed":     {of(split("iid", 0)), "The run failed: it has no result."},
	"stalled": {of(stalled()),
		"Nothing happened in 1 of 5 runs after some time, in the first after 500 ms. 5 of 5 runs " +
			"reached 92 %, from 1.25 s to 1.35 s; the median is 1.3 s."},
	"not complete": {unfinished(),
		"Not complete: 5 of 10 runs are recorded. 5 of 5 runs reached 92 %, from 1.25 s to " +
			"1.35 s; the median is 1.3 s."},
	"circumstances": {of(two("iid", "gossip", around(3, 5)...), two("iid", "local", around(30, 5)...),
		two("skewed", "gossip", around(9, 5)...), two("skewed", "local", never(5)...)),
		"With iid, gossip reaches 92 % first: after 3 s, in 5 of 5 runs. With skewed, gossip reaches 92 % first: " +
			"after 9 s, in 5 of 5 runs."},
	"many circumstances": {of(many()...),
		"Of 6 comparisons, local is fastest in 3 and gossip is fastest in 3."},
	"mappings": {of(at("architecture", "{kind: gossip, every: 4}", around(3, 5)...),
		at("architecture", "{kind: gossip, every: 8}", around(9, 5)...)),
		"gossip, every 4 reaches 92 % first: after 3 s, in 5 of 5 runs. gossip, every 8 takes 9 s."},
	"numbers": {of(at("architecture.every", "4", around(3, 5)...), at("architecture.every", "8", around(9, 5)...)),
		"every 4 reaches 92 % first: after 3 s, in 5 of 5 runs. every 8 takes 9 s."},
	"nothing": {record.Summary{}, "No run is recorded."},
}

func TestHeadlineSaysWhoWonAndHowSureThatIs(t *testing.T) {
	for name, c := range headlines {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(report.Headline(c.s), " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Whatever a record holds, its headline is a few whole sentences that claim a winner only where the
// record has one.
func TestHeadlineOfAnyRecordIsSentences(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 3000 {
		var goal *float64
		if r.IntN(4) > 0 {
			goal = &target
		}
		var all [][]record.Run
		for i := range r.IntN(6) {
			p := record.Point{{Key: "architecture", Value: fmt.Sprintf("{kind: k%d, every: %d}", i%2, i)}}
			if r.IntN(2) == 0 {
				p = append(p, record.Setting{Key: "data.split", Value: fmt.Sprint(r.IntN(3))})
			}
			var seconds []float64
			for range 1 + r.IntN(7) {
				seconds = append(seconds, float64(r.IntN(5)-1)*float64(1+i))
			}
			all = append(all, reporttest.Runs(p, nil, func(run *record.Run) {
				run.Outcome = []record.Outcome{run.Outcome, record.Degraded, record.Failed}[max(0, r.IntN(8)-5)]
				if r.IntN(9) == 0 {
					run.FinalAccuracy, run.BestAccuracy = record.Float(math.NaN()), record.Float(math.NaN())
				}
			}, seconds...))
		}
		s := reporttest.Summary(goal, all...)
		lines := report.Headline(s)
		fastest := false
		for _, g := range s.Groups {
			fastest = fastest || g.Verdict == "fastest"
		}
		text := strings.Join(lines, " ")
		bad := len(lines) == 0 || len(lines) > 7 || fastest != (strings.Contains(text, " first") ||
			strings.Contains(text, "is fastest in")) && !strings.Contains(text, "the first after")
		for _, word := range []string{"NaN", "Inf", "  ", "..", "()", "%!", "e+", " ,", "{"} {
			bad = bad || strings.Contains(text, word)
		}
		for _, line := range lines {
			bad = bad || !strings.HasSuffix(line, ".")
		}
		if bad {
			t.Fatalf("%q\nof %+v", lines, s.Groups)
		}
	}
}

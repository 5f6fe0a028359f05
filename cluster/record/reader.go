package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// longest bounds the times in seconds and the epochs of a record that is read to be
// shown: beyond it a figure has no axis.
const longest = 1e12

// Reader reads a record, whole or broken off, that anybody may have made.
type Reader struct {
	dir string
	// Plan is the resolved plan's text.
	Plan string
	// Summary is summary.json, with its groups recomputed from its runs.
	Summary Summary
}

// NewReader reads the plan and the summary of a folder. Where a program was killed before it wrote
// the summary, that is put together of the runs that are finished; see Summary.RunsPlanned.
// ErrNoRecord stands for a folder without a plan. Errors name the file, and where there is one the
// line.
func NewReader(dir string) (*Reader, error) {
	plan, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	s, err := ReadSummary(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	if missing || s.Runs != nil && len(s.Runs) == 0 { // killed before it wrote a summary with a run
		made, err := summaryOf(dir, string(plan))
		switch {
		case err != nil:
			return nil, err
		case len(made.Runs) > 0:
			s = made
		case missing:
			return nil, fmt.Errorf("%s: there is no %s, and no run is finished: %w", dir, summaryName, fs.ErrNotExist)
		}
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, summaryName), err)
	}
	s.Groups = GroupRuns(s.Runs, s.Target)
	return &Reader{dir: dir, Plan: string(plan), Summary: s}, nil
}

// In a resolved plan, its name and the target.
var (
	planNameLine   = regexp.MustCompile(`(?m)^name: (.+)$`)
	planTargetLine = regexp.MustCompile(`(?m)^(?:stop|evaluate): \{.*\btarget: ([0-9.]+)%`)
)

// summaryOf sums up the finished runs of a folder without summary.json.
func summaryOf(dir, plan string) (Summary, error) {
	f, err := Open(dir)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Plan: "unknown", Build: Build{Commit: "unknown"}, Runs: f.Runs()}
	if name := planNameLine.FindStringSubmatch(plan); name != nil {
		s.Plan = strings.Trim(name[1], `"'`)
	}
	if target := planTargetLine.FindStringSubmatch(plan); target != nil {
		if percent, err := strconv.ParseFloat(target[1], 64); err == nil {
			percent /= 100
			s.Target = &percent
		}
	}
	for _, r := range s.Runs {
		s.Wall += r.Wall
	}
	s.Tunings, err = ReadTunings(dir)
	return s, err
}

// Missing says in words what a record that is not complete lacks; nothing of one that is.
func (s *Summary) Missing() string {
	switch {
	// what is wrong with runs that are there is said of each
	case s.Complete, s.RunsPlanned > 0 && len(s.Runs) >= s.RunsPlanned:
		return ""
	case s.RunsPlanned == 0:
		return fmt.Sprintf("not complete: the program was ended before it summed up its runs, of which %d are finished",
			len(s.Runs))
	}
	return fmt.Sprintf("not complete: %d of %d runs are recorded", len(s.Runs), s.RunsPlanned)
}

// check finds what no summary is without, and what cannot be.
func (s *Summary) check() error {
	switch {
	case s.Target != nil && !within(*s.Target, 0, 1):
		return fmt.Errorf("key \"target\" is %g; a fraction from 0 to 1 is accepted", *s.Target)
	case s.Runs == nil:
		return errors.New("key \"runs\" is missing: this is no summary of a record")
	}
	first := map[string]*Run{} // of each point, the first run with a hash of its plan
	for i := range s.Runs {
		r := &s.Runs[i]
		if i > 0 && r.Number <= s.Runs[i-1].Number {
			return fmt.Errorf("element %d of runs: run %d comes after run %d", i, r.Number, s.Runs[i-1].Number)
		}
		if err := r.check(); err != nil {
			return fmt.Errorf("element %d of runs: %w", i, err)
		}
		if r.PlanDigest == "" {
			continue
		}
		key := r.Point.Key()
		if first[key] == nil {
			first[key] = r
		}
		if other := first[key]; other.PlanDigest != r.PlanDigest {
			return fmt.Errorf("runs %d and %d are of the same point (%q) but of different plans, and cannot be repeats",
				other.Number, r.Number, r.Point.String())
		}
	}
	return nil
}

// CheckListed returns an error if the summary lists another run under r's number. It accepts a run
// that the summary lists as failed: it may have been made again since.
func (s *Summary) CheckListed(r *Run) error {
	i, known := slices.BinarySearchFunc(s.Runs, r.Number, func(l Run, n int) int { return cmp.Compare(l.Number, n) })
	if !known {
		return nil
	}
	switch l := &s.Runs[i]; {
	case !slices.Equal(r.Point, l.Point) || r.Seed != l.Seed:
		return fmt.Errorf("run %d is of %q, seed %d; %s says %q, seed %d", r.Number, r.Point.String(), r.Seed,
			summaryName, l.Point.String(), l.Seed)
	case l.Outcome != Failed && (r.PlanDigest != l.PlanDigest || r.Digest != l.Digest):
		return fmt.Errorf("run %d has the digest %q, of the plan %q; %s says %q, of the plan %q: it is a run of "+
			"another record", r.Number, r.Digest, r.PlanDigest, summaryName, l.Digest, l.PlanDigest)
	}
	return nil
}

// Dir returns the record's folder.
func (r *Reader) Dir() string { return r.dir }

// Run returns the folder of run n.
func (r *Reader) Run(n int) *RunFolder {
	return &RunFolder{dir: r.dir, name: runFolder(n), number: n}
}

// RunFolder is the folder of one run, of which nothing has been read.
type RunFolder struct {
	dir, name string
	number    int
}

// OpenRun takes a run's folder by itself, wherever it lies and whatever it is called.
func OpenRun(dir string) *RunFolder { return &RunFolder{dir: dir, name: ".", number: anyNumber} }

// IsRun reports whether a folder is one of a run, not of a record.
func IsRun(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, runName))
	return err == nil
}

// IsRecord reports whether a folder holds a record: a plan, and runs or their summary.
func IsRecord(dir string) bool {
	exists := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	return exists(PlanName) && (exists(runsName) || exists(summaryName))
}

// Path returns the path of the folder.
func (f *RunFolder) Path() string { return filepath.Join(f.dir, f.name) }

// Read reads run.json: what the run has led to and what was counted. Figures that no run
// can have are errors.
func (f *RunFolder) Read() (Run, Data, error) {
	s, err := readRun(f.dir, f.name, f.number)
	return s.Run, s.Data, f.explain(err)
}

// explain adds the finished runs of the record to an error about a missing run.
func (f *RunFolder) explain(err error) error {
	if !errors.Is(err, fs.ErrNotExist) || IsRun(f.Path()) {
		return err
	}
	runs := filepath.Dir(filepath.Clean(f.Path()))
	entries, _ := os.ReadDir(runs)
	var finished []string
	for _, e := range entries {
		if _, ok := runNumber(e.Name()); ok && IsRun(filepath.Join(runs, e.Name())) {
			finished = append(finished, e.Name())
		}
	}
	switch n := len(finished); n {
	case 0:
		return fmt.Errorf("%w; no run is finished in %s", err, runs)
	case 1:
		return fmt.Errorf("%w; the only finished run in %s is %s", err, runs, finished[0])
	default:
		return fmt.Errorf("%w; the %d finished runs in %s are %s to %s", err, n, runs, finished[0], finished[n-1])
	}
}

// Model opens the model that the run's figures are of, or the nodes' models if they are of several:
// a safetensors file.
func (f *RunFolder) Model() (*os.File, error) {
	file, err := openFile(f.dir, filepath.Join(f.name, modelName))
	if errors.Is(err, fs.ErrNotExist) {
		if several, e := openFile(f.dir, filepath.Join(f.name, modelsName)); e == nil {
			return several, nil
		}
	}
	return file, f.explain(err)
}

// Events opens the run's events, where the plan has them recorded.
func (f *RunFolder) Events() (*os.File, error) {
	return openFile(f.dir, filepath.Join(f.name, eventsName))
}

// within reports whether a value lies between two others; NaN does not.
func within(v, low, high float64) bool { return v >= low && v <= high }

// fraction reports whether an accuracy is one, or unknown.
func fraction(v Float) bool { return math.IsNaN(float64(v)) || within(float64(v), 0, 1) }

var (
	clocks   = []string{"virtual", "real", "cluster"}
	outcomes = []Outcome{Done, Degraded, Failed, CountedOnly}
	// judged are what can be judged, in the order in which messages list them.
	judged = []Of{AverageModel, Mean, All, Any}
)

// checkWords finds words that no run has, and incidents that say nothing.
func (r *Run) checkWords() error {
	switch {
	case !slices.Contains(clocks, r.Clock):
		return unknown("clock", r.Clock, clocks)
	case !slices.Contains(outcomes, r.Outcome):
		return unknown("outcome", r.Outcome, outcomes)
	case !slices.Contains(judged, r.Of):
		return unknown("of", r.Of, judged)
	}
	for of, at := range r.Crossings {
		if !slices.Contains(judged, of) {
			return unknown("crossings_s", of, judged)
		}
		if !within(at, 0, longest) {
			return fmt.Errorf("key \"crossings_s\" has %s at %g s; 0 to %g are accepted", of, at, longest)
		}
	}
	for i, n := range r.Incidents {
		if !within(n.At, 0, longest) || n.Node == "" || n.What == "" {
			return fmt.Errorf("element %d of incidents: %q at node %q after %g s; a sentence, a node and 0 to %g s "+
				"are accepted",
				i, n.What, n.Node, n.At, longest)
		}
		if harms := []Harm{NoHarm, ToTimes, ToAll}; !slices.Contains(harms, n.Harm) {
			return fmt.Errorf("element %d of incidents: %w", i, unknown("harm", n.Harm, harms))
		}
	}
	return nil
}

// unknown says which words a key may have.
func unknown[T ~string](key string, is T, accepted []T) error {
	words := make([]string, len(accepted))
	for i, word := range accepted {
		words[i] = string(word)
	}
	last := len(words) - 1
	return fmt.Errorf("key %q is %q; %s and %s are accepted", key, string(is), strings.Join(words[:last], ", "),
		words[last])
}

// check finds figures that no run has.
func (r *Run) check() error {
	if err := r.checkWords(); err != nil {
		return err
	}
	switch {
	case r.Number < 0 || r.Number >= MaxRuns:
		return fmt.Errorf("key \"run\" is %d; 0 to %d are accepted", r.Number, MaxRuns-1)
	case r.Reached != (r.TimeToTarget != nil) || r.Reached != (r.EpochsToTarget != nil):
		return errReached
	case r.Reached && !(within(*r.TimeToTarget, 0, longest) && within(*r.EpochsToTarget, 0, longest)):
		return fmt.Errorf("the target is reached after %g s and %g epochs; 0 to %g are accepted",
			*r.TimeToTarget, *r.EpochsToTarget, longest)
	case !fraction(r.FinalAccuracy) || !fraction(r.BestAccuracy):
		return fmt.Errorf("the accuracies are %v and %v; fractions from 0 to 1 are accepted",
			r.FinalAccuracy, r.BestAccuracy)
	case r.Messages < 0 || r.Bytes < 0:
		return fmt.Errorf("%d messages of %d bytes; 0 and more are accepted", r.Messages, r.Bytes)
	case !within(r.NodeTimeout, 0, longest):
		return fmt.Errorf("key \"node_timeout_s\" is %g; 0 to %g are accepted", r.NodeTimeout, longest)
	case !within(r.Duration, 0, longest):
		return fmt.Errorf("key \"run_s\" is %g; 0 to %g are accepted", r.Duration, longest)
	case !within(r.Epochs, 0, longest):
		return fmt.Errorf("key \"run_epochs\" is %g; 0 to %g are accepted", r.Epochs, longest)
	case r.Target != nil && !within(*r.Target, 0, 1):
		return fmt.Errorf("key \"target\" is %g; a fraction from 0 to 1 is accepted", *r.Target)
	case r.Bracket != nil && !r.Bracket.sound():
		return fmt.Errorf("key \"bracket\" is from %g to %g s and %g to %g epochs; rising values from 0 to %g are "+
			"accepted",
			r.Bracket.TimeAfter, r.Bracket.TimeBefore, r.Bracket.EpochsAfter, r.Bracket.EpochsBefore, longest)
	}
	return nil
}

func (b *Bracket) sound() bool {
	return within(b.TimeAfter, 0, b.TimeBefore) && within(b.TimeBefore, 0, longest) &&
		within(b.EpochsAfter, 0, b.EpochsBefore) && within(b.EpochsBefore, 0, longest)
}

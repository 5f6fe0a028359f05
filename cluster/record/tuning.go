package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
)

const tuningName = "tuning.json"

// Tuning is how the settings of one point were chosen, and what that has cost: an element of
// tuning.json.
type Tuning struct {
	// Point is the point of the plan's sweep, whose repeats use what was chosen.
	Point Point `json:"point"`
	// Seed is the seed of the runs that were judged.
	Seed uint64 `json:"seed"`
	// Chosen is the place of the candidate that was chosen, from 0.
	Chosen     int         `json:"chosen"`
	Candidates []Candidate `json:"candidates"`
	// Duration and Wall are the seconds that all candidates took, on the runs' clocks and on the
	// machine's.
	Duration float64 `json:"run_s"`
	Wall     float64 `json:"wall_s"`
	// AtBound holds the keys whose chosen number is the smallest or largest candidate, if the plan
	// accepts no number beyond it.
	AtBound []string `json:"at_bound,omitempty"`
	// Edges are sentences about chosen numbers that are the smallest or the largest candidate of their
	// key: a number beyond them may be better. ReadTunings finds them in the candidates.
	Edges []string `json:"edges,omitempty"`
}

// edges returns a sentence for each chosen number that is the smallest or the largest candidate of
// its key, unless the plan accepts no number beyond.
func (t *Tuning) edges() (all []string) {
	for _, e := range t.Ends() {
		switch {
		case slices.Contains(t.AtBound, e.Key):
		case e.Largest:
			all = append(all, e.Key+" "+e.Value+" is the largest candidate: a larger one may be better")
		default:
			all = append(all, e.Key+" "+e.Value+" is the smallest candidate: a smaller one may be better")
		}
	}
	return all
}

// End is a chosen number at an end of its key's candidates: the largest, or else the smallest.
type End struct {
	Setting
	Number  float64
	Largest bool
}

// Ends returns the chosen numbers that are the smallest or the largest of several candidates. A
// smallest number of 0 is not among them: no tuned setting accepts a negative one.
func (t *Tuning) Ends() (all []End) {
	for _, s := range t.Candidates[t.Chosen].Values {
		chosen, err := strconv.ParseFloat(s.Value, 64)
		if err != nil {
			continue
		}
		low, high := chosen, chosen
		for _, c := range t.Candidates {
			if v, err := strconv.ParseFloat(c.Values.Value(s.Key), 64); err == nil {
				low, high = min(low, v), max(high, v)
			}
		}
		switch {
		case low == high:
		case chosen == high, chosen == low && chosen > 0:
			all = append(all, End{Setting: s, Number: chosen, Largest: chosen == high})
		}
	}
	return all
}

// Candidate is a run that was judged on the validation split.
type Candidate struct {
	// Values are those that the plan would have.
	Values Point `json:"values"`
	// Reached says whether what is judged arrived at the target; TimeToTarget, in seconds, is nil
	// if not.
	Reached      bool     `json:"reached"`
	TimeToTarget *float64 `json:"time_to_target_s"`
	// FinalAccuracy is the accuracy at the last evaluation, NaN if there was none.
	FinalAccuracy Float `json:"final_accuracy"`
	// Duration and Wall are the seconds that the run took, on its clock and on the machine's. Wall
	// includes runs of it that had lost a process.
	Duration float64 `json:"run_s"`
	Wall     float64 `json:"wall_s"`
	// Outcome and Incidents say how the run ended; empty if it could not go on.
	Outcome   Outcome    `json:"outcome,omitempty"`
	Incidents []Incident `json:"incidents,omitempty"`
	// Failure says why the run could not go on; empty if it could.
	Failure string `json:"failure,omitempty"`
}

// tunings is tuning.json.
type tunings struct {
	Tunings []Tuning `json:"tunings"`
}

// SaveTunings writes how the settings of the plan's points were chosen; it replaces what was
// written before.
func (f *Folder) SaveTunings(all []Tuning) error {
	return writeJSON(f.disk, filepath.Join(f.dir, tuningName), tunings{all})
}

// ReadTunings reads how the settings of a record's points were chosen; none in a record of a plan
// that has nothing to choose.
func ReadTunings(dir string) ([]Tuning, error) {
	var t tunings
	if err := readJSON(dir, tuningName, &t); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for i := range t.Tunings {
		if one := &t.Tunings[i]; one.Chosen < 0 || one.Chosen >= len(one.Candidates) {
			return nil, fmt.Errorf("%s: key \"chosen\" is %d, of %d candidates",
				filepath.Join(dir, tuningName), one.Chosen, len(one.Candidates))
		}
		t.Tunings[i].Edges = t.Tunings[i].edges()
	}
	return t.Tunings, nil
}

// ReadPlanAs compares plans with text from now on, which says in today's words what the folder's
// plan says. Nothing is written.
func (f *Folder) ReadPlanAs(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = []byte(text)
}

// ReplacePlan replaces the plan that the folder was made by with another, which all of its runs
// must be runs of.
func (f *Folder) ReplacePlan(text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writePlan(text)
}

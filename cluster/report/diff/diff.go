// Package diff says where two recorded runs, or two records, differ.
package diff

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/pairing"
)

const (
	// maxEventLine is the most bytes of a line of events that is compared.
	maxEventLine = 1 << 20
	// maxShownLine is how many bytes of a line that differs are kept.
	maxShownLine = 4096
)

// Comparison says where two runs or two records differ.
type Comparison struct {
	// A and B are the folders, Kind is "run" or "record".
	A    string `json:"a"`
	B    string `json:"b"`
	Kind string `json:"kind"`
	// Equal says that nothing differs which counts.
	Equal bool `json:"equal"`
	// Notes are about what does not count.
	Notes []string `json:"notes"`
	// Plan is the first line in which the plans of two records differ.
	Plan *Difference `json:"plan,omitempty"`
	// OnlyA and OnlyB are runs that the other record has none of the same point and seed of.
	OnlyA []string `json:"only_a,omitempty"`
	OnlyB []string `json:"only_b,omitempty"`
	// Key is the one setting in which the points of paired runs differ; empty where they are equal.
	Key string `json:"points_differ_in,omitempty"`
	// Changes are the settings in which the plans differ.
	Changes []pairing.Change `json:"changes,omitempty"`
	// Compared counts the pairs of runs; Runs are those that differ.
	Compared int              `json:"compared"`
	Runs     []*RunDifference `json:"runs"`
	// What names all that was compared of a single pair of runs.
	What []string `json:"what,omitempty"`
}

// RunDifference says where two runs differ, first that which came first in time.
type RunDifference struct {
	A           string        `json:"a"`
	B           string        `json:"b"`
	Point       record.Point  `json:"point"`
	Seed        uint64        `json:"seed"`
	Differences []*Difference `json:"differences"`
}

// Difference is one thing that is not the same, in JSON; null for what is not there.
type Difference struct {
	What  string          `json:"what"`
	Where string          `json:"where,omitempty"`
	A     json.RawMessage `json:"a"`
	B     json.RawMessage `json:"b"`
	// Note says how much differs.
	Note string `json:"note,omitempty"`
}

// Compare compares two folders of runs, or two records by the runs of equal seed and equal point,
// or of points that differ in one key alone. Of the runs it holds one pair at a time; models and
// events are read piece by piece.
func Compare(a, b string) (*Comparison, error) {
	c := &Comparison{A: a, B: b, Kind: "record", Notes: []string{}, Runs: []*RunDifference{}}
	one, two := isRun(a), isRun(b)
	var err error
	switch {
	case one != two:
		run, other := a, b
		if two {
			run, other = b, a
		}
		return nil, fmt.Errorf("%s is the folder of a run, but %s is none; two runs or two records are accepted",
			run, other)
	case one:
		c.Kind = "run"
		err = c.runs(record.OpenRun(a), record.OpenRun(b))
	default:
		err = c.records()
	}
	c.Equal = c.Plan == nil && c.Key == "" && len(c.OnlyA)+len(c.OnlyB)+len(c.Runs) == 0
	return c, err
}

// isRun reports whether a folder holds a run, or is called like one that does.
func isRun(dir string) bool {
	return record.IsRun(dir) || filepath.Base(filepath.Dir(filepath.Clean(dir))) == "runs"
}

func (c *Comparison) records() error {
	one, err := record.NewReader(c.A)
	if err != nil {
		return err
	}
	two, err := record.NewReader(c.B)
	if err != nil {
		return err
	}
	if one.Summary.Build != two.Summary.Build {
		c.Notes = append(c.Notes, fmt.Sprintf("the builds differ: %v; and %v", one.Summary.Build, two.Summary.Build))
	}
	for _, r := range []*record.Reader{one, two} {
		if missing := r.Summary.Missing(); missing != "" {
			c.Notes = append(c.Notes, r.Dir()+" is "+missing)
		}
	}
	c.Notes = append(c.Notes, record.OtherData(one.Summary.Data, two.Summary.Data)...)
	c.Plan = diffText("plan", one.Plan, two.Plan)
	c.Changes = pairing.Changes(one.Plan, two.Plan)
	if err := c.pairRuns(one, two); err != nil {
		return err
	}
	c.What = nil
	return nil
}

// pairRuns compares the runs of equal seed and of points that answer each other, and lists the
// others.
func (c *Comparison) pairRuns(one, two *record.Reader) error {
	pointsA, pointsB := pointsOf(one.Summary), pointsOf(two.Summary)
	pairs := pairing.Match(pointsA, pointsB)
	if c.Key = pairs.Key; c.Key != "" {
		c.Notes = append(c.Notes, pairs.Note(pointsA, pointsB))
	}
	id := func(r record.Run) string { return fmt.Sprint(r.Seed, " ", pairing.Without(r.Point, c.Key).Key()) }
	places := map[string]record.Run{}
	for _, r := range two.Summary.Runs {
		places[id(r)] = r
	}
	for _, r := range one.Summary.Runs {
		other, ok := places[id(r)]
		if !ok {
			c.OnlyA = append(c.OnlyA, report.RunName(r))
			continue
		}
		delete(places, id(r))
		if err := c.runs(one.Run(r.Number), two.Run(other.Number)); err != nil {
			return err
		}
	}
	for _, r := range two.Summary.Runs {
		if _, left := places[id(r)]; left {
			c.OnlyB = append(c.OnlyB, report.RunName(r))
		}
	}
	return nil
}

// pointsOf are the points of a summary's runs.
func pointsOf(s record.Summary) (points []record.Point) {
	for _, g := range s.Groups {
		points = append(points, g.Point)
	}
	return points
}

// runs compares a pair of runs and keeps it if it differs.
func (c *Comparison) runs(a, b *record.RunFolder) error {
	one, dataA, err := a.Read()
	if err != nil {
		return err
	}
	two, dataB, err := b.Read()
	if err != nil {
		return err
	}
	c.Compared++
	c.What = []string{"summary"}
	r := &RunDifference{A: a.Path(), B: b.Path(), Point: one.Point, Seed: one.Seed}
	r.summary(&one, &two, slices.DeleteFunc(slices.Clone(identity), func(key string) bool {
		return key == "point" && c.Key != "" // it is said once, of all
	})...)
	lines, err := r.events(a, b)
	if err != nil {
		return err
	}
	r.data(&dataA, &dataB)
	r.summary(&one, &two, results()...)
	elements, err := r.model(a, b)
	if err != nil {
		return err
	}
	c.What = append(c.What, report.Count(len(dataA.Curve), "evaluation"))
	if n := len(dataA.Models); n > 0 {
		c.What = append(c.What, report.Count(n, "verdict")+" on nodes' models")
	}
	c.What = append(c.What, report.Count(len(dataA.Links), "link"), report.Count(len(dataA.Updates), "worker"))
	if elements > 0 {
		c.What = append(c.What, fmt.Sprintf("a model of %s", report.Count(elements, "parameter")))
	}
	if lines > 0 {
		c.What = append(c.What, report.Count(lines, "event"))
	}
	if len(r.Differences) > 0 {
		c.Runs = append(c.Runs, r)
	}
	return nil
}

func (r *RunDifference) add(d *Difference) {
	if d != nil {
		r.Differences = append(r.Differences, d)
	}
}

// identity is what a run is, before it has led to anything.
var identity = []string{"point", "seed", "clock"}

// derived are keys of what follows from the curve, which is compared itself.
var derived = []string{"bracket", "run_epochs", "models"}

// results are the keys of what runs have led to, but for how fast the machine was.
func results() []string {
	return slices.DeleteFunc(fieldsOf(reflect.TypeFor[record.Run]()), func(key string) bool {
		return slices.Contains(identity, key) || slices.Contains(derived, key) || key == "" ||
			key == "run" || key == "wall_s"
	})
}

// summary compares the values of these keys.
func (r *RunDifference) summary(a, b *record.Run, keys ...string) {
	for _, key := range keys {
		one, two := field(*a, key), field(*b, key)
		if !bytes.Equal(one, two) {
			r.add(&Difference{What: key, A: one, B: two})
		}
	}
}

func (r *RunDifference) data(a, b *record.Data) {
	of := b.Lists()
	for i, one := range a.Lists() {
		r.add(diffLists(one, of[i]))
	}
}

// diffLists finds the first elements that differ, and in them the first key; nil if all are equal.
func diffLists(a, b record.List) *Difference {
	var first *Difference
	differ := 0
	for i := range max(a.Len, b.Len) {
		d := &Difference{What: a.Name}
		switch {
		case i >= a.Len:
			d.Where, d.B = b.At(i).Where(), encode(b.At(i))
		case i >= b.Len:
			d.Where, d.A = a.At(i).Where(), encode(a.At(i))
		case bytes.Equal(encode(a.At(i)), encode(b.At(i))):
			continue
		default:
			d.Where = a.At(i).Where()
			for _, key := range fieldsOf(reflect.TypeOf(a.At(i)).Elem()) {
				if d.A, d.B = field(a.At(i), key), field(b.At(i), key); !bytes.Equal(d.A, d.B) {
					d.Where += ", " + key
					break
				}
			}
		}
		if differ++; first == nil {
			first = d
		}
	}
	if first != nil {
		first.Note = fmt.Sprintf("%d of %d differ", differ, max(a.Len, b.Len))
	}
	return first
}

// fieldsOf returns the keys in JSON of a struct's fields, without the fields of structs inside it.
func fieldsOf(t reflect.Type) (keys []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return keys
}

// field returns the value of the field of a key, in JSON.
func field(in any, key string) json.RawMessage {
	v := reflect.Indirect(reflect.ValueOf(in))
	return encode(v.Field(slices.Index(fieldsOf(v.Type()), key)).Interface())
}

// encode writes a value that was read from JSON as JSON.
func encode(v any) json.RawMessage {
	text, _ := json.Marshal(v) // what was read from JSON can be written
	return text
}

// diffText finds the first line in which two texts differ; nil if none does.
func diffText(what, a, b string) *Difference {
	if a == b {
		return nil
	}
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	i := 0
	for i < len(linesA) && i < len(linesB) && linesA[i] == linesB[i] {
		i++
	}
	d := &Difference{What: what, Where: fmt.Sprintf("line %d", i+1)}
	if i < len(linesA) {
		d.A = shown([]byte(linesA[i]))
	}
	if i < len(linesB) {
		d.B = shown([]byte(linesB[i]))
	}
	return d
}

// shown keeps a line as it is if it is JSON, and else as a string.
func shown(line []byte) json.RawMessage {
	if len(line) <= maxShownLine && json.Valid(line) {
		return bytes.Clone(line)
	}
	return encode(string(line[:min(len(line), maxShownLine)]))
}

// compareFiles compares a file of two runs. Where only one has it, that is a difference, and where
// none has it nothing.
func (r *RunDifference) compareFiles(what string, open func(*record.RunFolder) (*os.File, error),
	a, b *record.RunFolder, compare func(one, two *os.File) error) error {
	one, errA := open(a)
	if errA == nil {
		defer func() { _ = one.Close() }() // nothing was written
	}
	two, errB := open(b)
	if errB == nil {
		defer func() { _ = two.Close() }()
	}
	missingA, missingB := errors.Is(errA, fs.ErrNotExist), errors.Is(errB, fs.ErrNotExist)
	switch {
	case errA == nil && errB == nil:
		return compare(one, two)
	case errA != nil && !missingA:
		return errA
	case errB != nil && !missingB:
		return errB
	case missingA != missingB:
		r.add(&Difference{What: what, Where: "file", A: encode(!missingA), B: encode(!missingB),
			Note: "only one of them has it"})
	}
	return nil
}

// model compares the parameters and returns how many there are.
func (r *RunDifference) model(a, b *record.RunFolder) (elements int, err error) {
	err = r.compareFiles("model", (*record.RunFolder).Model, a, b, func(one, two *os.File) error {
		d, err := safetensors.Diff(one, two)
		switch {
		case err != nil:
			return fmt.Errorf("comparing %s (A) with %s (B): %w", filepath.Join(a.Path(), "model.safetensors"),
				filepath.Join(b.Path(), "model.safetensors"), err)
		case d.Shapes != "":
			r.add(&Difference{What: "model", Where: "tensors", Note: d.Shapes})
		case !d.Equal():
			r.add(&Difference{
				What: "model", Where: fmt.Sprintf("%q, element %d", d.Tensor, d.First), A: encode(record.Float(d.A)),
				B:    encode(record.Float(d.B)),
				Note: fmt.Sprintf("%d of %d parameters differ, by at most %.3g", d.Differ, d.Elements, d.Largest),
			})
		}
		elements = d.Elements
		return nil
	})
	return elements, err
}

// events compares the events line by line up to the first that differs, and returns how
// many were equal.
func (r *RunDifference) events(a, b *record.RunFolder) (equal int, err error) {
	err = r.compareFiles("events", (*record.RunFolder).Events, a, b, func(one, two *os.File) error {
		left, right := lines(one), lines(two)
		for {
			moreA, moreB := left.Scan(), right.Scan()
			if err := cmp.Or(lineError(left, a, equal+1), lineError(right, b, equal+1)); err != nil {
				return err
			}
			switch {
			case !moreA && !moreB:
				return nil
			case moreA == moreB && bytes.Equal(left.Bytes(), right.Bytes()):
				equal++
				continue
			}
			d := &Difference{What: "events", Where: fmt.Sprintf("line %d", equal+1),
				Note: firstKey(left.Bytes(), right.Bytes())}
			if moreA {
				d.A = shown(left.Bytes())
			}
			if moreB {
				d.B = shown(right.Bytes())
			}
			r.add(d)
			return nil
		}
	})
	return equal, err
}

func lines(f io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 64<<10), maxEventLine)
	return s
}

// lineError is the error of reading a line of a run's events; nil if it was read, or there is none.
func lineError(s *bufio.Scanner, of *record.RunFolder, number int) error {
	err := s.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("this line has more than the %d bytes that are accepted", maxEventLine)
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", filepath.Join(of.Path(), "events.jsonl"), number, err)
	}
	return nil
}

// firstKey says in which key, the first in the alphabet, two lines of JSON differ; empty if they
// are none.
func firstKey(a, b []byte) string {
	var one, two map[string]json.RawMessage
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &two) != nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(one)) {
		if !bytes.Equal(one[key], two[key]) {
			return fmt.Sprintf("%s %s | %s", key, valueText(one[key]), valueText(two[key]))
		}
	}
	return ""
}

// Package shelf loads the data sets that plans name, cuts and scales them, and keeps them while
// they are in use.
package shelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

// Samples are a data set, cut and scaled. Nobody changes them.
type Samples struct {
	// Train, Test and Validation are the parts. Validation is nil unless the plan asks for it.
	Train, Test, Validation *datasets.Set
	// Sparse is Train by its values that are not 0; nil where that does not pay, or where it is to
	// come.
	Sparse *nn.Sparse
	// Filler has filled their gaps with means; nil for samples without any.
	Filler *datasets.Filler
	// Scaler has scaled them; nil for samples that are as they were read.
	Scaler *datasets.Scaler
	// Files are what they were read from.
	Files []datasets.File
}

// Shelf keeps what is costly to make while it is in use: data sets as long as the
// plan runs, cut and scaled ones for the last few seeds.
type Shelf struct {
	folders []string
	keep    int
	shared  *Shared

	mu      sync.Mutex
	sources map[string]func() (*datasets.Source, error) // loads it the first time
	read    []datasets.File                             // of the sources
	cut     map[string]func() (*Samples, error)
	recent  []string // keys of cut, the latest last
}

// Cache is the folder within the user's cache that data sets are put into. It is an error if
// the system names no such folder.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to keep data sets in: %w", err)
	}
	return filepath.Join(dir, "gradwire", "datasets"), nil
}

// Folders returns the folders that are searched for data sets, in this order: the named one, if
// any, the value of the variable GRADWIRE_DATA, and the user's cache.
func Folders(named string) []string {
	var folders []string
	cache, err := Cache()
	if err != nil {
		cache = "" // a user without one names another folder
	}
	for _, folder := range []string{named, os.Getenv("GRADWIRE_DATA"), cache} {
		if folder != "" && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// Load loads a data set from the first of the folders that has it.
func Load(l catalog.Loader, folders []string, published bool) (source *datasets.Source, err error) {
	if len(folders) == 0 {
		source, err = l.Load("", published)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no folder of data sets is named, as --data or GRADWIRE_DATA does: %w", err)
		}
		return source, err
	}
	for _, folder := range folders {
		s, e := l.Load(folder, published)
		if !errors.Is(e, fs.ErrNotExist) {
			return s, e
		}
		if err == nil {
			err = e
		}
	}
	if others := folders[1:]; len(others) > 0 {
		err = fmt.Errorf("%w; nor is it in %s", err, strings.Join(others, " or "))
	}
	return nil, err
}

// New returns an empty shelf over the folders of data, which keeps what is cut for the last
// few seeds. Shelves of the same Shared share what they use; nil shares nothing.
func New(folder string, keep int, shared *Shared) *Shelf {
	if shared == nil {
		shared = &Shared{}
	}
	return &Shelf{
		folders: Folders(folder), keep: keep, shared: shared,
		sources: map[string]func() (*datasets.Source, error){}, cut: map[string]func() (*Samples, error){},
	}
}

// Source returns the data set that a plan names, as it is read. An error names the key.
func (s *Shelf) Source(d *catalog.Data) (*datasets.Source, error) {
	published := d.Test == 0
	key := fmt.Sprint(d.SourceKey, published)
	s.mu.Lock()
	get := s.sources[key]
	if get == nil {
		get = sync.OnceValues(func() (*datasets.Source, error) {
			source, err := s.shared.sources.get(s.stamped(d, key),
				func() (*datasets.Source, error) { return Load(d.Loader, s.folders, published) })
			if err == nil {
				s.addFiles(source.Files)
			}
			return source, err
		})
		s.sources[key] = get
	}
	s.mu.Unlock()
	source, err := await(s.shared.Stop, get)
	switch {
	case s.shared.stopped():
		return nil, context.Cause(s.shared.Stop)
	case err != nil:
		return nil, syntax.Errorf(blamed(d.Section, err), "%w", err)
	case published && source.Test == nil:
		return nil, syntax.Errorf(d.Section.At("test"), "%s has no published test set; give a share to hold out, such "+
			"as 25%%", source.Pool.Name)
	}
	return source, nil
}

// addFiles remembers files that have been read, each once.
func (s *Shelf) addFiles(files []datasets.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		if !slices.ContainsFunc(s.read, func(r datasets.File) bool { return reflect.DeepEqual(r, f) }) {
			s.read = append(s.read, f)
		}
	}
}

// Files describes the files that have been read.
func (s *Shelf) Files() (files []record.DataFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.read {
		files = append(files, record.DataFile{Name: f.Name, Size: f.Size, SHA256: f.SHA256,
			Missing: record.Missing(f.Missing), Notes: f.Notes})
	}
	return record.SortFiles(files)
}

// blamed returns the value in a plan's section data that caused an error of loading: the setting or the
// file that the error names, otherwise the name of the data set.
func blamed(section *syntax.Node, err error) *syntax.Node {
	var setting *datasets.SettingError
	if errors.As(err, &setting) {
		if at, given := section.Get(setting.Key); given {
			return at
		}
	}
	at := section.At("set")
	longest := 0
	fields := section.Fields
	if each := section.At("file"); each.Kind == syntax.Map {
		for _, f := range each.Fields {
			fields = append(slices.Clip(fields), syntax.Field{Key: "file", Value: f.Value})
		}
	}
	for _, f := range fields {
		switch f.Key {
		case "file", "test-file", "images", "labels", "test-images", "test-labels", "x", "y", "test-x", "test-y":
			named := f.Value.Kind == syntax.Scalar && filepath.Base(f.Value.Text) != "." &&
				strings.Contains(err.Error(), f.Value.Text)
			if _, archive := section.Get("file"); archive && f.Key != "file" && f.Key != "test-file" {
				named = false // an array of the file
			}
			if named && len(f.Value.Text) > longest {
				at, longest = f.Value, len(f.Value.Text)
			}
		}
	}
	return at
}

// Samples cuts and scales a data set for a seed.
func (s *Shelf) Samples(d *catalog.Data, seed uint64) (*Samples, error) {
	key := d.Key
	if d.Test != 0 || d.Validation != 0 {
		key = fmt.Sprint(d.Key, seed)
	}
	s.mu.Lock()
	get := s.cut[key]
	if get == nil {
		get = sync.OnceValues(func() (*Samples, error) {
			return s.shared.cuts.get(s.stamped(d, key), func() (*Samples, error) {
				source, err := s.Source(d)
				if err != nil {
					return nil, err
				}
				return cut(d, source, seed)
			})
		})
		s.cut[key] = get
	}
	s.touch(key)
	s.mu.Unlock()
	c, err := await(s.shared.Stop, get)
	if err == nil {
		s.addFiles(c.Files) // another shelf may have read them
	}
	return c, err
}

// touch makes a key the latest and lets the oldest beyond keep go.
func (s *Shelf) touch(key string) {
	if i := slices.Index(s.recent, key); i >= 0 {
		s.recent = slices.Delete(s.recent, i, i+1)
	}
	s.recent = append(s.recent, key)
	for len(s.recent) > s.keep {
		delete(s.cut, s.recent[0])
		s.recent = s.recent[1:]
	}
}

// cut cuts and scales a data set for a seed.
func cut(d *catalog.Data, source *datasets.Source, seed uint64) (*Samples, error) {
	rows, tests, held, err := parts(d, source.Pool.Len(), seed)
	if err != nil {
		return nil, err
	}
	c := &Samples{Files: source.Files}
	if source, err = c.filled(d, source, rows, tests, held); err != nil {
		return nil, err
	}
	c.Train, c.Test = source.Pool, source.Test
	if d.Scaling == datasets.NoScaling && source.Pool.Origin != nil {
		c.noteLoss(source.Pool)
	}
	if rows == nil && d.Scaling == datasets.NoScaling && source.Pool.Origin == nil {
		c.Sparse = nn.NewSparse(c.Train.X, c.Train.Inputs)
		return c, nil
	}
	if tests != nil {
		c.Test = source.Pool
	}
	c.Train, c.Test = subset(c.Train, rows), subset(c.Test, tests)
	if held != nil {
		c.Validation = subset(source.Pool, held)
	}
	if d.FitAll {
		rows = nil
	}
	c.Scaler = datasets.FitScaler(d.Scaling, source.Pool, rows)
	origin := c.Train.Origin
	if d.Scaling == datasets.NoScaling {
		origin = nil
	}
	numbers := distinct(c.Train, origin)
	for _, set := range []*datasets.Set{c.Train, c.Test, c.Validation} {
		if set != nil {
			c.Scaler.Apply(set)
		}
	}
	c.noteOutliers(origin, numbers)
	c.Sparse = nn.NewSparse(c.Train.X, c.Train.Inputs)
	return c, nil
}

// noteLoss notes that samples that are not scaled lose digits.
func (c *Samples) noteLoss(set *datasets.Set) {
	c.note(set, set.Origin, "models take inputs as float32, which has too few digits to tell these values apart; "+
		"scale: standard or min-max keeps the precision")
}

// noteOutliers notes the inputs with an origin whose distinct values scaling has merged, because
// outliers stretch the scale. numbers has the counts of distinct values before scaling.
func (c *Samples) noteOutliers(origin []float64, numbers map[int]int) {
	scaled := distinct(c.Train, origin)
	crowded := make([]float64, len(origin))
	for i, n := range numbers {
		if scaled[i] < n/2 {
			crowded[i] = origin[i]
		}
	}
	c.note(
		c.Train,
		crowded,
		"a few values are so far from these that, scaled with them, float32 has too few digits to "+
			"tell these apart; is a number such as 0 or -1 a mark of missing values (data.marks)?",
	)
}

// counted bounds the number of samples that distinct reads.
const counted = 1 << 16

// distinct counts the distinct values of each input with an origin.
func distinct(set *datasets.Set, origin []float64) map[int]int {
	counts := map[int]int{}
	for input, o := range origin {
		if o == 0 {
			continue
		}
		seen := map[float32]struct{}{}
		for i := range min(set.Len(), counted) {
			seen[set.Row(i)[input]] = struct{}{}
		}
		counts[input] = len(seen)
	}
	return counts
}

// note adds a note about the inputs with an origin to their file, whose name the set has, or to the first file
// if several files hold inputs.
func (c *Samples) note(set *datasets.Set, origin []float64, text string) {
	var inputs []string
	for i, o := range origin {
		if o == 0 {
			continue
		}
		name := "input " + strconv.Itoa(i+1)
		if set.Columns != nil {
			name = "column " + set.Columns[i]
		}
		inputs = append(inputs, fmt.Sprintf("%s, with values such as %s", name, strconv.FormatFloat(o, 'f', -1, 64)))
	}
	if inputs == nil {
		return
	}
	const most = 3
	more := ""
	if n := len(inputs) - most; n > 0 {
		inputs, more = inputs[:most], fmt.Sprintf(" and %d more", n)
	}
	c.Files = slices.Clone(c.Files)
	at := slices.IndexFunc(c.Files, func(f datasets.File) bool { return f.Path == set.Name })
	file := &c.Files[max(at, 0)]
	file.Notes = append(slices.Clone(file.Notes), fmt.Sprintf("%s%s: %s", strings.Join(inputs, "; "), more, text))
}

// filled returns a source without gaps, which is the same if that has none: means are those of the
// rows that are trained on, nil meaning all.
func (c *Samples) filled(d *catalog.Data, source *datasets.Source, rows, tests, held []int32) (*datasets.Source,
	error) {
	if !source.Pool.Gaps {
		return source, nil
	}
	var err error
	if c.Filler, err = datasets.FitFiller(source.Pool, rows); err != nil {
		return nil, syntax.Errorf(d.Section.At("missing"), "%w%s", err, heldOut(err, source, tests, held))
	}
	filled := &datasets.Source{Pool: subset(source.Pool, nil), Files: source.Files}
	c.Filler.Apply(filled.Pool)
	if source.Test != nil {
		filled.Test = subset(source.Test, nil)
		c.Filler.Apply(filled.Test)
	}
	return filled, nil
}

// heldOut returns an addition to a NoMean error: the parts that have the column's values. It returns ""
// for any other error.
func heldOut(err error, source *datasets.Source, tests, held []int32) string {
	var none *datasets.NoMean
	if !errors.As(err, &none) {
		return ""
	}
	var parts []string
	count := func(set *datasets.Set, rows []int32, part string) {
		n := 0
		for _, row := range rows {
			if v := float64(set.Row(int(row))[none.Column]); !math.IsNaN(v) {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d in %s", n, part))
		}
	}
	count(source.Pool, tests, "the hold-out part (data.test)")
	count(source.Pool, held, "the validation part (data.validation)")
	way := ": hold out a smaller share, or split with another seed"
	if parts == nil && source.Test != nil {
		count(source.Test, source.Test.Rows(), "the test file")
		way = ""
	}
	if parts == nil {
		return "; no sample has one"
	}
	return "; all of its values are elsewhere, " + strings.Join(parts, " and ") + way
}

// subset copies some rows of a set, and all without rows.
func subset(set *datasets.Set, rows []int32) *datasets.Set {
	if rows == nil {
		for i := range int32(set.Len()) {
			rows = append(rows, i)
		}
	}
	return set.Subset(rows)
}

// parts are the rows of n samples that are trained on, tested on and held out to choose settings
// by: nil to train on all, to test on the published set, and to hold none out.
func parts(d *catalog.Data, n int, seed uint64) (rows, tests, held []int32, err error) {
	if d.Test != 0 {
		if rows, tests, err = datasets.Holdout(n, d.Test, seed); err != nil {
			return nil, nil, nil, syntax.Errorf(d.Section.At("test"), "%w", err)
		}
	}
	if d.Validation == 0 {
		return rows, tests, nil, nil
	}
	left := n
	if rows != nil {
		left = len(rows)
	}
	learnt, chosen, err := datasets.Validation(left, d.Validation, seed)
	if err != nil {
		return nil, nil, nil, syntax.Errorf(d.Section.At("validation"), "%w", err)
	}
	if rows == nil {
		return learnt, nil, chosen, nil
	}
	return pick(rows, learnt), tests, pick(rows, chosen), nil
}

// TrainingRows returns which of n samples are trained on with a seed, in ascending order; nil
// stands for all.
func TrainingRows(d *catalog.Data, n int, seed uint64) ([]int32, error) {
	rows, _, _, err := parts(d, n, seed)
	return rows, err
}

// pick returns the values at some positions.
func pick(values, positions []int32) []int32 {
	picked := make([]int32, len(positions))
	for i, at := range positions {
		picked[i] = values[at]
	}
	return picked
}

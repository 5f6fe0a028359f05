package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

// samples are a data set, cut and scaled. Validation is nil unless the plan asks for it.
type samples struct {
	train, test, validation *datasets.Set
	sparse                  *nn.Sparse // of train; nil where that does not pay, or where it is to come

	filler *datasets.Filler // that filled their gaps with means; nil for samples without any
	scaler *datasets.Scaler // that scaled them; nil for samples that are as they were read
	files  []datasets.File  // that they were read from
}

// Shelf keeps what is costly to make while it is in use: data sets as long as the
// plan runs, cut and scaled ones for the last few seeds.
type Shelf struct {
	folders []string
	keep    int
	shared  *SharedData

	mu      sync.Mutex
	sources map[string]func() (*datasets.Source, error) // loads it the first time
	read    []datasets.File                             // of the sources
	cut     map[string]func() (*samples, error)
	recent  []string // keys of cut, the latest last
}

// CacheFolder is the folder within the user's cache that data sets are put into. It is an error if
// the system names no such folder.
func CacheFolder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to keep data sets in: %w", err)
	}
	return filepath.Join(dir, "gradwire", "datasets"), nil
}

// DataFolders returns the folders that are searched for data sets, in this order: the named one, if
// any, the value of the variable GRADWIRE_DATA, and the user's cache.
func DataFolders(named string) []string {
	var folders []string
	cache, err := CacheFolder()
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

// LoadData loads a data set from the first of the folders that has it.
func LoadData(l catalog.Loader, folders []string, published bool) (source *datasets.Source, err error) {
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

// NewShelf returns an empty shelf over the folders of data, which keeps what is cut for the last
// few seeds. Shelves of the same SharedData share what they use; nil shares nothing.
func NewShelf(folder string, keep int, shared *SharedData) *Shelf {
	if shared == nil {
		shared = &SharedData{}
	}
	return &Shelf{
		folders: DataFolders(folder), keep: keep, shared: shared,
		sources: map[string]func() (*datasets.Source, error){}, cut: map[string]func() (*samples, error){},
	}
}

func (s *Shelf) source(d *catalog.Data) (*datasets.Source, error) {
	published := d.Test == 0
	key := fmt.Sprint(d.SourceKey, published)
	s.mu.Lock()
	get := s.sources[key]
	if get == nil {
		get = sync.OnceValues(func() (*datasets.Source, error) {
			source, err := s.shared.sources.get(s.stamped(d, key),
				func() (*datasets.Source, error) { return LoadData(d.Loader, s.folders, published) })
			if err == nil {
				s.addFiles(source.Files)
			}
			return source, err
		})
		s.sources[key] = get
	}
	s.mu.Unlock()
	source, err := get()
	switch {
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
		if !slices.Contains(s.read, f) {
			s.read = append(s.read, f)
		}
	}
}

// files describes the files that have been read.
func (s *Shelf) files() (files []record.DataFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.read {
		files = append(files, record.DataFile{Name: f.Name, Size: f.Size, SHA256: f.SHA256,
			Missing: record.Missing(f.Missing)})
	}
	return record.SortFiles(files)
}

// blamed is the value of a section data that an error of loading is about: the file that it names,
// or else the set.
func blamed(section *syntax.Node, err error) *syntax.Node {
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

// samples cuts and scales a data set for a seed.
func (s *Shelf) samples(d *catalog.Data, seed uint64) (*samples, error) {
	key := d.Key
	if d.Test != 0 || d.Validation != 0 {
		key = fmt.Sprint(d.Key, seed)
	}
	s.mu.Lock()
	get := s.cut[key]
	if get == nil {
		get = sync.OnceValues(func() (*samples, error) {
			return s.shared.cuts.get(s.stamped(d, key), func() (*samples, error) {
				source, err := s.source(d)
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
	c, err := get()
	if err == nil {
		s.addFiles(c.files) // another shelf may have read them
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
func cut(d *catalog.Data, source *datasets.Source, seed uint64) (*samples, error) {
	rows, tests, held, err := parts(d, source.Pool.Len(), seed)
	if err != nil {
		return nil, err
	}
	c := &samples{files: source.Files}
	if source, err = c.filled(d, source, rows); err != nil {
		return nil, err
	}
	c.train, c.test = source.Pool, source.Test
	if rows == nil && d.Scaling == datasets.NoScaling {
		c.sparse = nn.NewSparse(c.train.X, c.train.Inputs)
		return c, nil
	}
	if tests != nil {
		c.test = source.Pool
	}
	c.train, c.test = subset(c.train, rows), subset(c.test, tests)
	if held != nil {
		c.validation = subset(source.Pool, held)
	}
	if d.FitAll {
		rows = nil
	}
	c.scaler = datasets.FitScaler(d.Scaling, source.Pool, rows)
	for _, set := range []*datasets.Set{c.train, c.test, c.validation} {
		if set != nil {
			c.scaler.Apply(set)
		}
	}
	c.sparse = nn.NewSparse(c.train.X, c.train.Inputs)
	return c, nil
}

// filled returns a source without gaps, which is the same if that has none: means are those of the
// rows that are trained on, nil meaning all.
func (c *samples) filled(d *catalog.Data, source *datasets.Source, rows []int32) (*datasets.Source, error) {
	if !source.Pool.Gaps {
		return source, nil
	}
	var err error
	if c.filler, err = datasets.FitFiller(source.Pool, rows); err != nil {
		return nil, syntax.Errorf(d.Section.At("missing"), "%w", err)
	}
	filled := &datasets.Source{Pool: subset(source.Pool, nil), Files: source.Files}
	c.filler.Apply(filled.Pool)
	if source.Test != nil {
		filled.Test = subset(source.Test, nil)
		c.filler.Apply(filled.Test)
	}
	return filled, nil
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

// pick returns the values at some positions.
func pick(values, positions []int32) []int32 {
	picked := make([]int32, len(positions))
	for i, at := range positions {
		picked[i] = values[at]
	}
	return picked
}

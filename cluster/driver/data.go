package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/datasets"
)

// samples are a data set, cut and scaled.
type samples struct{ train, test *datasets.Set }

// shelf keeps what is costly to make while it is in use: data sets as long as the
// plan runs, cut and scaled ones for the last few seeds.
type shelf struct {
	folder string
	keep   int

	mu      sync.Mutex
	sources map[string]*once[*datasets.Source]
	cut     map[string]*once[samples]
	recent  []string // keys of cut, the latest last
}

// once makes a value at most once.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

func (o *once[T]) get(create func() (T, error)) (T, error) {
	o.Do(func() { o.value, o.err = create() })
	return o.value, o.err
}

func newShelf(folder string, keep int) *shelf {
	return &shelf{folder: folder, keep: keep, sources: map[string]*once[*datasets.Source]{}, cut: map[string]*once[samples]{}}
}

func (s *shelf) source(d *catalog.Data) (*datasets.Source, error) {
	published := d.Test == 0
	key := fmt.Sprint(d.SourceKey, published)
	s.mu.Lock()
	o := s.sources[key]
	if o == nil {
		o = &once[*datasets.Source]{}
		s.sources[key] = o
	}
	s.mu.Unlock()
	source, err := o.get(func() (*datasets.Source, error) { return d.Load(s.folder, published) })
	switch {
	case s.folder == "" && errors.Is(err, fs.ErrNotExist):
		return nil, plan.Errorf(d.Section.At("set"), "no folder of data sets is named, as --data or GRADWIRE_DATA does: %w", err)
	case err != nil:
		return nil, plan.Errorf(d.Section.At("set"), "%w", err)
	case published && source.Test == nil:
		return nil, plan.Errorf(d.Section.At("test"), "%s has no published test set; give a share to hold out, such as 25%%", source.Pool.Name)
	}
	return source, nil
}

// samples cuts and scales a data set for a seed.
func (s *shelf) samples(d *catalog.Data, seed uint64) (samples, error) {
	key := d.Key
	if d.Test != 0 {
		key = fmt.Sprint(d.Key, seed)
	}
	s.mu.Lock()
	o := s.cut[key]
	if o == nil {
		o = &once[samples]{}
		s.cut[key] = o
	}
	s.touch(key)
	s.mu.Unlock()
	return o.get(func() (samples, error) {
		source, err := s.source(d)
		if err != nil {
			return samples{}, err
		}
		return cut(d, source, seed)
	})
}

// touch makes a key the latest and lets the oldest beyond keep go.
func (s *shelf) touch(key string) {
	if i := slices.Index(s.recent, key); i >= 0 {
		s.recent = slices.Delete(s.recent, i, i+1)
	}
	s.recent = append(s.recent, key)
	for len(s.recent) > s.keep {
		delete(s.cut, s.recent[0])
		s.recent = s.recent[1:]
	}
}

func cut(d *catalog.Data, source *datasets.Source, seed uint64) (samples, error) {
	var rows []int32
	var c samples
	if d.Test == 0 {
		if d.Scaling == datasets.NoScaling {
			return samples{train: source.Pool, test: source.Test}, nil
		}
		c.train, c.test = source.Pool.Subset(all(source.Pool)), source.Test.Subset(all(source.Test))
	} else {
		train, test, err := datasets.Holdout(source.Pool.Len(), d.Test, seed)
		if err != nil {
			return samples{}, plan.Errorf(d.Section.At("test"), "%w", err)
		}
		rows = train
		c.train, c.test = source.Pool.Subset(train), source.Pool.Subset(test)
	}
	if d.FitAll {
		rows = nil
	}
	scaler := datasets.FitScaler(d.Scaling, source.Pool, rows)
	scaler.Apply(c.train)
	scaler.Apply(c.test)
	return c, nil
}

func all(set *datasets.Set) []int32 {
	rows := make([]int32, set.Len())
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

package npy

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// MaxSamples bounds the number of samples.
	MaxSamples = 10_000_000
	// MaxInputs bounds the number of inputs of a sample.
	MaxInputs = 1 << 20
	// MaxClasses bounds the number of different labels, so that real-valued targets are not
	// taken for classes.
	MaxClasses = 1000
)

// Pairs are the names of files, as the tags say, or of the arrays of one: inputs and labels to
// train on, and to test on, which may be empty.
type Pairs struct {
	X     string `plan:"x,required" doc:"the inputs, beside the plan unless its path is absolute"`
	Y     string `plan:"y,required" doc:"the labels, whole numbers"`
	TestX string `plan:"test-x,omitzero" with:"test-y" doc:"inputs to test on; default: 25% of the others is held out"`
	TestY string `plan:"test-y,omitzero" with:"test-x" doc:"labels of the inputs to test on"`
	Layout
}

// Layout says in which order the dimensions of a sample are.
type Layout struct {
	Order string `plan:"layout" words:"channels-first|channels-last" doc:"where the channels of an image stand among its dimensions; models take them first, and the last are moved there"`
}

// Load reads NPY files: inputs, samples × any other dimensions, and labels, one whole number a
// sample, into Pool and those to test on, if there are any, into Test. All columns are Numeric. The
// classes are the labels of the training samples in ascending order.
func Load(p Pairs) (*datasets.Source, error) {
	var files []input.File
	source, err := p.load(func(path string, origin []float64) (*Array, string, error) {
		a, file, err := openArray(path, origin)
		if !slices.ContainsFunc(files, func(f input.File) bool { return f.Path == file.Path }) {
			files = append(files, file)
		}
		return a, path, err
	}, p.X)
	if err != nil {
		return nil, err
	}
	source.Files = files
	return source, nil
}

// openArray reads the array of a file, as differences from origins unless these are nil.
func openArray(path string, origin []float64) (*Array, input.File, error) {
	return input.Open(path, func(r io.Reader, name string) (*Array, error) { return read(r, name, nil, origin) })
}

// LoadArchive reads arrays of one NPZ file; see Load.
func LoadArchive(path string, p Pairs) (*datasets.Source, error) {
	return inArchive(path, func(a *archive) (*datasets.Source, error) {
		source, err := a.load(p)
		if err != nil {
			return nil, err
		}
		file, err := input.Sum(io.NewSectionReader(a.content, 0, a.size), path) // members are read here and there
		source.Files = []input.File{file}
		return source, err
	})
}

func (a *archive) load(p Pairs) (*datasets.Source, error) {
	a.choice = "x names the array of the inputs, y that of the labels, test-x and test-y those of the test samples"
	return p.load(a.get, a.name)
}

// get reads an array by its name, and returns also what errors call it.
func (a *archive) get(name string, origin []float64) (*Array, string, error) {
	array, err := a.array(name, origin)
	return array, a.name + ": " + name + ".npy", err
}

// getter returns an array by its name, as differences from origins unless these are nil, and what
// errors call it.
type getter func(name string, origin []float64) (*Array, string, error)

// load reads arrays by their names.
func (p Pairs) load(get getter, name string) (*datasets.Source, error) {
	fitted := func(name string, _ []float64) (*Array, string, error) {
		a, where, err := get(name, nil)
		if err != nil {
			return nil, where, err
		}
		if origin := datasets.Origins(a.precision); origin != nil {
			return get(name, origin)
		}
		return a, where, nil
	}
	pool, labels, err := join(fitted, p.X, p.Y, nil, nil)
	if err != nil {
		return nil, err
	}
	source := &datasets.Source{Pool: pool}
	if p.TestX != "" {
		source.Test, _, err = join(get, p.TestX, p.TestY, labels, pool.Origin)
	}
	if err == nil {
		err = source.Arrange(p.Order)
	}
	if err != nil {
		return nil, err
	}
	if pool.Name = name; source.Test != nil {
		source.Test.Name, source.Test.Classes = name+" test", pool.Classes
	}
	return source, nil
}

// ReadOther reads other samples for a model of a set of arrays, their labels if these are asked
// for: from an NPY file and another one of labels or, with the names of the arrays, from an NPZ
// file.
func ReadOther(o datasets.Other, arrays Pairs) (*datasets.Others, error) {
	if arrays.X == "" {
		if err := o.CheckArrays(); err != nil {
			return nil, err
		}
		arrays.X, arrays.Y = o.Path, o.Labels
		return joinOther(o, func(path string, origin []float64) (*Array, string, error) {
			a, _, err := openArray(path, origin)
			return a, path, err
		}, arrays)
	}
	in := o
	in.Labels = o.Path
	if err := in.CheckArrays(); err != nil {
		return nil, err
	}
	return inArchive(o.Path, func(a *archive) (*datasets.Others, error) {
		a.choice = fmt.Sprintf("those that the model was trained on are called %q and %q", arrays.X, arrays.Y)
		return joinOther(o, a.get, arrays)
	})
}

func joinOther(o datasets.Other, get getter, p Pairs) (*datasets.Others, error) {
	var known []float32
	for _, class := range o.Classes {
		v, err := strconv.ParseFloat(class, 32)
		if err != nil {
			return nil, fmt.Errorf("the model's class %q is no number", class)
		}
		known = append(known, float32(v))
	}
	var set *datasets.Set
	var err error
	origin := o.OriginAsIn(p.Order)
	if o.Labelled {
		set, _, err = join(get, p.X, p.Y, known, origin)
	} else {
		var x *Array
		var where string
		if x, where, err = get(p.X, origin); err == nil {
			set, err = ofInputs(x, where, make([]int32, append(x.Dims, 0)[0]), "")
		}
	}
	if err == nil {
		err = set.Arrange(p.Order)
	}
	if err == nil {
		err = o.CheckInputs(set)
	}
	if err != nil {
		return nil, err
	}
	set.Classes = o.Classes
	return datasets.WholeOthers(set), nil
}

// join makes a set of two arrays. The labels can be only those that are known, unless there are
// none yet.
func join(get getter, inputs, targets string, known []float32, origin []float64) (s *datasets.Set, labels []float32,
	err error) {
	y, where, err := get(targets, nil)
	if err != nil {
		return nil, nil, err
	}
	if len(y.Dims) < 1 || len(y.Values) != y.Dims[0] {
		return nil, nil, fmt.Errorf("%s: shape %v; one label a sample is expected", where, y.Dims)
	}
	if y.fraction != 0 {
		return nil, nil, notAClass(where, y.fraction, y.fractionAt)
	}
	if y.Dims[0] > MaxSamples {
		return nil, nil, fmt.Errorf("%s: %d samples; at most %d are accepted", where, y.Dims[0], MaxSamples)
	}
	if labels = known; known == nil {
		if labels, err = distinct(y.Values, where); err != nil {
			return nil, nil, err
		}
	}
	of := make([]int32, len(y.Values))
	for i, v := range y.Values {
		k, ok := slices.BinarySearch(labels, v)
		if !ok {
			return nil, nil, fmt.Errorf("%s: label %v of sample %d does not occur among those to train on", where, v, i)
		}
		of[i] = int32(k)
	}
	x, whereX, err := get(inputs, origin)
	if err == nil {
		s, err = ofInputs(x, whereX, of, where)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, v := range labels {
		s.Classes = append(s.Classes, strconv.FormatFloat(float64(v), 'f', -1, 32))
	}
	return s, labels, nil
}

// ofInputs makes a set of an array of inputs and labels; errors call the one whereX and the other
// where.
func ofInputs(x *Array, whereX string, labels []int32, where string) (*datasets.Set, error) {
	switch {
	case len(x.Dims) < 2:
		return nil, fmt.Errorf("%s: shape %v; samples × at least one more dimension are expected", whereX, x.Dims)
	case x.Dims[0] != len(labels):
		return nil, fmt.Errorf("%s has %d samples, %s has %d labels; as many of each are needed", whereX,
			x.Dims[0], where, len(labels))
	}
	s := &datasets.Set{Name: whereX, X: x.Values, Y: labels, Inputs: x.inputs(), Origin: x.origin}
	if len(x.Dims) > 2 {
		s.Shape = x.Dims[1:]
	}
	if s.Inputs > MaxInputs {
		return nil, fmt.Errorf("%s: %d inputs a sample; at most %d are accepted", whereX, s.Inputs, MaxInputs)
	}
	for i := range s.Inputs {
		s.Numeric = append(s.Numeric, i)
	}
	return s, nil
}

// largest is the largest label; float32 does not tell all larger whole numbers apart.
const largest = 1<<24 - 1

// notAClass returns the error about a label that is not a whole number, or too large.
func notAClass[T float32 | float64](where string, label T, sample int) error {
	return fmt.Errorf("%s: label %v of sample %d; accepted are whole numbers from %d to %d, which name classes", where,
		label, sample, -largest, largest)
}

// distinct returns the labels, which are whole numbers, in ascending order.
func distinct(values []float32, where string) ([]float32, error) {
	var labels []float32
	for i, v := range values {
		if v < -largest || v > largest {
			return nil, notAClass(where, v, i)
		}
		k, ok := slices.BinarySearch(labels, v)
		if ok {
			continue
		}
		if len(labels) == MaxClasses {
			return nil, fmt.Errorf("%s: label %v of sample %d is one more than %d different ones; "+
				"a label names a class", where, v, i, MaxClasses)
		}
		labels = slices.Insert(labels, k, v)
	}
	return labels, nil
}

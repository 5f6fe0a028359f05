package libsvm

import (
	"io"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
	"github.com/gradwire/gradwire/datasets/published"
)

// a9aInputs is the number of binary inputs of a9a; its test file never has the last one.
const a9aInputs = 123

// LoadA9A reads a9a, the Adult data set as 123 binary inputs in the classes -1 and +1 (Platt,
// "Fast training of support vector machines using sequential minimal optimization", 1998):
// a9a into Pool and, if it is wanted, a9a.t into Test, from dir/a9a or dir, without or with
// .gz. A missing file is an error that says where it was looked for and how to get it.
func LoadA9A(dir string, test bool) (*datasets.Source, error) {
	o := Options{Inputs: a9aInputs, Classes: []string{"-1", "+1"}}
	read := func(r io.Reader, name string) (*datasets.Set, error) { return Read(r, name, o) }
	pool, file, err := published.Open(dir, "a9a", "a9a", read)
	if err != nil {
		return nil, err
	}
	pool.Name = "a9a"
	source := &datasets.Source{Pool: pool, Files: []input.File{file}}
	if test {
		if source.Test, file, err = published.Open(dir, "a9a", "a9a.t", read); err != nil {
			return nil, err
		}
		source.Test.Name = "a9a test"
		source.Files = append(source.Files, file)
	}
	return source, nil
}

// Load reads the file train into Pool and, unless its name is empty, the file test into
// Test, which can have no other classes. Both have as many inputs as are asked for; with 0, as
// the largest index in train. All columns are Numeric.
func Load(train, test string, inputs int) (*datasets.Source, error) {
	pool, file, origin, err := readFile(train, Options{Inputs: inputs})
	if err == nil && origin != nil {
		pool, file, _, err = readFile(train, Options{Inputs: pool.Inputs, Origin: origin})
	}
	if err != nil {
		return nil, err
	}
	pool.Numeric = all(pool.Inputs)
	source := &datasets.Source{Pool: pool, Files: []input.File{file}}
	if test == "" {
		return source, nil
	}
	options := Options{Inputs: pool.Inputs, Classes: pool.Classes, Origin: origin}
	if inputs == 0 {
		options.Training = train
	}
	if source.Test, file, _, err = readFile(test, options); err != nil {
		return nil, err
	}
	source.Test.Numeric = pool.Numeric
	source.Files = append(source.Files, file)
	return source, nil
}

func all(n int) []int {
	columns := make([]int, n)
	for i := range columns {
		columns[i] = i
	}
	return columns
}

// readFile returns also the origins that the set needs, if it has none.
func readFile(path string, o Options) (set *datasets.Set, file input.File, origin []float64, err error) {
	set, file, err = input.Open(path, func(r io.Reader, name string) (*datasets.Set, error) {
		d, set, err := read(r, name, o)
		if err == nil && o.Origin == nil {
			origin = d.origin(set)
		}
		return set, err
	})
	return set, file, origin, err
}

// ReadOther reads other samples for a model of a set in this format.
func ReadOther(o datasets.Other) (*datasets.Others, error) {
	options := Options{Inputs: o.Inputs, Classes: o.Classes, Bare: !o.Labelled, Origin: o.Origin}
	set, err := datasets.ReadOther(o, func(r io.Reader, name string) (*datasets.Set, error) {
		return Read(r, name, options)
	})
	if err != nil {
		return nil, err
	}
	return datasets.WholeOthers(set), nil
}

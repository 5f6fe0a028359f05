package libsvm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gradwire/gradwire/datasets"
)

// a9aInputs is the number of binary inputs of a9a; its test file never has the last one.
const a9aInputs = 123

// LoadA9A reads a9a, the Adult data set as 123 binary inputs in the classes -1 and +1 (Platt,
// "Fast training of support vector machines using sequential minimal optimization", 1998):
// a9a into Pool and, if it is wanted, a9a.t into Test, from dir/a9a or dir, without or with
// .gz. A missing file is an error that says where it was looked for and how to get it.
func LoadA9A(dir string, test bool) (*datasets.Source, error) {
	o := Options{Inputs: a9aInputs, Classes: []string{"-1", "+1"}}
	pool, err := find(dir, "a9a", o)
	if err != nil {
		return nil, err
	}
	pool.Name = "a9a"
	source := &datasets.Source{Pool: pool}
	if test {
		if source.Test, err = find(dir, "a9a.t", o); err != nil {
			return nil, err
		}
		source.Test.Name = "a9a test"
	}
	return source, nil
}

// Load reads the file train into Pool and, unless its name is empty, the file test into
// Test, which can have no other classes. Both have as many inputs as are asked for; with 0, as
// the largest index in either. All columns are Numeric.
func Load(train, test string, inputs int) (*datasets.Source, error) {
	pool, err := readFile(train, Options{Inputs: inputs})
	if err != nil {
		return nil, err
	}
	source := &datasets.Source{Pool: pool}
	if test != "" {
		if source.Test, err = readFile(test, Options{Inputs: inputs, Classes: pool.Classes}); err != nil {
			return nil, err
		}
		if wide := max(pool.Inputs, source.Test.Inputs); inputs == 0 && pool.Inputs != source.Test.Inputs {
			return Load(train, test, wide)
		}
		source.Test.Numeric = all(pool.Inputs)
	}
	pool.Numeric = all(pool.Inputs)
	return source, nil
}

func all(n int) []int {
	columns := make([]int, n)
	for i := range columns {
		columns[i] = i
	}
	return columns
}

// find reads the first file of that name that exists.
func find(dir, name string, o Options) (*datasets.Set, error) {
	for _, folder := range []string{filepath.Join(dir, "a9a"), dir} {
		for _, suffix := range []string{"", ".gz"} {
			path := filepath.Join(folder, name+suffix)
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				continue // dir/a9a is the folder, and a file's name
			}
			set, err := readFile(path, o)
			if !errors.Is(err, fs.ErrNotExist) {
				return set, err
			}
		}
	}
	return nil, fmt.Errorf("data set a9a: %s (or %s.gz) is neither in %s nor in %s; "+
		"download it from https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/%s: %w",
		name, name, filepath.Join(dir, "a9a"), filepath.Clean(dir), name, fs.ErrNotExist)
}

func readFile(path string, o Options) (*datasets.Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	return Read(f, path, o)
}

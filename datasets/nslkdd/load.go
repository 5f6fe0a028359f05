// Package nslkdd reads NSL-KDD, records of network connections that are normal or one of four
// kinds of attack: Tavallaee, Bagheri, Lu & Ghorbani, "A Detailed Analysis of the KDD CUP 99
// Data Set", CISDA 2009.
//
// A record becomes 122 inputs (38 numeric columns, then protocol, service and flag one-hot: 3 +
// 70 + 11) or 93 (nine of the numeric columns and the same 84). The numeric columns are not
// scaled; Set.Numeric lists them for a datasets.Scaler, and DefaultScaling recommends a
// scaling.
package nslkdd

import (
	"io"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
	"github.com/gradwire/gradwire/datasets/published"
)

// File names as published; each is also looked for with .gz.
const (
	trainFile = "KDDTrain+.txt"
	testFile  = "KDDTest+.txt"
)

// Options says how Load reads the data set.
type Options struct {
	// Encoding is the number of inputs. Default: 93.
	Encoding int `plan:"encoding" words:"93|122" doc:"inputs of a sample"`
	// TestFile asks for KDDTest+ as Source.Test. It holds attacks that
	// KDDTrain+ lacks. Default: not read.
	TestFile bool
}

// DefaultScaling returns the scaling that suits an encoding's numeric columns.
// The nine of 93 inputs are rates in [0, 1], one flag, and two counts bounded
// by 511 and 255: MinMax. Of the 38 of 122 inputs, durations and byte counts
// span nine orders of magnitude, where MinMax would press nearly every record
// to 0 and Standard leave single records at a distance of hundreds: LogMinMax.
func DefaultScaling(encoding int) datasets.Scaling {
	if encoding == Encoding122 {
		return datasets.LogMinMax
	}
	return datasets.MinMax
}

// Load reads KDDTrain+ into Pool and, if asked, KDDTest+ into Test, from
// dir/nsl-kdd or dir, without or with .gz. A missing file is an error that
// says where it was looked for and how to get it; for others see Read.
func Load(dir string, o Options) (*datasets.Source, error) {
	pool, file, err := load(dir, trainFile, o.Encoding, false)
	if err != nil {
		return nil, err
	}
	pool.Name = "nsl-kdd"
	source := &datasets.Source{Pool: pool, Files: []input.File{file}}
	if o.TestFile {
		if source.Test, file, err = load(dir, testFile, o.Encoding, true); err != nil {
			return nil, err
		}
		source.Test.Name = "nsl-kdd test"
		source.Files = append(source.Files, file)
	}
	return source, nil
}

// load reads the file of that name, which may be allowed to have words of its own.
func load(dir, file string, encoding int, foreign bool) (*datasets.Set, input.File, error) {
	var unknown []datasets.Unknown
	read := func(r io.Reader, name string) (set *datasets.Set, err error) {
		set, unknown, err = (&reader{foreign: foreign}).read(r, name, encoding)
		return set, err
	}
	set, found, err := published.Open(dir, "nsl-kdd", file, read)
	for _, u := range unknown {
		found.Notes = append(found.Notes, u.String())
	}
	return set, found, err
}

package catalog

import (
	"fmt"
	"io"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/csv"
	"github.com/gradwire/gradwire/datasets/idx"
	"github.com/gradwire/gradwire/datasets/libsvm"
	"github.com/gradwire/gradwire/datasets/npy"
)

// heldOut is the share of files of a user's own that is held out unless they come with others to
// test on.
const heldOut = 0.25

type csvSettings struct {
	File      string       `plan:"file,required" doc:"the table, beside the plan unless its path is absolute"`
	TestFile  string       `plan:"test-file,omitzero" doc:"a table to test on; default: a share of the first is held out"`
	Label     string       `plan:"label" doc:"the column that is predicted: its name, its number from 1, or last"`
	Header    string       `plan:"header" words:"detect|present|absent" doc:"whether the first line names the columns"`
	Separator string       `plan:"separator" words:"comma|semicolon|tab|bar" doc:"what stands between two fields"`
	Words     []string     `plan:"words" doc:"columns of words, each word of which becomes an input"`
	Ignore    []string     `plan:"ignore" doc:"columns that are left out"`
	Source    *syntax.Node `plan:",node"`
}

// separators are the words for the bytes between the fields of a table.
var separators = map[string]byte{"comma": ',', "semicolon": ';', "tab": '\t', "bar": '|'}

type libsvmSettings struct {
	File     string       `plan:"file,required" doc:"the samples, beside the plan unless its path is absolute"`
	TestFile string       `plan:"test-file,omitzero" doc:"samples to test on; default: a share of the first is held out"`
	Features int          `plan:"features,omitzero" range:"0..1048576" doc:"inputs of a sample; default: the largest number in the file"`
	Source   *syntax.Node `plan:",node"`
}

type idxSettings struct {
	Images     string       `plan:"images,required" doc:"the images, beside the plan unless its path is absolute"`
	Labels     string       `plan:"labels,required" doc:"the labels, beside the plan unless its path is absolute"`
	TestImages string       `plan:"test-images,omitzero" doc:"images to test on; default: a share of the others is held out"`
	TestLabels string       `plan:"test-labels,omitzero" doc:"labels of the images to test on"`
	Source     *syntax.Node `plan:",node"`
}

type npySettings struct {
	X      string       `plan:"x,required" doc:"the inputs, beside the plan unless its path is absolute"`
	Y      string       `plan:"y,required" doc:"the labels, whole numbers"`
	TestX  string       `plan:"test-x,omitzero" doc:"inputs to test on; default: a share of the others is held out"`
	TestY  string       `plan:"test-y,omitzero" doc:"labels of the inputs to test on"`
	Source *syntax.Node `plan:",node"`
}

type npzSettings struct {
	File   string       `plan:"file,required" doc:"the archive, beside the plan unless its path is absolute"`
	X      string       `plan:"x" doc:"the array of the inputs"`
	Y      string       `plan:"y" doc:"the array of the labels, whole numbers"`
	TestX  string       `plan:"test-x,omitzero" doc:"the array of inputs to test on; default: a share of the others is held out"`
	TestY  string       `plan:"test-y,omitzero" doc:"the array of labels of the inputs to test on"`
	Source *syntax.Node `plan:",node"`
}

// addFiles adds the sets of a user's own files.
func addFiles(c *Catalog) {
	c.Datasets.Add(Define("libsvm", "files in LIBSVM's text format, beside the plan",
		func() libsvmSettings { return libsvmSettings{} }, buildLIBSVM))
	c.Datasets.Add(Define("csv",
		"tables of text, beside the plan; columns are named as in the header or numbered from 1, words become one "+
			"input each",
		func() csvSettings {
			return csvSettings{Label: csv.Last, Header: string(csv.Detect), Separator: "comma", Words: []string{},
				Ignore: []string{}}
		}, buildCSV))
	c.Datasets.Add(Define("idx", "images and labels in MNIST's format, beside the plan",
		func() idxSettings { return idxSettings{} }, buildIDX))
	c.Datasets.Add(Define("npy", "arrays of NumPy, a file each, beside the plan",
		func() npySettings { return npySettings{} }, buildNPY))
	c.Datasets.Add(Define("npz", "arrays of NumPy in one archive, beside the plan",
		func() npzSettings { return npzSettings{X: "X", Y: "y"} }, buildNPZ))
}

func buildLIBSVM(c *Catalog, s *libsvmSettings) (Loader, error) {
	return own(c, s.Source, s.TestFile, func(test bool) (*datasets.Source, error) {
		return libsvm.Load(c.place(s.File), c.only(test, s.TestFile), s.Features)
	}, file{"file", &s.File}, file{"test-file", &s.TestFile})
}

func buildCSV(c *Catalog, s *csvSettings) (Loader, error) {
	o := csv.Options{Label: s.Label, Header: csv.Header(s.Header), Separator: separators[s.Separator], Words: s.Words,
		Ignore: s.Ignore}
	l, err := own(c, s.Source, s.TestFile, func(test bool) (*datasets.Source, error) {
		return csv.Load(c.place(s.File), c.only(test, s.TestFile), o)
	}, file{"file", &s.File}, file{"test-file", &s.TestFile})
	l.Scaling = datasets.Standard
	return l, err
}

func buildIDX(c *Catalog, s *idxSettings) (Loader, error) {
	if err := both("test-images", s.TestImages, "test-labels", s.TestLabels); err != nil {
		return Loader{}, err
	}
	return own(c, s.Source, s.TestImages, func(test bool) (*datasets.Source, error) {
		return idx.LoadFiles(idx.Files{Images: c.place(s.Images), Labels: c.place(s.Labels),
			TestImages: c.only(test, s.TestImages), TestLabels: c.only(test, s.TestLabels)})
	}, file{"images", &s.Images}, file{"labels", &s.Labels},
		file{"test-images", &s.TestImages}, file{"test-labels", &s.TestLabels})
}

func buildNPY(c *Catalog, s *npySettings) (Loader, error) {
	if err := both("test-x", s.TestX, "test-y", s.TestY); err != nil {
		return Loader{}, err
	}
	return own(c, s.Source, s.TestX, func(test bool) (*datasets.Source, error) {
		return npy.Load(npy.Pairs{X: c.place(s.X), Y: c.place(s.Y), TestX: c.only(test, s.TestX),
			TestY: c.only(test, s.TestY)})
	}, file{"x", &s.X}, file{"y", &s.Y}, file{"test-x", &s.TestX}, file{"test-y", &s.TestY})
}

func buildNPZ(c *Catalog, s *npzSettings) (Loader, error) {
	if err := both("test-x", s.TestX, "test-y", s.TestY); err != nil {
		return Loader{}, err
	}
	return own(c, s.Source, s.TestX, func(test bool) (*datasets.Source, error) {
		return npy.LoadArchive(c.place(s.File), npy.Pairs{X: s.X, Y: s.Y, TestX: arrayFor(test, s.TestX),
			TestY: arrayFor(test, s.TestY)})
	}, file{"file", &s.File})
}

// file is a key of a section with the name of a file, which may be empty.
type file struct {
	key  string
	path *string
}

// own returns the loader of a user's own files, which it finds: tested on those that are for that,
// or on a share if test is empty.
func own(c *Catalog, section *syntax.Node, test string, load func(test bool) (*datasets.Source, error),
	files ...file) (Loader, error) {
	for _, f := range files {
		if *f.path == "" || c.SamplesElsewhere {
			continue
		}
		// A file is opened to see that it is there; its samples are read when they are needed.
		if _, err := readBeside(c, section.At(f.key), f.path, "file of samples",
			func(io.Reader, string) (none, error) { return none{}, nil }); err != nil {
			return Loader{}, err
		}
	}
	l := Loader{Load: func(_ string, published bool) (*datasets.Source, error) { return load(published) }}
	if test == "" {
		l.Test = heldOut
	}
	return l, nil
}

// only returns where a test file lies, if it is wanted.
func (c *Catalog) only(test bool, path string) string {
	if !test || path == "" {
		return ""
	}
	return c.place(path)
}

// arrayFor returns the name of a test array if it is wanted.
func arrayFor(test bool, name string) string {
	if !test {
		return ""
	}
	return name
}

// both returns an error if one of two keys is given without the other.
func both(a, valueA, b, valueB string) error {
	if (valueA == "") == (valueB == "") {
		return nil
	}
	if valueA == "" {
		a, b = b, a
	}
	return About(a, fmt.Errorf("%s is given without %s; what is tested on needs both", a, b))
}

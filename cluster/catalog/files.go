package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/settings"
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

// addFiles adds the sets of a user's own files.
func addFiles(c *Catalog) {
	addTexts(c)
	addArrays(c)
}

// addTexts adds formats of a line a sample.
func addTexts(c *Catalog) {
	type libsvmFiles struct {
		File     string       `plan:"file,required" doc:"the samples, beside the plan unless its path is absolute"`
		TestFile string       `plan:"test-file,omitzero" doc:"samples to test on; default: 25% of the first is held out"`
		Features int          `plan:"features,omitzero" range:"0..1048576" doc:"inputs of a sample; default: the largest number in the file"`
		Source   *syntax.Node `plan:",node"`
	}
	c.Datasets.Add(Define("libsvm", "files in LIBSVM's text format, beside the plan",
		func() libsvmFiles { return libsvmFiles{} },
		func(c *Catalog, s *libsvmFiles) (Loader, error) {
			l, err := c.own(s.Source, func(at places, _ bool) (*datasets.Source, error) {
				return libsvm.Load(at["file"], at["test-file"], s.Features)
			}, file{"file", "", &s.File}, file{"test-file", "", &s.TestFile})
			l.Other = libsvm.ReadOther
			return l, err
		}))
	type table struct {
		File     tableFiles `plan:"file,required" doc:"the table, beside the plan unless its path is absolute, or {WORKER: FILE} with one for each"`
		TestFile string     `plan:"test-file,omitzero" doc:"a table to test on; default: 25% of the first is held out"`
		csv.Options
		Source *syntax.Node `plan:",node"`
	}
	c.Datasets.Add(Define("csv",
		"tables of text, beside the plan; columns are named as in the header or numbered from 1, words become one "+
			"input each",
		func() table {
			return table{Options: csv.Options{
				Label: csv.Last, Header: csv.Detect, Separator: "comma", Encoding: csv.UTF8,
				Words: []string{}, Ignore: []string{}, Missing: csv.Refuse, Marks: csv.Marks(),
			}}
		},
		func(c *Catalog, s *table) (Loader, error) {
			files := append(s.File.files(), file{"test-file", "", &s.TestFile})
			l, err := c.own(s.Source, func(at places, _ bool) (*datasets.Source, error) {
				return csv.LoadParts(s.File.at(at), at["test-file"], s.Options)
			}, files...)
			l.Scaling, l.Parts = datasets.Standard, s.File.workers()
			l.Other = func(f datasets.Other) (*datasets.Others, error) { return csv.ReadOther(f, s.Options) }
			l.By = func(column string) { s.By = column }
			return l, err
		}))
}

// channelsFirst is the layout of arrays by default.
var channelsFirst = npy.Layout{Order: datasets.ChannelsFirst}

// addArrays adds formats of arrays: inputs in one, labels in another.
func addArrays(c *Catalog) {
	type idxFiles struct {
		idx.Files
		Source *syntax.Node `plan:",node"`
	}
	c.Datasets.Add(Define("idx", "images and labels in MNIST's format, beside the plan",
		func() idxFiles { return idxFiles{Files: idx.Files{Layout: datasets.ChannelsFirst}} },
		func(c *Catalog, s *idxFiles) (Loader, error) {
			l, err := c.own(s.Source, func(at places, _ bool) (*datasets.Source, error) {
				return idx.LoadFiles(idx.Files{Images: at["images"], Labels: at["labels"],
					TestImages: at["test-images"], TestLabels: at["test-labels"], Layout: s.Layout})
			}, file{"images", "", &s.Images}, file{"labels", "", &s.Labels}, file{"test-images", "", &s.TestImages},
				file{"test-labels", "", &s.TestLabels})
			l.Other = func(f datasets.Other) (*datasets.Others, error) { return idx.ReadOther(f, s.Layout) }
			return l, err
		}))
	type npyFiles struct {
		npy.Pairs
		Source *syntax.Node `plan:",node"`
	}
	c.Datasets.Add(Define("npy", "arrays of NumPy, a file each, beside the plan",
		func() npyFiles { return npyFiles{Pairs: npy.Pairs{Layout: channelsFirst}} },
		func(c *Catalog, s *npyFiles) (Loader, error) {
			l, err := c.own(s.Source, func(at places, _ bool) (*datasets.Source, error) {
				return npy.Load(npy.Pairs{X: at["x"], Y: at["y"], TestX: at["test-x"], TestY: at["test-y"],
					Layout: s.Layout})
			}, file{"x", "", &s.X}, file{"y", "", &s.Y}, file{"test-x", "", &s.TestX}, file{"test-y", "", &s.TestY})
			l.Other = func(f datasets.Other) (*datasets.Others, error) {
				return npy.ReadOther(f, npy.Pairs{Layout: s.Layout})
			}
			return l, err
		}))
	type archive struct {
		File  string `plan:"file,required" doc:"the archive, beside the plan unless its path is absolute"`
		X     string `plan:"x" doc:"the array of the inputs"`
		Y     string `plan:"y" doc:"the array of the labels, whole numbers"`
		TestX string `plan:"test-x,omitzero" with:"test-y" doc:"the array of inputs to test on; default: 25% of the others is held out"`
		TestY string `plan:"test-y,omitzero" with:"test-x" doc:"the array of labels of the inputs to test on"`
		npy.Layout
		Source *syntax.Node `plan:",node"`
	}
	c.Datasets.Add(Define("npz", "arrays of NumPy in one archive, beside the plan",
		func() archive { return archive{X: "X", Y: "y", Layout: channelsFirst} },
		func(c *Catalog, s *archive) (Loader, error) {
			l, err := c.own(s.Source, func(at places, test bool) (*datasets.Source, error) {
				arrays := npy.Pairs{X: s.X, Y: s.Y, Layout: s.Layout}
				if test {
					arrays.TestX, arrays.TestY = s.TestX, s.TestY
				}
				return npy.LoadArchive(at["file"], arrays)
			}, file{"file", "", &s.File})
			l.Other = func(f datasets.Other) (*datasets.Others, error) {
				return npy.ReadOther(f, npy.Pairs{X: s.X, Y: s.Y, Layout: s.Layout})
			}
			if s.TestX != "" {
				l.Test = 0
			}
			return l, err
		}))
}

// file is a key of a section with the name of a file, which may be empty, or with the names of
// those of workers.
type file struct {
	key, worker string
	path        *string
}

// value is where a section names the file.
func (f file) value(section *syntax.Node) *syntax.Node {
	if f.worker == "" {
		return section.At(f.key)
	}
	return section.At(f.key).At(f.worker)
}

// tableFiles is `file` of a table: a path, which is no worker's, or the path of each worker's.
type tableFiles []csv.Part

func (p *tableFiles) UnmarshalPlan(n *syntax.Node) error {
	if n.Kind == syntax.Scalar {
		*p = tableFiles{{Path: n.Text}}
		return nil
	}
	paths := map[string]string{}
	if n.Kind != syntax.Map || len(n.Fields) == 0 {
		return syntax.Errorf(n, "found %s; accepted are a path, or one for each worker, as in {a: a.csv, b: b.csv}",
			n.Kind)
	}
	if err := settings.Decode(n, &paths); err != nil {
		return err
	}
	*p = nil
	for _, worker := range slices.Sorted(maps.Keys(paths)) {
		*p = append(*p, csv.Part{Name: worker, Path: paths[worker]})
	}
	return nil
}

func (p tableFiles) MarshalPlan() (*syntax.Node, error) {
	if p.workers() == nil && len(p) == 1 {
		return syntax.NewText(p[0].Path), nil
	}
	n := syntax.NewMap()
	for _, part := range p {
		n.Fields = append(n.Fields, syntax.Entry(part.Name, syntax.NewText(part.Path)))
	}
	return n, nil
}

// PlanSchema is a path, or a map of paths.
func (*tableFiles) PlanSchema() *settings.Schema {
	return &settings.Schema{AnyOf: []*settings.Schema{settings.SchemaOf(new(string)),
		settings.SchemaOf(new(map[string]string))}}
}

// workers are those whose files they are; nil for a single one that is nobody's.
func (p tableFiles) workers() (names []string) {
	for _, part := range p {
		if part.Name != "" {
			names = append(names, part.Name)
		}
	}
	return names
}

func (p tableFiles) files() (files []file) {
	for i := range p {
		files = append(files, file{"file", p[i].Name, &p[i].Path})
	}
	return files
}

// at are the parts where they lie.
func (p tableFiles) at(places places) []csv.Part {
	there := slices.Clone(p)
	for i := range there {
		there[i].Path = places["file"+there[i].Name]
	}
	return there
}

// test reports whether the file has samples to test on.
func (f file) test() bool { return strings.HasPrefix(f.key, "test-") }

// places are where files lie, by their keys, as far as they are given and wanted.
type places map[string]string

// own returns the loader of a user's own files, which it finds: tested on those that are for that,
// or on a share if there are none. It calls load with those to test on only if they are wanted.
func (c *Catalog) own(section *syntax.Node, load func(at places, test bool) (*datasets.Source, error),
	files ...file) (Loader, error) {
	files = slices.DeleteFunc(files, func(f file) bool { return *f.path == "" })
	for _, f := range files {
		if c.SamplesElsewhere {
			break
		}
		// A file is opened to see that it is there; its samples are read when they are needed.
		opened, err := c.open(f.value(section), f.path)
		if err != nil {
			return Loader{}, syntax.Errorf(f.value(section), "the file of samples cannot be read: %w", err)
		}
		_ = opened.Close() // read only: nothing is lost
	}
	l := Loader{Load: func(_ string, test bool) (*datasets.Source, error) {
		at := places{}
		for _, f := range files {
			if test || !f.test() {
				at[f.key+f.worker] = c.place(*f.path)
			}
		}
		return load(at, test)
	}}
	if !slices.ContainsFunc(files, file.test) {
		l.Test = heldOut
	}
	return l, nil
}

package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/csv"
	"github.com/gradwire/gradwire/datasets/idx"
	"github.com/gradwire/gradwire/datasets/libsvm"
	"github.com/gradwire/gradwire/datasets/nslkdd"
	"github.com/gradwire/gradwire/datasets/partition"
	sets "github.com/gradwire/gradwire/datasets/published"
	"github.com/gradwire/gradwire/datasets/synthetic"
	"github.com/gradwire/gradwire/nn"
)

// Loader loads a data set.
type Loader struct {
	// Load reads the data set from the folder of the user's data sets, which those that
	// are generated do not look at, and the published test set if it is wanted.
	Load func(folder string, published bool) (*datasets.Source, error)
	// By makes Load keep the values of a column of the table as the groups of its samples; nil for
	// data sets that are no tables.
	By func(column string)
	// Other reads a file of other samples in the format of the data set, for a model that was
	// trained on it; nil if there is none.
	Other func(o datasets.Other) (*datasets.Others, error)
	// Parts are the names of the files that the samples come from, each for the worker of that
	// name; nil where they are not given by worker.
	Parts []string
	// Test is the share that is held out by default; 0 stands for the published test set.
	Test float64
	// Scaling is the default.
	Scaling datasets.Scaling
	// Inputs and Classes of the samples, where they are known before any is loaded; else 0.
	Inputs, Classes int
	// ClassNames are the names of the classes, where they are known before any sample is loaded;
	// else nil.
	ClassNames []string
}

// Data says how samples get from a data set to the workers.
type Data struct {
	Loader
	// Section is where the plan says so, for errors.
	Section *syntax.Node
	// Test is the share of the samples that is held out; 0 stands for the published test set.
	Test float64
	// Validation is the share of the training samples that is held out to choose settings by; 0 for
	// none.
	Validation float64
	// Scaling maps the numeric columns; it is fitted on the training samples, or on
	// all if FitAll.
	Scaling datasets.Scaling
	FitAll  bool
	// Split says which worker sees which samples.
	Split partition.Split
	// Sent says that on a cluster one process reads the data set and sends the others the samples
	// of their workers; otherwise each reads it.
	Sent bool
	// Key names everything but split and delivery: two points of equal keys share their
	// samples, given one seed.
	Key string
	// SourceKey names what Load returns.
	SourceKey string
}

// holdout is `test`: a share such as 25%, or the word published.
type holdout float64

const published = "published"

func (h *holdout) UnmarshalPlan(n *syntax.Node) error {
	return readShare(n, (*float64)(h), published, "25%", "test on")
}

func (h holdout) MarshalPlan() (*syntax.Node, error) { return writeShare(float64(h), published) }

// PlanSchema is the word published or a share.
func (*holdout) PlanSchema() *settings.Schema { return shareSchema(published) }

// validation is `validation`: a share such as 10%, or the word none.
type validation float64

const noValidation = "none"

func (v *validation) UnmarshalPlan(n *syntax.Node) error {
	return readShare(n, (*float64)(v), noValidation, "10%", "choose by")
}

func (v validation) MarshalPlan() (*syntax.Node, error) { return writeShare(float64(v), noValidation) }

// PlanSchema is the word none or a share.
func (*validation) PlanSchema() *settings.Schema { return shareSchema(noValidation) }

// readShare reads a part of the samples that leaves some on both sides, or a word for 0. Errors
// give an example and say what the part is there to do.
func readShare(n *syntax.Node, into *float64, word, example, do string) error {
	var f unit.Fraction
	switch {
	case n.Kind == syntax.Scalar && n.Text == word:
	case f.UnmarshalPlan(n) != nil:
		return syntax.Errorf(n, "%q is neither a share such as %s nor the word %s", n.Text, example, word)
	case f <= 0 || f >= 1:
		return syntax.Errorf(n,
			"a share of %v leaves nothing to train on or nothing to %s; accepted is more than 0%% and less than "+
				"100%%, or the word %s", f, do, word)
	}
	*into = float64(f)
	return nil
}

func writeShare(share float64, word string) (*syntax.Node, error) {
	if share == 0 {
		return syntax.NewScalar(word), nil
	}
	return unit.Fraction(share).MarshalPlan()
}

func shareSchema(word string) *settings.Schema {
	share := settings.SchemaOf(new(unit.Fraction))
	share.Not = &settings.Schema{Enum: []any{0, 1}}
	return &settings.Schema{AnyOf: []*settings.Schema{{Const: word}, share}}
}

// common are the settings that all data sets share.
type common struct {
	Test       holdout          `plan:"test" doc:"the share of the training set that is held out to test on, in place of a test set or test file, or published for that test set or file; default: as the set has it"`
	Validation validation       `plan:"validation" doc:"the share of the training samples that is held out to choose settings by, see tune; never trained on nor tested on"`
	Scale      datasets.Scaling `plan:"scale" words:"none|min-max|standard|log-min-max" doc:"how columns of numbers are scaled, each by itself; all inputs of a9a and of images (not npy, npz) alike; default: as the set needs it"`
	Fit        string           `plan:"fit" words:"train|all" doc:"the samples that the scaling is fitted on: those trained on, or all but a published test set or a test file"`
	Split      *syntax.Node     `plan:"split" names:"split" doc:"which worker sees which samples"`
	Delivery   string           `plan:"delivery" words:"local|sent" doc:"how samples get to the processes of a cluster: each reads the set, or is sent what its workers see"`
}

func commonKeys() (keys []string) {
	for _, t := range field.Tags(reflect.TypeFor[common]()) {
		keys = append(keys, t.Key)
	}
	return keys
}

// How samples get to the processes of a cluster.
const (
	readLocally = "local" // each process reads the data set
	sent        = "sent"  // the one that conducts the run reads it, and sends each worker's samples to its process
)

// data reads a plan's section data.
func (c *Catalog) data(section *syntax.Node) (Data, *syntax.Node, error) {
	loader, resolved, err := c.Datasets.read(c, section, "set", commonKeys()...)
	errs := syntax.Flatten(section, err)
	d := Data{Loader: loader, Section: section}
	given := common{Test: holdout(loader.Test), Scale: cmp.Or(loader.Scaling, datasets.NoScaling), Fit: "train",
		Delivery: readLocally}
	if section.Kind == syntax.Map {
		errs = append(errs, syntax.Flatten(section, settings.Decode(section.Only(commonKeys()...), &given))...)
	}
	d.Test, d.Validation, d.Scaling = float64(given.Test), float64(given.Validation), given.Scale
	d.FitAll = given.Fit == "all"
	d.Sent = given.Delivery == sent
	if given.Split == nil {
		given.Split = named("kind", "iid")
		if loader.Parts != nil {
			given.Split = named("kind", "file")
		}
	}
	d.Split, given.Split, err = c.Splits.read(c, given.Split, "kind")
	if errs = append(errs, syntax.Flatten(section, err)...); errs != nil {
		return Data{}, nil, syntax.Join(errs)
	}
	d.SourceKey = resolved.Flow()
	by := ""
	if split, ok := d.Split.(partition.Column); ok {
		if loader.By == nil {
			return Data{}, nil, syntax.Errorf(section.At("split"), "data set %s has no columns to split by; csv has",
				section.At("set").Text)
		}
		loader.By(split.Name)
		by = " by " + split.Name
	}
	spelled, err := settings.Encode(&given)
	if err != nil {
		return Data{}, nil, err
	}
	whole := syntax.NewMap(append(resolved.Fields, spelled.Fields...)...)
	d.Key = whole.Without("split", "delivery").Flow() + by
	d.SourceKey += by
	return d, whole, nil
}

func addDatasets(c *Catalog) {
	d := &c.Datasets
	d.Add(Define("nsl-kdd", "network intrusion records in five classes (Tavallaee et al. 2009); 93 or 122 inputs",
		func() nslkdd.Options { return nslkdd.Options{Encoding: 93} },
		func(_ *Catalog, o *nslkdd.Options) (Loader, error) {
			return Loader{
				Test:    0.25,
				Scaling: nslkdd.DefaultScaling(o.Encoding),
				Inputs:  o.Encoding, Classes: 5, ClassNames: nslkdd.ClassNames(),
				Load: verified("nsl-kdd", func(folder string, published bool) (*datasets.Source, error) {
					return nslkdd.Load(folder, nslkdd.Options{Encoding: o.Encoding, TestFile: published})
				}),
				Other: func(f datasets.Other) (*datasets.Others, error) { return nslkdd.ReadOther(f, o.Encoding) },
			}, nil
		}))
	d.Declare("mnist", images("mnist"), "handwritten digits, 28 × 28 (LeCun et al. 1998)")
	d.Declare("fashion-mnist", images("fashion-mnist"), "clothing, 28 × 28 (Xiao et al. 2017)")
	d.Declare("spambase", Loader{
		Test:    0.25,
		Scaling: datasets.Standard,
		Inputs:  57, Classes: 2, ClassNames: []string{"ham", "spam"},
		Load: verified("spambase", func(folder string, _ bool) (*datasets.Source, error) {
			return csv.LoadSpambase(folder)
		}),
		Other: csv.ReadOtherSpambase,
	}, "words and characters of e-mails, 57 inputs, spam or not (Hopkins et al. 1999)")
	d.Declare("a9a", Loader{
		Inputs: 123, Classes: 2, ClassNames: []string{"-1", "+1"}, Load: verified("a9a", libsvm.LoadA9A),
		Other: libsvm.ReadOther,
	}, "census records, 123 binary inputs, income in two classes (Platt 1998)")
	addFiles(c)
	addGenerated(c)
}

// images loads a published set in MNIST's format.
func images(set string) Loader {
	return Loader{
		Inputs: 28 * 28, Classes: 10, ClassNames: idx.ClassNames(set),
		Load:  verified(set, func(folder string, _ bool) (*datasets.Source, error) { return idx.Load(folder, set) }),
		Other: otherImages,
	}
}

// otherImages reads other images for a model of a set of single-channel ones.
func otherImages(f datasets.Other) (*datasets.Others, error) {
	return idx.ReadOther(f, datasets.ChannelsFirst)
}

// verified loads a published set and refuses files that are not those that were published.
func verified(set string, load func(folder string, published bool) (*datasets.Source, error)) func(string,
	bool) (*datasets.Source, error) {
	return func(folder string, published bool) (*datasets.Source, error) {
		source, err := load(folder, published)
		if err == nil {
			err = sets.Verify(set, source.Files)
		}
		if err != nil {
			return nil, err
		}
		return source, nil
	}
}

// addGenerated adds the data sets that need no file.
func addGenerated(c *Catalog) {
	type traffic struct {
		Samples  int    `plan:"samples" range:"100..10000000" doc:"how many are generated"`
		Encoding int    `plan:"encoding" words:"93|122" doc:"inputs of a sample"`
		Seed     uint64 `plan:"seed" doc:"of the samples, whatever the seed of the run"`
	}
	c.Datasets.Add(Define("synthetic-traffic", "stand-in for nsl-kdd, generated",
		func() traffic { return traffic{Samples: 40_000, Encoding: 93, Seed: 1} },
		func(_ *Catalog, s *traffic) (Loader, error) {
			return Loader{
				Test:    0.25,
				Scaling: nslkdd.DefaultScaling(s.Encoding),
				Inputs:  s.Encoding, Classes: 5, ClassNames: nslkdd.ClassNames(),
				Load:  generated(func() *datasets.Set { return synthetic.Traffic(s.Seed, s.Samples, s.Encoding) }),
				Other: func(f datasets.Other) (*datasets.Others, error) { return nslkdd.ReadOther(f, s.Encoding) },
			}, nil
		}))
	type digits struct {
		Samples int    `plan:"samples" range:"100..10000000" doc:"how many are generated"`
		Seed    uint64 `plan:"seed" doc:"of the samples, whatever the seed of the run"`
	}
	c.Datasets.Add(Define("synthetic-digits", "stand-in for mnist, drawn from strokes",
		func() digits { return digits{Samples: 12_000, Seed: 1} },
		func(_ *Catalog, s *digits) (Loader, error) {
			return Loader{
				Test:   0.25,
				Inputs: 28 * 28, Classes: 10, ClassNames: idx.ClassNames("mnist"),
				Load:  generated(func() *datasets.Set { return synthetic.Digits(s.Seed, s.Samples) }),
				Other: otherImages,
			}, nil
		}))
}

// generated loads a set that needs no files.
func generated(generate func() *datasets.Set) func(string, bool) (*datasets.Source, error) {
	return func(string, bool) (*datasets.Source, error) { return &datasets.Source{Pool: generate()}, nil }
}

// Saved returns the model of the sections of a plan that a model's file has, and the loader of the
// data set that it was trained on, whose files need not be there.
func (c *Catalog) Saved(model, data *syntax.Node) (nn.Model, Loader, error) {
	elsewhere := *c
	elsewhere.SamplesElsewhere = true
	loader, _, err := elsewhere.Datasets.read(&elsewhere, data, "set", commonKeys()...)
	if err != nil {
		return nil, Loader{}, err
	}
	network, _, err := elsewhere.Models.read(&elsewhere, model, "kind")
	return network, loader, err
}

// Loader returns the loader of a data set with every setting at its default.
func (c *Catalog) Loader(set string) (Loader, error) {
	loader, _, err := c.Datasets.read(c, named("set", set), "set")
	return loader, err
}

func addSplits(c *Catalog) {
	c.Splits.Declare("iid", partition.IID{}, "shares at random, whose sizes differ by at most one")
	type classes struct {
		Workers map[string]map[string]unit.Fraction `plan:"workers,required" doc:"for each worker the shares of the classes that it sees; what is left over nobody sees"`
		Source  *syntax.Node                        `plan:",node"`
	}
	c.Splits.Add(Define("classes", "stated shares of each class for each worker", func() classes { return classes{} },
		func(_ *Catalog, s *classes) (partition.Split, error) {
			return shares(s.Workers, s.Source.At("workers"))
		}))
	type column struct {
		Column  string              `plan:"column,required" doc:"the column: its name, its number from 1, or last; it is no input unless it is one of words"`
		Workers map[string][]string `plan:"workers,omitzero" doc:"for each worker the values of which it sees the samples; default: each sees those of the value that is its name"`
	}
	c.Splits.Add(Define("column", "each worker sees the samples with its value in a column of a table",
		func() column { return column{} },
		func(_ *Catalog, s *column) (partition.Split, error) {
			split := partition.Column{Name: s.Column}
			for _, name := range slices.Sorted(maps.Keys(s.Workers)) {
				split.Values = append(split.Values, partition.ColumnValues{Worker: name, Values: s.Workers[name]})
			}
			return split, nil
		}))
	c.Splits.Declare("file", partition.File{}, "each worker sees the samples of its own file, as file: {WORKER: FILE} "+
		"of csv says")
	c.Splits.Declare("shards", partition.Shards{PerWorker: 2},
		"samples sorted by label, cut into shards that are dealt out (McMahan et al. 2017)")
	c.Splits.Declare("dirichlet", partition.Dirichlet{Alpha: 1, Min: 1},
		"shares of each class drawn from Dirichlet(alpha) (Yurochkin et al. 2019)")
	c.Splits.Declare("drawn", partition.Drawn{}, "each worker's samples drawn by itself, from classes by shares of "+
		"Dirichlet(alpha), however many workers there are (Hsu et al. 2019)")
}

// shares turns the map of a plan into shares in the order of the workers' names.
func shares(workers map[string]map[string]unit.Fraction, n *syntax.Node) (partition.Split, error) {
	var c partition.Classes
	sums := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		share := partition.Share{Worker: name, Classes: map[string]float64{}}
		for _, class := range slices.Sorted(maps.Keys(workers[name])) {
			f := float64(workers[name][class])
			share.Classes[class] = f
			if sums[class] += f; sums[class] > 1+1e-9 { // as partition.Classes rounds
				return nil, syntax.Errorf(n.At(name).At(class),
					"the workers' shares of class %q add up to %.6g%%; at most 100%% can be given away",
					class, 100*sums[class])
			}
		}
		c.Workers = append(c.Workers, share)
	}
	return c, nil
}

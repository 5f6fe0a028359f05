package catalog

import (
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/csv"
	"github.com/gradwire/gradwire/datasets/idx"
	"github.com/gradwire/gradwire/datasets/libsvm"
	"github.com/gradwire/gradwire/datasets/nslkdd"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/datasets/synthetic"
)

// Loader loads a data set.
type Loader struct {
	// Load reads the data set from the folder of the user's data sets, which those that
	// are generated do not look at, and the published test set if it is wanted.
	Load func(folder string, published bool) (*datasets.Source, error)
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
	if n.Kind == syntax.Scalar && n.Text == published {
		*h = 0
		return nil
	}
	var f unit.Fraction
	if err := f.UnmarshalPlan(n); err != nil {
		return syntax.Errorf(n, "%q is neither a share such as 25%% nor the word %s", n.Text, published)
	}
	if f <= 0 || f >= 1 {
		return syntax.Errorf(n,
			"a share of %v leaves nothing to train on or nothing to test; accepted is more than 0%% and less than "+
				"100%%, or the word %s", f, published)
	}
	*h = holdout(f)
	return nil
}

func (h holdout) MarshalPlan() (*syntax.Node, error) {
	if h == 0 {
		return syntax.NewScalar(published), nil
	}
	return unit.Fraction(h).MarshalPlan()
}

// validation is `validation`: a share such as 10%, or the word none.
type validation float64

const noValidation = "none"

func (v *validation) UnmarshalPlan(n *syntax.Node) error {
	if n.Kind == syntax.Scalar && n.Text == noValidation {
		*v = 0
		return nil
	}
	var f unit.Fraction
	if err := f.UnmarshalPlan(n); err != nil {
		return syntax.Errorf(n, "%q is neither a share such as 10%% nor the word %s", n.Text, noValidation)
	}
	if f <= 0 || f >= 1 {
		return syntax.Errorf(n,
			"a share of %v leaves nothing to train on or nothing to choose by; accepted is more than 0%% and less "+
				"than 100%%, or the word %s", f, noValidation)
	}
	*v = validation(f)
	return nil
}

func (v validation) MarshalPlan() (*syntax.Node, error) {
	if v == 0 {
		return syntax.NewScalar(noValidation), nil
	}
	return unit.Fraction(v).MarshalPlan()
}

// common are the settings that all data sets share.
type common struct {
	Test       holdout      `plan:"test" doc:"the share that is held out to test on, or published for the published test set; default: as the set has it"`
	Validation validation   `plan:"validation" doc:"the share of the training samples that is held out to choose settings by, see tune; never trained on nor tested on"`
	Scale      string       `plan:"scale" words:"none|min-max|standard|log-min-max" doc:"how columns are scaled; default: as the set needs it"`
	Fit        string       `plan:"fit" words:"train|all" doc:"the samples that the scaling is fitted on"`
	Split      *syntax.Node `plan:"split" names:"split" doc:"which worker sees which samples"`
	Delivery   string       `plan:"delivery" words:"local|sent" doc:"how samples get to the processes of a cluster: each reads the set, or is sent what its workers see"`
}

func commonKeys() []string {
	return []string{"test", "validation", "scale", "fit", "split", "delivery"}
}

// How samples get to the processes of a cluster.
const (
	readLocally = "local" // each process reads the data set
	sent        = "sent"  // the one that conducts the run reads it, and sends each worker's samples to its process
)

// data reads a plan's section data.
func (c *Catalog) data(section *syntax.Node) (Data, *syntax.Node, error) {
	loader, resolved, err := c.Datasets.read(c, section, "set", commonKeys()...)
	if err != nil {
		return Data{}, nil, err
	}
	d := Data{Loader: loader, Section: section, SourceKey: resolved.Flow()}
	given := common{Test: holdout(loader.Test), Scale: loader.Scaling.String(), Fit: "train", Delivery: readLocally}
	shared := section.Without(others(section)...)
	if err := settings.Decode(shared, &given); err != nil {
		return Data{}, nil, err
	}
	d.Test, d.Validation = float64(given.Test), float64(given.Validation)
	if d.Scaling, err = datasets.ParseScaling(given.Scale); err != nil {
		return Data{}, nil, syntax.Errorf(section.At("scale"), "%w", err)
	}
	d.FitAll = given.Fit == "all"
	d.Sent = given.Delivery == sent
	if given.Split == nil {
		given.Split = syntax.NewMap(syntax.Field{Key: "kind", Value: syntax.NewText("iid")})
	}
	if d.Split, given.Split, err = c.Splits.read(c, given.Split, "kind"); err != nil {
		return Data{}, nil, err
	}
	spelled, err := settings.Encode(&given)
	if err != nil {
		return Data{}, nil, err
	}
	fields := resolved.Fields
	for _, f := range spelled.Fields {
		fields = append(fields, syntax.Field{Key: f.Key, Value: f.Value.Clone()})
	}
	whole := syntax.NewMap(fields...)
	d.Key = whole.Without("split", "delivery").Flow()
	return d, whole, nil
}

// others are the keys of a data section that belong to the data set's own kind.
func others(section *syntax.Node) []string {
	var keys []string
	for _, f := range section.Fields {
		if index(commonKeys(), f.Key) < 0 {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// fixed wraps a generated set as a loader.
func fixed(generate func() *datasets.Set, test float64) Loader {
	return Loader{Test: test, Load: func(string, bool) (*datasets.Source, error) {
		return &datasets.Source{Pool: generate()}, nil
	}}
}

type nslSettings struct {
	Encoding int `plan:"encoding" words:"93|122" doc:"inputs of a sample"`
}

type trafficSettings struct {
	Samples  int    `plan:"samples" range:"100..10000000" doc:"how many are generated"`
	Encoding int    `plan:"encoding" words:"93|122" doc:"inputs of a sample"`
	Seed     uint64 `plan:"seed" doc:"of the samples, whatever the seed of the run"`
}

type digitsSettings struct {
	Samples int    `plan:"samples" range:"100..10000000" doc:"how many are generated"`
	Seed    uint64 `plan:"seed" doc:"of the samples, whatever the seed of the run"`
}

type none struct{}

func addDatasets(c *Catalog) {
	c.Datasets.Add(Define("nsl-kdd",
		"network intrusion records in five classes (Tavallaee et al. 2009); 93 or 122 inputs",
		func() nslSettings { return nslSettings{Encoding: 93} },
		func(_ *Catalog, s *nslSettings) (Loader, error) {
			return Loader{
				Test:    0.25,
				Scaling: nslkdd.DefaultScaling(s.Encoding),
				Inputs:  s.Encoding, Classes: 5, ClassNames: nslkdd.ClassNames(),
				Load: verified("nsl-kdd", func(folder string, published bool) (*datasets.Source, error) {
					return nslkdd.Load(folder, nslkdd.Options{Encoding: s.Encoding, TestFile: published})
				}),
			}, nil
		}))
	for _, set := range []struct{ name, doc string }{
		{"mnist", "handwritten digits, 28 × 28 (LeCun et al. 1998)"},
		{"fashion-mnist", "clothing, 28 × 28 (Xiao et al. 2017)"},
	} {
		c.Datasets.Add(Define(set.name, set.doc, func() none { return none{} }, func(*Catalog, *none) (Loader, error) {
			return Loader{
				Inputs: 28 * 28, Classes: 10, ClassNames: idx.ClassNames(set.name),
				Load: verified(set.name, func(folder string, _ bool) (*datasets.Source, error) {
					return idx.Load(folder, set.name)
				}),
			}, nil
		}))
	}
	c.Datasets.Add(Define("spambase", "words and characters of e-mails, 57 inputs, spam or not (Hopkins et al. 1999)",
		func() none { return none{} },
		func(*Catalog, *none) (Loader, error) {
			return Loader{
				Test:    0.25,
				Scaling: datasets.Standard,
				Inputs:  57, Classes: 2, ClassNames: []string{"ham", "spam"},
				Load: verified("spambase", func(folder string, _ bool) (*datasets.Source, error) {
					return csv.LoadSpambase(folder)
				}),
			}, nil
		}))
	c.Datasets.Add(Define("a9a", "census records, 123 binary inputs, income in two classes (Platt 1998)",
		func() none { return none{} },
		func(*Catalog, *none) (Loader, error) {
			return Loader{Load: verified("a9a", libsvm.LoadA9A), Inputs: 123, Classes: 2,
				ClassNames: []string{"-1", "+1"}}, nil
		}))
	addFiles(c)
	addGenerated(c)
}

// addGenerated adds the data sets that need no file.
func addGenerated(c *Catalog) {
	c.Datasets.Add(Define("synthetic-traffic", "stand-in for nsl-kdd, generated",
		func() trafficSettings { return trafficSettings{Samples: 40_000, Encoding: 93, Seed: 1} },
		func(_ *Catalog, s *trafficSettings) (Loader, error) {
			l := fixed(func() *datasets.Set {
				set := synthetic.Traffic(s.Seed, s.Samples, s.Encoding)
				set.Columns, _ = nslkdd.Columns(s.Encoding) // the encoding is one of the two
				return set
			}, 0.25)
			l.Scaling, l.Inputs = nslkdd.DefaultScaling(s.Encoding), s.Encoding
			l.Classes, l.ClassNames = 5, nslkdd.ClassNames()
			return l, nil
		}))
	c.Datasets.Add(Define("synthetic-digits", "stand-in for mnist, drawn from strokes",
		func() digitsSettings { return digitsSettings{Samples: 12_000, Seed: 1} },
		func(_ *Catalog, s *digitsSettings) (Loader, error) {
			l := fixed(func() *datasets.Set { return synthetic.Digits(s.Seed, s.Samples) }, 0.25)
			l.Inputs, l.Classes, l.ClassNames = 28*28, 10, idx.ClassNames("mnist")
			return l, nil
		}))
}

// Loader returns the loader of a data set with every setting at its default.
func (c *Catalog) Loader(set string) (Loader, error) {
	loader, _, err := c.Datasets.read(c, syntax.NewMap(syntax.Field{Key: "set", Value: syntax.NewText(set)}), "set")
	return loader, err
}

func addSplits(c *Catalog) {
	c.Splits.Add(Define("iid", "equal shares at random", func() none { return none{} },
		func(*Catalog, *none) (partition.Split, error) { return partition.IID{}, nil }))
	type classes struct {
		Workers map[string]map[string]unit.Fraction `plan:"workers,required" doc:"for each worker the shares of the classes that it sees; what is left over nobody sees"`
		Source  *syntax.Node                        `plan:",node"`
	}
	c.Splits.Add(Define("classes", "stated shares of each class for each worker", func() classes { return classes{} },
		func(_ *Catalog, s *classes) (partition.Split, error) {
			return shares(s.Workers, s.Source.At("workers"))
		}))
	type shards struct {
		PerWorker int `plan:"per-worker" range:"1..1000" doc:"shards that a worker is dealt"`
	}
	c.Splits.Add(Define("shards", "samples sorted by label, cut into shards that are dealt out (McMahan et al. 2017)",
		func() shards { return shards{PerWorker: 2} },
		func(_ *Catalog, s *shards) (partition.Split, error) {
			return partition.Shards{PerWorker: s.PerWorker}, nil
		}))
	type dirichlet struct {
		Alpha float64 `plan:"alpha,required" range:">0" doc:"small: each worker sees few classes; large: all see all alike"`
		Min   int     `plan:"min" range:"0.." doc:"samples that every worker has at least"`
	}
	c.Splits.Add(Define("dirichlet", "shares of each class drawn from Dirichlet(alpha) (Hsu et al. 2019)",
		func() dirichlet { return dirichlet{Alpha: 1, Min: 1} },
		func(_ *Catalog, s *dirichlet) (partition.Split, error) {
			return partition.Dirichlet{Alpha: s.Alpha, Min: s.Min}, between("min", s.Min, 0, datasets.MaxSamples)
		}))
}

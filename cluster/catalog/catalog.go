package catalog

import (
	"fmt"
	"os"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/weights"
	"github.com/gradwire/gradwire/cluster/topology"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

//go:generate go test -run TestTheTablesOfSettings -update .

// Catalog is what a plan can name.
type Catalog struct {
	Models        Kinds[nn.Model]
	Layers        Kinds[nn.Layer]
	Datasets      Kinds[Loader]
	Splits        Kinds[partition.Split]
	Optimizers    Kinds[optim.Method]
	Schedules     Kinds[optim.Schedule]
	Architectures Kinds[train.Architecture]
	Consistencies Kinds[consistency.Model]
	Compressors   Kinds[compress.Operator]
	Delays        Kinds[link.Delay]
	LinkRates     Kinds[rate.Rate]
	Topologies    Kinds[topology.Topology]
	// Actors are those that a driver can have spawned outside of any run. None comes with Gradwire.
	Actors Kinds[actors.ResidentKind]
	// Folder, if not nil, is the only folder from which files that a plan names are read, and
	// what their paths are relative to: for plans of others.
	Folder *os.Root
	// FolderHint ends the error about a file that cannot be opened in Folder: it names the owner of the folder,
	// and the way to put a file there.
	FolderHint string
	// reading is the spec of the plan that is being read, which collects notes and instants; nil for none.
	reading *Spec
	// spans converts the architecture's intervals in epochs or samples to steps.
	spans *spans
	// SamplesElsewhere says that another process reads the data set: its files need not be here.
	SamplesElsewhere bool
}

// Default returns a catalog of everything that comes with Gradwire. It is the
// caller's own, to add to.
func Default() *Catalog {
	c := &Catalog{}
	c.Models.what = "model"
	c.Layers.what = "layer"
	c.Datasets.what = "data set"
	c.Splits.what = "split"
	c.Optimizers.what = "optimizer"
	c.Schedules.what = "rate schedule"
	c.Architectures.what = "architecture"
	c.Consistencies.what = "consistency"
	c.Compressors.what = "compressor"
	c.Delays.what = "delay"
	c.LinkRates.what = "link rate"
	c.Topologies.what = "topology"
	c.Actors.what = "actor kind"
	addModels(c)
	addNetworks(c)
	addDatasets(c)
	addSplits(c)
	addOptimizers(c)
	addSchedules(c)
	addConsistencies(c)
	addCompressors(c)
	addArchitectures(c)
	addDelays(c)
	addLinkRates(c)
	addTopologies(c)
	return c
}

// Spec is one point of a plan with all its names resolved.
type Spec struct {
	// Plan is the point; its sections have every default spelled out.
	Plan *plan.Plan
	// Data says how the data set is loaded, cut and scaled.
	Data Data
	// Model is the network, and ModelSection where the plan says so, for errors.
	Model        nn.Model
	ModelSection *syntax.Node
	// Batch is the number of samples of a step.
	Batch int
	// Weights are those of the classes in the loss; nil for none.
	Weights *weights.Classes
	// Method is the optimiser.
	Method optim.Method
	// Architecture says which actor each node runs, and ArchitectureSection where the plan
	// names it.
	Architecture        train.Architecture
	ArchitectureSection *syntax.Node
	// Delivery is reliable or as-is, and empty for what the architecture has by its nature.
	Delivery string
	// Roles are the architecture's roles of the plan's nodes, in their order.
	Roles []train.Role
	// Added are the roles for which the architecture has added a node, called like the role.
	Added []string
	// Sites are numbers for where the plan's nodes are, in their order; nil where the plan has no
	// sites.
	Sites []int32
	// Choice is how a setting of the architecture was chosen by the network; nil for none. It is
	// left to who asks for the spec.
	Choice *train.Choice
	// Default is what edges are like that Links does not name.
	Default link.Config
	// Access is what the plan's nodes are linked by, in their order.
	Access []Access
	// Links say what the others are like, and what the schedule does to all of them.
	Links *Links
	// Counted lists the architecture's settings that count steps, rounds or another unit.
	Counted []Counted
	spans   *spans
	catalog *Catalog  // the catalog that read the plan
	given   []casting // the roles that the architecture's section gives to nodes
	// Notes warn of settings that mean something else than they seem to, or make a run pointless.
	Notes []string
	// Instants are the times at which settings take effect, including those in trace files.
	Instants []plan.Instants
	// Topologies are the one that the run begins with and those that follow, in the order
	// of time.
	Topologies []Topology
}

// training are the settings of a plan's section train. The bound of a batch is one of a worker's
// memory.
type training struct {
	Batch     int              `plan:"batch" range:"1..65536" doc:"samples of a step; the last one of a pass through a worker's samples has those that are left"`
	Optimizer *syntax.Node     `plan:"optimizer" names:"optimizer" doc:"how a gradient changes the model"`
	Weights   *weights.Classes `plan:"class-weights,omitzero" doc:"how much each class counts in the loss of a step, which is the weighted mean; balanced: samples ÷ (classes × samples of the class); or {CLASS: WEIGHT}, 1 for the others; or a table weights.csv, in which # begins a comment"`
}

// Read resolves the names of a point of a plan. Its errors say where in the plan
// they come from.
func (c *Catalog) Read(p *plan.Plan) (*Spec, error) {
	s := &Spec{Plan: p, ModelSection: p.Model, Notes: p.Late(), Instants: p.Instants()}
	reading := *c
	reading.reading = s
	s.catalog = &reading
	c = &reading
	if err := c.sections(s); err != nil {
		return nil, err
	}
	if p.Tune.Axes != nil && s.Data.Validation == 0 {
		return nil, syntax.Errorf(p.Tune.Source, "values are chosen on a validation split, and there is none; add "+
			"one under data, such as data: {validation: 10%%}")
	}
	for _, next := range []func(*Spec) error{(*Spec).shape, c.roles, (*Spec).rounds,
		(*Spec).teams, (*Spec).shares, (*Spec).attendance, c.available, c.network, (*Spec).pace, c.topologies} {
		if err := next(s); err != nil {
			return nil, err
		}
	}
	s.warnPointless()
	return s, nil
}

// warn adds a note about the setting at n, unless the spec has it already.
func (s *Spec) warn(n *syntax.Node, format string, a ...any) {
	s.note(syntax.Errorf(n, format, a...).Error())
}

// note adds a note, unless it is empty or there already.
func (s *Spec) note(text string) {
	if text != "" && !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// sections reads the sections that name kinds, and collects what is wrong with any of them.
func (c *Catalog) sections(s *Spec) error {
	var errs syntax.Errors
	p := s.Plan
	read := func(n *syntax.Node, of func() error) {
		if err := of(); err != nil {
			errs = append(errs, syntax.Flatten(n, err)...)
		}
	}
	read(p.Data, func() (err error) {
		s.Data, p.Data, err = c.data(p.Data)
		return err
	})
	read(p.Model, func() (err error) {
		s.Model, p.Model, err = c.Models.read(c, p.Model, "kind")
		return err
	})
	read(p.Train, func() error { return c.training(s) })
	read(p.Architecture, func() error { return c.cast(s) })
	return syntax.Join(errs)
}

// WithSections adds to an error about a plan, which could not be read for it, what is wrong with the
// sections that name kinds.
func (c *Catalog) WithSections(root *syntax.Node, err error) error {
	p := plan.Default()
	for key, at := range map[string]**syntax.Node{
		"data": &p.Data, "model": &p.Model, "train": &p.Train, "architecture": &p.Architecture,
	} {
		if n, given := root.Get(key); given && n.Kind != syntax.Null {
			*at = n
		}
	}
	errs := syntax.Flatten(root, err)
	if p.Data == nil || p.Model == nil || p.Architecture == nil {
		return err
	}
	for _, e := range syntax.Flatten(root, c.sections(&Spec{Plan: p})) {
		if !slices.ContainsFunc(errs, func(o *syntax.Error) bool { return o.Error() == e.Error() }) {
			errs = append(errs, e)
		}
	}
	return syntax.Join(errs)
}

// shape checks that the model takes what the data set has, as far as that is known before it is
// loaded.
func (s *Spec) shape() error {
	if s.Data.Inputs == 0 || s.Data.ClassNames == nil {
		return nil
	}
	return s.Fits(s.Data.Section.At("set").Text, s.Data.Inputs, s.Data.ClassNames)
}

// shares checks that a split names workers and classes that exist, as far as these are known before
// the data set is loaded.
func (s *Spec) shares() error {
	var workers []string
	for i, r := range s.Roles {
		if r.Trains {
			workers = append(workers, s.Plan.Nodes[i].Name)
		}
	}
	var err error
	switch split := s.Data.Split.(type) {
	case partition.Classes:
		err = split.Check(s.Data.ClassNames, workers)
	case partition.Column:
		err = split.Check(workers)
	case partition.File:
		err = split.Check(s.Data.Parts, workers)
	}
	if err != nil {
		return syntax.Errorf(s.Data.Section.At("split"), "%w", err)
	}
	return nil
}

// pace checks that virtual time goes on where it alone ends a run: steps that take no time must
// wait for something that does.
func (s *Spec) pace() error {
	if stop := s.Plan.Stop; stop.Epochs > 0 || stop.Steps > 0 || stop.Rounds > 0 || s.held() {
		return nil
	}
	for i := range s.Plan.Nodes {
		node := &s.Plan.Nodes[i]
		if step := node.Compute.Step; s.Roles[i].Trains && step != nil && *step == 0 {
			return syntax.Errorf(node.Source.At("compute"),
				"the steps of %s take no time, and it waits for nothing that takes any: "+
					"until stop: {time: %s} it would compute for ever; give the step a time, or stop a number of "+
					"steps or epochs", node.Name, s.Plan.Stop.Time)
		}
	}
	return nil
}

// Exact reports whether a run of the architecture in virtual time that was resumed from a checkpoint equals
// an uninterrupted run; see [Kind].
func (s *Spec) Exact() bool {
	k, _ := s.catalog.Architectures.find(s.ArchitectureSection.At("kind").Text)
	return k.Exact
}

// rounds refuses to count rounds of an architecture that has none.
func (s *Spec) rounds() error {
	if a, ok := s.Architecture.(train.Rounds); ok && a.InRounds() {
		return nil
	}
	const none = "architecture %s has no rounds; accepted are %s"
	kind := s.ArchitectureSection.At("kind").Text
	if e := &s.Plan.Evaluate; e.Every.Rounds > 0 {
		return syntax.Errorf(e.Source.At("every"), none, kind, "epochs, steps and a duration")
	}
	if s.Plan.Stop.Rounds > 0 {
		return syntax.Errorf(s.Plan.Stop.Source.At("rounds"), none, kind, "epochs, steps and time")
	}
	return nil
}

// held reports whether the nodes that train wait for something that takes time: a link, or a node
// that works for them.
func (s *Spec) held() bool {
	if free, ok := s.Architecture.(train.FreeRunner); ok && free.FreeRunning() {
		return false
	}
	for i := range s.Plan.Nodes {
		node := &s.Plan.Nodes[i]
		if !s.Roles[i].Trains && (node.Compute.Step == nil || *node.Compute.Step > 0) {
			return true
		}
	}
	return s.Delays()
}

// Delays reports whether any message takes time in the network that the plan emulates.
func (s *Spec) Delays() bool {
	limited := slices.ContainsFunc(s.Access, func(a Access) bool { return a != (Access{}) })
	return limited || s.Default.Delay != link.Delay(link.Constant{}) || s.Default.Rate != nil || s.Links.differ()
}

func (c *Catalog) training(s *Spec) error {
	t := training{Batch: 32}
	section := s.Plan.Train
	if section == nil {
		section = syntax.NewMap()
	}
	errs := syntax.Flatten(section, settings.Decode(section, &t))
	if t.Optimizer == nil {
		t.Optimizer = named("kind", "sgd")
	}
	if s.Batch, s.Weights = t.Batch, t.Weights; t.Weights != nil && errs == nil {
		errs = syntax.Flatten(section, c.weigh(s))
	}
	var err error
	s.Method, t.Optimizer, err = c.Optimizers.read(c, t.Optimizer, "kind")
	if errs = append(errs, syntax.Flatten(section, err)...); errs != nil {
		return syntax.Join(errs)
	}
	s.Plan.Train, err = settings.Encode(&t)
	return err
}

// weigh reads the table of weights, if there is one, and checks its classes, as far as these are
// known before the data set is loaded.
func (c *Catalog) weigh(s *Spec) error {
	w := s.Weights
	if w.File != "" {
		var err error
		if w.Of, err = readBeside(c, w.Source, &w.File, "table of weights", weights.Read); err != nil {
			return err
		}
	}
	if s.Data.ClassNames == nil {
		return nil
	}
	return w.Check(s.Data.ClassNames)
}

func wanted(r train.Role) string {
	switch r.Max {
	case r.Min:
		return fmt.Sprintf("exactly %d", r.Min)
	case 0:
		return fmt.Sprintf("at least %d", r.Min)
	default:
		return fmt.Sprintf("%d to %d", r.Min, r.Max)
	}
}

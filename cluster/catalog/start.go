package catalog

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/topology"
	"github.com/gradwire/gradwire/datasets"
)

// Start says what a new plan is about.
type Start struct {
	// Architecture and Data are names of kinds.
	Architecture, Data string
	// Set are assignments as of --set, for what has no default.
	Set []string
	// Folder is where the plan will lie, for files that are to be named as they lie beside it;
	// empty if that is not known.
	Folder string
	// Program is what the program is called, for the comments.
	Program string
	// Load loads a data set whose shape is not known before.
	Load func(Loader) (*datasets.Source, error)
}

// SchemaFile is what new plans call the file with the schema of plans.
const SchemaFile = "plan.schema.json"

// trainers is how many nodes of a new plan train, where their number is free.
const trainers = 4

// hidden is the width of the hidden layer of a new plan's model.
const hidden = 32

// Start writes a plan to begin with: every setting of its architecture and data set with its
// default and what it means, nodes for each role, links of which one is slow, and a bound. It can
// be read and run as it is. Errors are about names that the catalog does not have, keys without a
// default that Set does not give, and what Load says.
func (c *Catalog) Start(s Start) (string, error) {
	root := syntax.NewMap(
		syntax.Entry("data", named("set", s.Data)),
		syntax.Entry("model", syntax.NewMap()),
		syntax.Entry("architecture", named("kind", s.Architecture)),
	)
	later, err := assign(root, s.Set, "data", "model", "architecture")
	if err != nil {
		return "", err
	}
	at, _ := root.Get("architecture")
	if err := demand(&c.Architectures, s.Architecture, at, "architecture"); err != nil {
		return "", err
	}
	data, settled, err := c.startData(&s, root)
	if err != nil {
		return "", err
	}
	architecture, chosen, err := c.Architectures.read(c, at, "kind")
	if err != nil {
		return "", err
	}
	model, _ := root.Get("model")
	if len(model.Fields) == 0 {
		if model, err = s.model(&data); err != nil {
			return "", err
		}
	}
	taking := syntax.NewMap(syntax.Entry("nodes", nodes(architecture, data.Parts)))
	if later, err = assign(taking, later, "nodes"); err != nil {
		return "", err
	}
	who, _ := taking.Get("nodes")
	written := syntax.NewMap(
		syntax.Entry("name", syntax.NewText(s.Architecture+"-"+s.Data)),
		syntax.Entry("seed", syntax.NewScalar("1")),
		syntax.Entry("repeats", syntax.NewScalar("3")),
		syntax.Entry("data", settled),
		syntax.Entry("model", model),
		syntax.Entry("train", flow("{batch: 32, optimizer: {kind: sgd, rate: 0.2}}")),
		syntax.Entry("architecture", chosen),
		syntax.Entry("nodes", who),
		syntax.Entry("network", network(who)),
		syntax.Entry("evaluate", flow("{every: 0.2 epochs}")),
		syntax.Entry("stop", flow("{target: 90%, epochs: 10}")),
	)
	if _, err := assign(written, later); err != nil {
		return "", err
	}
	return c.settle(written, &s)
}

func named(key, name string) *syntax.Node {
	return syntax.NewMap(syntax.Entry(key, syntax.NewText(name)))
}

// flow parses a constant.
func flow(text string) *syntax.Node {
	_, n, err := syntax.ParseAssignment("x=" + text)
	if err != nil {
		panic(err)
	}
	return n
}

// assign carries out the assignments to the sections, all of them if there are none, and returns
// the others.
func assign(root *syntax.Node, set []string, sections ...string) (later []string, err error) {
	for _, assignment := range set {
		path, value, err := syntax.ParseAssignment(assignment)
		if err != nil {
			return nil, err
		}
		section, _, _ := strings.Cut(path, ".")
		if len(sections) > 0 && !slices.Contains(sections, section) {
			later = append(later, assignment)
			continue
		}
		if err := root.Set(path, value); err != nil {
			return nil, err
		}
	}
	return later, nil
}

// demand says which keys of a section must be given.
func demand[T any](ks *Kinds[T], name string, section *syntax.Node, path string) error {
	k, ok := ks.find(name)
	if !ok {
		return fmt.Errorf("unknown %s %q%s", ks.what, name, syntax.Suggestion(name, ks.names()))
	}
	for _, key := range k.Keys() {
		if _, given := section.Get(key.Name); key.Required && !given {
			return fmt.Errorf("%s %s has no default for %s (%s): give it with --set %s.%s=…", ks.what, name, key.Name,
				key.Doc, path, key.Name)
		}
	}
	return nil
}

// startData reads the section data of a new plan.
func (c *Catalog) startData(s *Start, root *syntax.Node) (Data, *syntax.Node, error) {
	section, _ := root.Get("data")
	if err := demand(&c.Datasets, s.Data, section, "data"); err != nil {
		return Data{}, nil, err
	}
	data, settled, err := c.data(section)
	if err == nil {
		err = s.besides(settled)
	}
	return data, settled, err
}

// besides names files beside the plan, or below, by their path from there: a plan and its files may
// be moved together.
func (s *Start) besides(section *syntax.Node) error {
	if s.Folder == "" {
		return nil
	}
	folder, err := filepath.Abs(s.Folder)
	if err != nil {
		return err
	}
	for i, f := range section.Fields {
		if f.Value.Kind == syntax.Map {
			if err := s.besides(f.Value); err != nil {
				return err
			}
		}
		if f.Value.Kind != syntax.Scalar || !filepath.IsAbs(f.Value.Text) {
			continue
		}
		if path, err := filepath.Rel(folder, f.Value.Text); err == nil && filepath.IsLocal(path) {
			section.Fields[i].Value = syntax.NewText(filepath.ToSlash(path))
		}
	}
	return nil
}

// model is a perceptron that fits the data.
func (s *Start) model(d *Data) (*syntax.Node, error) {
	inputs, classes := d.Inputs, d.Classes
	if inputs == 0 {
		source, err := s.Load(d.Loader)
		if err != nil {
			return nil, fmt.Errorf("how many inputs and classes data set %s has is not known before it is there: %w",
				s.Data, err)
		}
		inputs, classes = source.Pool.Inputs, len(source.Pool.Classes)
	}
	return flow(fmt.Sprintf("{kind: mlp, layers: [%d, %d, %d]}", inputs, hidden, classes)), nil
}

// members is how many nodes of a role a new plan has.
func members(r train.Role) int {
	n := r.Min
	if r.Trains {
		n = max(n, trainers)
	}
	if r.Max > 0 {
		n = min(n, r.Max)
	}
	return n
}

// nodes are those that an architecture needs, named after their roles or, where each worker has a
// file of the data set, after those.
func nodes(a train.Architecture, workers []string) *syntax.Node {
	var list []*syntax.Node
	for _, r := range a.Roles() {
		n := members(r)
		if n == 0 {
			continue
		}
		if r.Trains && workers != nil {
			for _, name := range workers {
				list = append(list, flow(fmt.Sprintf("{name: %q, role: %q, compute: {step: 5ms}}", name, r.Name)))
			}
			continue
		}
		node := fmt.Sprintf("{name: %q, role: %[1]q", r.Name)
		if n > 1 {
			node += fmt.Sprintf(", count: %d", n)
		}
		if r.Trains {
			node += ", compute: {step: 5ms}"
		}
		list = append(list, flow(node+"}"))
	}
	return syntax.NewList(list...)
}

// network gives the last of the nodes a slow link to everybody, if there are others.
func network(nodes *syntax.Node) *syntax.Node {
	slow := ""
	if n := len(nodes.Items); n > 0 {
		last := nodes.Items[n-1]
		slow = last.At("name").Text
		if count, group := last.Get("count"); group {
			slow += count.Text
		} else if n == 1 {
			slow = ""
		}
	}
	if slow == "" {
		return flow("{topology: complete, default: {delay: 5ms, rate: 100 Mbit/s}}")
	}
	return flow(fmt.Sprintf("{topology: complete, default: {delay: 5ms, rate: 100 Mbit/s}, links: [{between: "+
		"[%q, %q], delay: {kind: uniform, range: 50ms..150ms}, rate: 10 Mbit/s}]}", slow, plan.Everyone))
}

// settle finds a topology that suits the architecture and writes the plan.
func (c *Catalog) settle(written *syntax.Node, s *Start) (string, error) {
	var first error
	for _, topology := range []string{"complete", "ring", "hypercube", "star", "exponential"} {
		if err := written.Set("network.topology", syntax.NewText(topology)); err != nil {
			return "", err
		}
		text := c.startText(written, s)
		spec, err := c.readText(filepath.Join(s.Folder, "new plan"), text)
		if err != nil {
			return "", err
		}
		if err = spec.fit(); err == nil {
			return text, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", fmt.Errorf("no simple topology suits architecture %s: %w", s.Architecture, first)
}

func (c *Catalog) readText(name, text string) (*Spec, error) {
	root, err := syntax.Parse(name, []byte(text))
	if err != nil {
		return nil, err
	}
	p, err := plan.ReadPlan(root)
	if err != nil {
		return nil, err
	}
	return c.Read(p)
}

// fit asks the architecture whether the topology that a run begins with suits it.
func (s *Spec) fit() error {
	picky, ok := s.Architecture.(train.Fitter)
	if !ok {
		return nil
	}
	d := world.Deployment{}
	var names []string
	for i, n := range s.Plan.Nodes {
		names = append(names, n.Name)
		d.Nodes = append(d.Nodes, world.Node{Name: n.Name, Role: s.Roles[i].Name})
	}
	g, err := topology.NewGraph(s.Topologies[0].Topology, names,
		rand.New(actors.Source(s.Plan.Seed, actors.Coordinator, "topology")))
	if err != nil {
		return err
	}
	d.Topologies = []actors.Graph{actors.Graph(g)}
	return picky.Fit(d.Views().First(), d.Views().First())
}

// startHints lists settings that a new plan leaves out, each with its purpose.
const startHints = `
# sweep: what is varied, each value in separate runs.
# sweep: {train.optimizer.rate: [0.1, 0.2]}

# tune: chooses the rate of each point on data: {validation: 10%}. A comparison of architectures needs
# it: one rate for all favours those that add what others average.
# tune: {train.optimizer.rate: [0.05, 0.1, 0.2]}
# sweep: {architecture: [{kind: all-reduce}, {kind: parameter-server, roles: {server: added}}]}

# roles: a key of architecture; which node serves, by its name; added adds a node for it.
# roles: {server: added}

# compute: native: a node that is as fast as the machine that runs it; in real time and on a cluster.
# compute: native

# delay: a key of a node; what its own line adds to all that it sends and receives.
# delay: 20ms

# record: events: saves every message, step and wait beside the figures.
# record: events

# schedule: what happens during a run.
# schedule: [{at: 1s, from: "*", to: "*", delay: 20ms}]
`

// startText writes the plan with what its keys mean.
func (c *Catalog) startText(written *syntax.Node, s *Start) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# yaml-language-server: $schema=%s\n", SchemaFile)
	fmt.Fprintf(&b, "# Editors complete and check this plan by that file beside it; %s plan schema --out %s\n"+
		"# writes it.\n", s.Program, SchemaFile)
	fmt.Fprintf(&b, "# %s run THIS carries this plan out; %s plan check THIS says what is wrong with it.\n", s.Program,
		s.Program)
	fmt.Fprintf(&b, "# Other kinds and their settings: %s list.\n", s.Program)
	schema := settings.SchemaOf(plan.Default())
	keys := map[string][]Key{"data": dataKeys(c, s.Data), "architecture": keysOf(&c.Architectures, s.Architecture),
		"model": keysOf(&c.Models, written.At("model").At("kind").Text), "train": trainKeys(c)}
	for _, f := range written.Fields {
		fmt.Fprintf(&b, "\n# %s: %s\n", f.Key, schema.Properties.Get(f.Key).Description)
		if known, described := keys[f.Key]; described {
			writeSection(&b, f, known)
			continue
		}
		b.WriteString(syntax.NewMap(syntax.Entry(f.Key, f.Value.Clone())).YAML())
	}
	b.WriteString(startHints)
	return b.String()
}

func keysOf[T any](ks *Kinds[T], name string) []Key {
	k, _ := ks.find(name)
	return append([]Key{{Name: "kind", Doc: k.Doc, Words: ks.names()}}, k.Keys()...)
}

func dataKeys(c *Catalog, set string) []Key {
	keys := keysOf(&c.Datasets, set)
	keys[0].Name = "set"
	return append(keys, keysIn(&common{}, "split", c.Splits.names())...)
}

func trainKeys(c *Catalog) []Key { return keysIn(&training{}, "optimizer", c.Optimizers.names()) }

// keysIn are the keys of a section, one of which names a kind, with its words.
func keysIn(section any, kind string, words []string) (keys []Key) {
	for _, p := range settings.SchemaOf(section).Properties {
		key := keyOf(p)
		if key.Name == kind {
			key.Words = words
		}
		keys = append(keys, key)
	}
	return keys
}

// about says what a key means, and the words that it accepts.
func (k Key) about() string {
	about := k.Doc
	if len(k.Words) > 1 {
		about = strings.TrimSpace(about + " (" + strings.Join(k.Words, ", ") + ")")
	}
	return about
}

// writeSection writes each key of a section on a line with what it means and which words it
// accepts, those that are left out as comments.
func writeSection(b *strings.Builder, f syntax.Field, keys []Key) {
	var lines []string
	widest := 0
	for _, k := range keys {
		line := "  # " + k.Name + ":"
		if v, ok := f.Value.Get(k.Name); ok {
			line = "  " + k.Name + ": " + v.Flow()
		}
		lines = append(lines, line)
		if width := utf8.RuneCountInString(line); width <= 48 {
			widest = max(widest, width)
		}
	}
	b.WriteString(f.Key + ":\n")
	for i, line := range lines {
		gap := strings.Repeat(" ", max(0, widest-utf8.RuneCountInString(line)))
		if about := keys[i].about(); about != "" {
			line += gap + "  # " + about
		}
		b.WriteString(line + "\n")
	}
}

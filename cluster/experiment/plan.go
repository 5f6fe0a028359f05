// Package experiment carries plans out. It reads a plan, resolves the points of its sweep with a
// catalog, tunes them, and plays every repeat of every point on a Venue. It judges and records the
// outcomes. It does not know which venue it has: it provides Virtual and Real, and package node a
// cluster.
package experiment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
)

// Plan is a plan that has been read, before a catalog gives its names a meaning.
type Plan struct {
	root *syntax.Node
	file string
	text []byte
	set  []string // assignments that were carried out, as they were written
}

// Load reads a plan from a file and carries out assignments of the form key=value,
// as of `--set`.
func Load(path string, set ...string) (*Plan, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refusal.Input(fmt.Errorf("the plan cannot be read: %w", noPlan(path)))
	}
	if err != nil {
		return nil, refusal.Input(fmt.Errorf("the plan cannot be read: %w", err))
	}
	if info.IsDir() {
		return nil, refusal.Input(folderAsPlan(path))
	}
	src, err := readAtMost(path, syntax.MaxBytes+1)
	if err != nil {
		return nil, refusal.Input(fmt.Errorf("the plan cannot be read: %w", err))
	}
	if len(src) > syntax.MaxBytes {
		return nil, refusal.Input(fmt.Errorf("%s has more than the %d bytes that a plan may have", path,
			syntax.MaxBytes))
	}
	return Parse(path, src, set...)
}

// readAtMost reads at most the given number of bytes: a device such as /dev/zero has no end.
func readAtMost(path string, bytes int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	return io.ReadAll(io.LimitReader(f, bytes))
}

// folderAsPlan returns the error about a folder in place of a plan. It names the kind of folder and the
// accepted paths.
func folderAsPlan(dir string) error {
	above := filepath.Dir(filepath.Clean(dir))
	switch {
	case record.IsRun(dir):
		return fmt.Errorf("%s is the folder of a recorded run, not a plan; 'gradwire replay %s' runs it again", dir,
			dir)
	case record.IsRecord(dir):
		return fmt.Errorf("%s is the folder of a record, not a plan; 'gradwire run --continue %s' makes its missing "+
			"runs, 'gradwire replay %s' runs one again, and its plan is %s", dir, dir,
			filepath.Join(dir, filepath.Dir(record.RunFile(0))), filepath.Join(dir, record.PlanName))
	case record.IsRecord(above):
		return fmt.Errorf("%s is a folder of the record %s, not a plan; its plan is %s", dir, above,
			filepath.Join(above, record.PlanName))
	}
	const most = 10 // plans in the message
	plans := plansIn(dir)
	switch n := len(plans); {
	case n == 0:
		return fmt.Errorf("%s is a folder, and no file in it ends in .yaml; the file of a plan is accepted, "+
			"which 'gradwire plan new' writes", dir)
	case n > most:
		return fmt.Errorf("%s is a folder; the file of a plan is accepted, such as %s or %d others in it", dir,
			strings.Join(plans[:most], ", "), n-most)
	}
	return fmt.Errorf("%s is a folder; the file of a plan is accepted, such as %s", dir, strings.Join(plans, ", "))
}

// plansIn returns the paths of the YAML files in a folder.
func plansIn(dir string) (plans []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			plans = append(plans, filepath.Join(dir, e.Name()))
		}
	}
	return plans
}

// noPlan returns the error about a file that does not exist.
func noPlan(path string) error {
	const accepted = "the file of a plan is accepted, which 'gradwire plan new' writes"
	if path == "" {
		return errors.New("the name of its file is empty; " + accepted)
	}
	near := ""
	if plans := plansIn(filepath.Dir(path)); plans != nil {
		near = syntax.Suggest(filepath.Clean(path), "plans there", plans)
	}
	return fmt.Errorf("there is no file %s%s; %s", path, near, accepted)
}

// Parse reads a plan from its text, also one of an earlier version of the language; file is its
// name in errors and the folder of files that it names.
func Parse(file string, src []byte, set ...string) (*Plan, error) {
	root, err := syntax.Parse(file, src)
	if err != nil {
		return nil, refusal.Input(err)
	}
	plan.Upgrade(root)
	p := &Plan{root: root, file: file, text: src}
	for _, assignment := range set {
		if err := p.assign(assignment); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Set puts a value at a path of the plan, as `--set path=value` does.
func (p *Plan) Set(path, value string) error { return p.assign(path + "=" + value) }

func (p *Plan) assign(assignment string) error {
	path, value, err := syntax.ParseAssignment(assignment)
	if err == nil {
		err = p.root.Set(path, value)
	}
	if err != nil {
		return refusal.Input(err)
	}
	p.set = append(p.set, assignment)
	return nil
}

// Written returns the plan's file, the text in it, and the assignments that were carried out.
func (p *Plan) Written() (file string, text []byte, set []string) { return p.file, p.text, p.set }

// Point is one combination of a sweep's values. The names of files in its Root are absolute.
type Point struct {
	plan.Point
	// Spec is what the catalog has made of it.
	Spec *catalog.Spec
	// candidates are what can be chosen for the point; none once that has been done, or if there is
	// nothing to choose.
	candidates []candidate
	blind      bool // models are not evaluated: every accuracy is NaN
	counts     bool // gradients are not computed; see counted
	// Late is as in sim.Config.
	Late time.Duration
}

// Points resolves every point of the plan; a nil catalog stands for catalog.Default().
func (p *Plan) Points(c *catalog.Catalog) ([]Point, error) {
	if c == nil {
		c = catalog.Default()
	}
	all, err := plan.Points(p.root)
	if err != nil {
		_, other := read(c, p.root.Without("sweep", "tune"), true)
		errs := append(syntax.Flatten(p.root, err), syntax.Flatten(p.root, other)...)
		return nil, refusal.Input(syntax.Join(errs))
	}
	points := make([]Point, len(all))
	many := severalKinds(all)
	for i, at := range all {
		points[i].Point = at
		if points[i].Spec, err = read(c, at.Root, many); err == nil {
			if err := points[i].readCandidates(c); err != nil {
				return nil, refusal.Input(err)
			}
			continue
		}
		if last := len(all) - 1; i == 0 && last > 0 {
			if _, other := read(c, all[last].Root, many); other != nil && other.Error() == err.Error() {
				return nil, refusal.Input(err) // whatever the sweep puts in its place
			}
		}
		return nil, refusal.Input(points[i].About(err))
	}
	if many {
		return points, refusal.Input(knownRoles(points))
	}
	return points, nil
}

// knownRoles returns an error about a role of a node that no architecture of the sweep knows.
func knownRoles(points []Point) error {
	var known []string
	for _, p := range points {
		for _, r := range p.Spec.Architecture.Roles() {
			if !slices.Contains(known, r.Name) {
				known = append(known, r.Name)
			}
		}
	}
	for i := range points {
		for _, node := range points[i].Root.At("nodes").Items {
			if role, given := node.Get("role"); given && role.Text != "" && !slices.Contains(known, role.Text) {
				return syntax.Errorf(role, "no architecture of this sweep knows the role %q%s", role.Text,
					syntax.Suggestion(role.Text, known))
			}
		}
	}
	return nil
}

func read(c *catalog.Catalog, root *syntax.Node, anyRole bool) (*catalog.Spec, error) {
	p, err := plan.ReadPlan(root)
	if err != nil {
		return nil, c.WithSections(root, err)
	}
	p.AnyRole = anyRole
	s, err := c.Read(p)
	if err != nil {
		return nil, err
	}
	at, err := (&Point{Spec: s}).resolve(0)
	if err != nil {
		return nil, err
	}
	s = at.Spec
	if s.Choice, err = choose(s, false); err != nil {
		return nil, err
	}
	if err := checkStore(s.Plan); err != nil {
		return nil, err
	}
	if err := faults.Check(s.Plan, (&Point{Spec: s}).roles()); err != nil {
		return nil, err
	}
	return s, sendable(s)
}

// severalKinds reports whether the points have several kinds of architectures.
func severalKinds(points []plan.Point) bool {
	kind := func(p *plan.Point) string { return p.Root.At("architecture").At("kind").Text }
	return slices.ContainsFunc(points, func(p plan.Point) bool { return kind(&p) != kind(&points[0]) })
}

// About says at which point of the sweep something is wrong, and where the sweep's values for it
// are written.
func (p *Point) About(err error) error {
	if len(p.Labels) == 0 {
		return err
	}
	var one *syntax.Error
	var many syntax.Errors
	switch {
	case errors.As(err, &many):
		told := make(syntax.Errors, len(many))
		for i := range many {
			told[i] = many[i].At(p.where())
		}
		return told
	case errors.As(err, &one):
		return one.At(p.where())
	}
	return fmt.Errorf("at %s: %w", p.where(), err)
}

// Settings are the values of the sweep at the point, as records have them.
func (p *Point) Settings() record.Point { return settings(p.Labels) }

// where names the point, and the lines that its values come from.
func (p *Point) where() string {
	texts := make([]string, len(p.Labels))
	for i, l := range p.Labels {
		texts[i] = l.Key + " = " + l.Value
		if pos := p.Values[i].Pos; pos.Line > 0 {
			texts[i] += fmt.Sprintf(" (%s:%d)", pos.File, pos.Line)
		}
	}
	return strings.Join(texts, ", ")
}

func describe(labels []plan.Label) string {
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = l.Key + " = " + l.Value
	}
	return strings.Join(texts, ", ")
}

// Resolved returns the text of the plan with every default spelled out and every file by its
// absolute name, but for those in values of a sweep whose labels are longer than plan.MaxLabel.
// What has other defaults at other points of a sweep stays as it was written, and an architecture
// that the sweep varies says which nodes have which role. A nil catalog stands for
// catalog.Default().
func (p *Plan) Resolved(c *catalog.Catalog) (string, error) {
	points, err := p.Points(c)
	if err != nil {
		return "", err
	}
	return p.resolved(points)
}

func (p *Plan) resolved(points []Point) (string, error) {
	axes, err := plan.Axes(p.root)
	if err != nil {
		return "", refusal.Input(err)
	}
	resolved, err := spelledOut(points)
	if err != nil {
		return "", refusal.Input(err)
	}
	written := p.root.Without("sweep").Clone()
	takeFiles(written, points[0].Root)
	spelled := plan.Spell(written, axes, resolved)
	for k := range axes {
		for i := range axes[k].Values {
			v := &axes[k].Values[i]
			if len(v.Label) > plan.MaxLabel {
				continue // with other names of files its label could not be given to it
			}
			var used []*syntax.Node
			var at *Point
			for n := range points {
				if points[n].Choice[k] == i {
					used, at = append(used, resolved[n]), &points[n]
				}
			}
			value := v.Value.Clone()
			takeFiles(value, at.Values[k])
			v.Value = plan.SpellValue(axes, k, value, used).Clone()
		}
	}
	if len(axes) == 0 {
		return spelled.YAML(), nil
	}
	sweep, err := axes.MarshalPlan()
	if err != nil {
		return "", refusal.Input(err)
	}
	return withSweep(spelled, sweep).YAML(), nil
}

// Casts says, for each kind of architecture that a sweep varies and that gives the nodes other
// roles than others, which nodes have which role, in the order of the points. A nil catalog stands
// for catalog.Default().
func (p *Plan) Casts(c *catalog.Catalog) ([]string, error) {
	if _, swept := p.root.Get("sweep"); !swept {
		return nil, nil
	}
	points, err := p.Points(c)
	if err != nil || !points[0].Spec.Plan.AnyRole {
		return nil, err
	}
	var casts []string
	for i := range points {
		spec := points[i].Spec
		cast := spec.Plan.Architecture.At("kind").Text + ": " + spec.Casting().Flow()
		if !slices.Contains(casts, cast) {
			casts = append(casts, cast)
		}
	}
	return casts, nil
}

// spelledOut are the points with every default. Where nodes have other roles at other points, the
// architecture says which have which.
func spelledOut(points []Point) ([]*syntax.Node, error) {
	nodes := make([]*syntax.Node, len(points))
	for i := range points {
		node, err := points[i].Spec.Plan.Node()
		if err != nil {
			return nil, err
		}
		nodes[i] = node
	}
	others := func(n *syntax.Node) bool { return !n.At("nodes").Equal(nodes[0].At("nodes")) }
	if points[0].Spec.Plan.AnyRole && slices.ContainsFunc(nodes, others) {
		for i := range nodes {
			if err := nodes[i].Set("architecture.roles", points[i].Spec.Casting()); err != nil {
				return nil, err
			}
		}
	}
	return nodes, nil
}

// withSweep puts a sweep where plans have it.
func withSweep(spelled, sweep *syntax.Node) *syntax.Node {
	at := slices.IndexFunc(spelled.Fields, func(f syntax.Field) bool { return f.Key == "record" })
	if at < 0 {
		at = len(spelled.Fields)
	}
	return syntax.NewMap(slices.Insert(slices.Clone(spelled.Fields), at, syntax.Field{Key: "sweep", Value: sweep})...)
}

// takeFiles copies the names of files, which were made absolute, from what was read to what was
// written.
func takeFiles(written, read *syntax.Node) {
	if written.Pos != read.Pos {
		return // what the sweep put in its place
	}
	written.Text = read.Text
	for i := range min(len(written.Items), len(read.Items)) {
		takeFiles(written.Items[i], read.Items[i])
	}
	for _, f := range written.Fields {
		if value, ok := read.Get(f.Key); ok {
			takeFiles(f.Value, value)
		}
	}
}

// Text is the plan of the point alone, for one run with a seed. It states what was chosen by the
// network, so that every process runs the same.
func (p *Point) Text(seed uint64) (string, error) {
	one := *p.Spec.Plan
	one.Seed, one.Repeats, one.Sweep = seed, 1, nil
	node, err := one.Node()
	if err != nil {
		return "", err
	}
	if c := p.Spec.Choice; c != nil {
		if err := node.Set(settingOf(c), syntax.NewScalar(c.Word)); err != nil {
			return "", err
		}
	}
	return node.YAML(), nil
}

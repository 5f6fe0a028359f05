// Package driver is what a driver program uses: it loads a plan, runs it with a
// catalog, and returns what came of it.
//
//	p, err := driver.Load("plan.yaml")
//	summary, err := driver.Run(ctx, p, driver.Options{Catalog: catalog.Default()})
package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan"
)

// InputError is about what the user gave: a plan, data, a folder. It is
// told before anything runs.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *InputError) Unwrap() error { return e.Err }

// input marks an error as an InputError.
func input(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{err}
}

// Plan is a plan that has been read, before a catalog gives its names a meaning.
type Plan struct {
	root *plan.Node
	file string
	text []byte
	set  []string // assignments that were carried out, as they were written
}

// Load reads a plan from a file and carries out assignments of the form key=value,
// as of `--set`.
func Load(path string, set ...string) (*Plan, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, input(fmt.Errorf("the plan cannot be read: %w", err))
	}
	if info.Size() > plan.MaxBytes {
		return nil, input(fmt.Errorf("%s has %d bytes; a plan has at most %d", path, info.Size(), plan.MaxBytes))
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, input(fmt.Errorf("the plan cannot be read: %w", err))
	}
	return Parse(path, src, set...)
}

// Parse reads a plan from its text; file is its name in errors and the folder of
// files that it names.
func Parse(file string, src []byte, set ...string) (*Plan, error) {
	root, err := plan.Parse(file, src)
	if err != nil {
		return nil, input(err)
	}
	for _, s := range set {
		path, value, err := plan.ParseAssignment(s)
		if err == nil {
			err = root.Set(path, value)
		}
		if err != nil {
			return nil, input(err)
		}
	}
	return &Plan{root: root, file: file, text: src, set: slices.Clone(set)}, nil
}

// Set puts a value at a path of the plan, as `--set path=value` does.
func (p *Plan) Set(path, value string) error {
	assignment := path + "=" + value
	path, node, err := plan.ParseAssignment(assignment)
	if err == nil {
		err = p.root.Set(path, node)
	}
	if err == nil {
		p.set = append(p.set, assignment)
	}
	return input(err)
}

// point is one combination of a sweep's values.
type point struct {
	labels []plan.Label
	spec   *catalog.Spec
}

// points resolves every point of the plan; a nil catalog stands for catalog.Default().
func (p *Plan) points(c *catalog.Catalog) ([]point, error) {
	if c == nil {
		c = catalog.Default()
	}
	all, err := plan.Points(p.root)
	if err != nil {
		return nil, input(err)
	}
	points := make([]point, len(all))
	for i, at := range all {
		spec, err := read(c, at.Root)
		if err != nil {
			return nil, input(about(at.Labels, err))
		}
		points[i] = point{labels: at.Labels, spec: spec}
	}
	return points, nil
}

func read(c *catalog.Catalog, root *plan.Node) (*catalog.Spec, error) {
	p, err := plan.ReadPlan(root)
	if err != nil {
		return nil, err
	}
	return c.Read(p)
}

// about says at which point of the sweep something is wrong, unless the place in
// the plan does.
func about(labels []plan.Label, err error) error {
	var one *plan.Error
	var many plan.Errors
	if len(labels) == 0 || errors.As(err, &one) || errors.As(err, &many) {
		return err
	}
	return fmt.Errorf("at %s: %w", describe(labels), err)
}

func describe(labels []plan.Label) string {
	s := ""
	for i, l := range labels {
		if i > 0 {
			s += ", "
		}
		s += l.Key + " = " + l.Value
	}
	return s
}

// Resolved returns the text of the plan with every default spelled out. Of what
// a sweep varies it shows the first point, and the sweep. A nil catalog stands for
// catalog.Default().
func (p *Plan) Resolved(c *catalog.Catalog) (string, error) {
	points, err := p.points(c)
	if err != nil {
		return "", err
	}
	return p.resolved(points)
}

func (p *Plan) resolved(points []point) (string, error) {
	axes, err := plan.Axes(p.root)
	if err != nil {
		return "", input(err)
	}
	first := *points[0].spec.Plan
	first.Sweep = axes
	node, err := first.Node()
	if err != nil {
		return "", input(err)
	}
	// Where a sweep varies a section, the defaults of its first point are not those of
	// the others: such a section stays as it was written.
	for _, section := range []string{"data", "model", "train", "architecture", "nodes", "network", "schedule"} {
		written, ok := p.root.Get(section)
		if ok && slices.ContainsFunc(axes, func(a plan.Axis) bool { return inside(a.Path, section) }) {
			if err := node.Set(section, written.Clone()); err != nil {
				return "", input(err)
			}
		}
	}
	return node.YAML(), nil
}

// text is the plan of the point alone, for one run with a seed.
func (p *point) text(seed uint64) (string, error) {
	one := *p.spec.Plan
	one.Seed, one.Repeats, one.Sweep = seed, 1, nil
	node, err := one.Node()
	if err != nil {
		return "", err
	}
	return node.YAML(), nil
}

// inside reports whether a path of keys leads into a section of a plan.
func inside(path, section string) bool {
	rest, ok := strings.CutPrefix(path, section)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// locate has the error of a process, which knows only the last element of the plan's path, name the file as it was named
// here.
func (p *Plan) locate(err error) error {
	var wrong *InputError
	if !errors.As(err, &wrong) {
		return err
	}
	lines, located := strings.Split(wrong.Error(), "\n"), false
	for i, line := range lines {
		if place, ok := strings.CutPrefix(line, filepath.Base(p.file)+":"); ok {
			lines[i], located = p.file+":"+place, true
		}
	}
	if !located {
		return err
	}
	return input(errors.New(strings.Join(lines, "\n")))
}

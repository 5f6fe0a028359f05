package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/datasets/input"
)

func addDelays(c *Catalog) {
	d := &c.Delays
	d.Declare("constant", link.Constant{}, "always the same; a bare duration means this")
	type uniform struct {
		Range unit.DurationRange `plan:"range,required" doc:"from the shortest to the longest"`
	}
	d.Add(Define("uniform", "equally likely within a range", func() uniform { return uniform{} },
		func(_ *Catalog, s *uniform) (link.Delay, error) {
			return link.Uniform{Min: time.Duration(s.Range.Min), Max: time.Duration(s.Range.Max)}, nil
		}))
	d.Declare("normal", link.Normal{}, "normally distributed, truncated to min and max")
	d.Declare("exponential", link.Exponential{}, "min plus an exponentially distributed time, truncated to max")
	d.Declare("pareto", link.Pareto{}, "longer than x with probability (min/x)^alpha, truncated to max")
	d.Declare("log-normal", link.LogNormal{}, "min plus a time of this median whose natural logarithm is normally "+
		"distributed with standard deviation sigma, truncated to max")
	type walk struct {
		First unit.DurationRange `plan:"first,required" doc:"where the walk begins: drawn from this range"`
		link.RandomWalk
	}
	d.Add(Define("random-walk", "uniform at first, shifted by up to ±step after each use",
		func() walk { return walk{} },
		func(_ *Catalog, s *walk) (link.Delay, error) {
			s.FirstMin, s.FirstMax = time.Duration(s.First.Min), time.Duration(s.First.Max)
			return s.RandomWalk, nil
		}))
	type trace struct {
		File string `plan:"file,required" doc:"of lines time_s,delay_s, beside the plan unless its path is absolute"`
		link.Trace
		Source *syntax.Node `plan:",node"`
	}
	d.Add(Define("trace",
		"measured delays from a CSV file beside the plan: header time_s,delay_s (or ms, us), a point a line, # for "+
			"comments", func() trace { return trace{} },
		func(c *Catalog, s *trace) (_ link.Delay, err error) {
			s.Points, err = readTimes(c, s.Source.At("file"), &s.File, link.ReadTrace)
			if err == nil {
				c.addTrace(s.Source.At("file"), s.Points[0].At)
			}
			return s.Trace, err
		}))
}

// readBeside reads the text file that a plan names at n, beside the plan unless its path is
// absolute, without the byte order mark that some programs put before text. The path becomes
// absolute, at n too, so that the resolved plan can stand anywhere. A catalog with a folder reads
// in it alone, and leaves the path as it is.
func readBeside[T any](c *Catalog, n *syntax.Node, path *string, what string,
	read func(r io.Reader, name string) (T, error)) (content T, err error) {
	f, err := c.open(n, path)
	if err != nil {
		return content, syntax.Errorf(n, "the %s cannot be read: %w", what, err)
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	text, err := input.Text(f, "text")
	if err != nil {
		return content, syntax.Errorf(n, "the %s cannot be read: %s: %w", what, f.Name(), err)
	}
	if content, err = read(text, f.Name()); err != nil {
		return content, syntax.Errorf(n, "%w", err)
	}
	return content, nil
}

// readTimes reads a trace, and tells where its times are of another clock.
func readTimes[T any](c *Catalog, n *syntax.Node, path *string,
	read func(r io.Reader, name string) (T, time.Duration, error)) (T, error) {
	return readBeside(c, n, path, "trace", func(r io.Reader, name string) (T, error) {
		content, origin, err := read(r, name)
		if err == nil && origin > 0 {
			c.warn(n, "the times of the file are of another clock; they count from the first one, %.0f s (%s as Unix "+
				"time), when the run begins", origin.Seconds(), time.Unix(0, int64(origin)).UTC().Format(time.DateTime))
		}
		return content, err
	})
}

// warn adds a note about the setting at n to the plan that is being read, unless the plan has the note.
func (c *Catalog) warn(n *syntax.Node, format string, a ...any) {
	if c.reading != nil {
		c.reading.warn(n, format, a...)
	}
}

// addInstants adds the times in a file to the spec of the plan that is being read, with a note if they are
// after stop.time.
func (c *Catalog) addInstants(i plan.Instants) {
	if c.reading == nil {
		return
	}
	c.reading.Instants = append(c.reading.Instants, i)
	c.reading.note(c.reading.Plan.Stop.Late(i))
}

// addTrace adds the time of the first point of a trace.
func (c *Catalog) addTrace(n *syntax.Node, first time.Duration) {
	lost := fmt.Sprintf("the trace begins at %v, and never gets there; its first value holds throughout", first)
	c.addInstants(plan.Instants{At: n, Due: []unit.Duration{unit.Duration(first)}, Lost: lost})
}

func (c *Catalog) open(n *syntax.Node, path *string) (*os.File, error) {
	if c.Folder != nil {
		f, err := input.OpenFile(c.Folder, *path)
		if err != nil && c.FolderHint != "" {
			err = fmt.Errorf("%w; %s", err, c.FolderHint)
		}
		return f, err
	}
	name := *path
	if n.Pos.File != "--set" && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(n.Pos.File), name)
	}
	if absolute, err := filepath.Abs(name); err == nil {
		*path, n.Text = absolute, absolute
	}
	return input.OpenFile(input.Anywhere, name)
}

// place is where a file lies that open has opened.
func (c *Catalog) place(path string) string {
	if c.Folder != nil {
		return filepath.Join(c.Folder.Name(), path)
	}
	return path
}

// delay reads a delay: a duration, or a model.
func (c *Catalog) delay(n *syntax.Node) (link.Delay, *syntax.Node, error) {
	var d link.Delay
	var constant unit.Duration
	var err error
	resolved := n
	if n.Kind == syntax.Scalar {
		err = settings.Decode(n, &constant)
		d = link.Constant{Delay: time.Duration(constant)}
	} else {
		d, resolved, err = c.drawnDelay(n)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := d.Validate(); err != nil {
		return nil, nil, Located(n, err)
	}
	if walk, walks := d.(link.RandomWalk); walks && !walk.Bounded() {
		const messages = 10_000
		c.warn(n, "this random walk has no max, and drifts away: half of such links have a delay above %v after %d "+
			"messages; give it one, such as max: %v", walk.MedianAfter(messages).Round(time.Millisecond), messages,
			max(2*walk.FirstMax, walk.Min))
	}
	return d, resolved, nil
}

// drawing is what every delay model has beside its own settings.
type drawing struct {
	Draw string `plan:"draw" words:"message|node|link" doc:"when the delay is drawn: for each message; once for each node that sends, for all its links; or once for each direction of a link"`
}

// drawnDelay reads a delay model, and when it is drawn.
func (c *Catalog) drawnDelay(n *syntax.Node) (d link.Delay, resolved *syntax.Node, err error) {
	if d, resolved, err = c.Delays.read(c, n, "kind", "draw"); err != nil {
		return nil, nil, err
	}
	when, given := n.Get("draw")
	if !given {
		return d, resolved, nil
	}
	s := drawing{}
	if err := settings.Decode(when.As("draw"), &s); err != nil {
		return nil, nil, err
	}
	resolved = syntax.NewMap(append(resolved.Fields, syntax.Entry("draw", when))...)
	if s.Draw == "message" {
		return d, resolved, nil
	}
	if _, replayed := d.(link.Trace); replayed {
		return nil, nil, syntax.Errorf(when, "a trace is not drawn; accepted is draw: message, or to leave this out")
	}
	return link.Once{Of: d, PerNode: s.Draw == "node"}, resolved, nil
}

// linkRate reads a rate: bytes a second, or a process. It is nil if there is no bound.
func (c *Catalog) linkRate(n *syntax.Node) (r rate.Rate, resolved *syntax.Node, err error) {
	if n.Kind != syntax.Scalar {
		if kind, _ := n.Get("kind"); kind != nil && isMobileLine(kind.Text) {
			return nil, nil, syntax.Errorf(kind, "%s is a mobile line; write {kind: mobile, line: %s}", kind.Text,
				kind.Text)
		}
		if r, resolved, err = c.LinkRates.read(c, n, "kind"); err != nil {
			return nil, nil, err
		}
		if err = r.Validate(); err != nil {
			return nil, nil, Located(n, err)
		}
		return r, resolved, nil
	}
	var constant unit.ByteRate
	if err = constant.UnmarshalPlan(n); err == nil && constant > 0 {
		r = rate.Constant(constant)
	}
	return r, n, err
}

// Access is what all edges of a node share: rates, nil is unlimited, and what is added to their
// delays, nil is nothing.
type Access struct {
	Uplink, Downlink rate.Rate
	Delay            link.Delay
}

// access reads the rates of the nodes' uplinks and downlinks and their delays, those of a group
// once.
func (c *Catalog) access(s *Spec) error {
	rates, delays := shared[rate.Rate]{}, shared[link.Delay]{}
	s.Access = make([]Access, len(s.Plan.Nodes))
	for i := range s.Plan.Nodes {
		n, a := &s.Plan.Nodes[i], &s.Access[i]
		if err := cmp.Or(rates.read(&n.Uplink.Node, &a.Uplink, c.linkRate),
			rates.read(&n.Downlink.Node, &a.Downlink, c.linkRate),
			delays.read(&n.Delay, &a.Delay, c.accessDelay)); err != nil {
			return err
		}
	}
	return nil
}

// shared is what was read of the nodes of a plan, those of a group having the same syntax.
type shared[T any] map[*syntax.Node]struct {
	value    T
	resolved *syntax.Node
}

// read reads a setting of a node unless it is left out, and spells it out.
func (s shared[T]) read(n **syntax.Node, value *T, one func(*syntax.Node) (T, *syntax.Node, error)) error {
	if *n == nil {
		return nil
	}
	of, already := s[*n]
	if !already {
		var err error
		if of.value, of.resolved, err = one(*n); err != nil {
			return err
		}
		s[*n] = of
	}
	*n, *value = of.resolved, of.value
	return nil
}

// accessDelay reads the delay of a node's own line.
func (c *Catalog) accessDelay(n *syntax.Node) (link.Delay, *syntax.Node, error) {
	d, resolved, err := c.delay(n)
	if err != nil {
		return nil, nil, err
	}
	if err := link.CheckAccess(d); err != nil {
		return nil, nil, syntax.Errorf(n, "the delay cannot be a node's own: %w", err)
	}
	return d, resolved, nil
}

// network resolves the plan's links and what its schedule does to them.
func (c *Catalog) network(s *Spec) error {
	if err := c.access(s); err != nil {
		return err
	}
	p := s.Plan
	base := &p.Network.Default
	if base.Delay == nil {
		base.Delay = syntax.NewScalar("0ms")
	}
	var err error
	if s.Default, err = c.configure(base, link.Config{}); err != nil {
		if p.Network.Source == nil {
			return err
		}
		return Located(p.Network.Source.At("default"), err)
	}
	if err := c.sites(s); err != nil {
		return err
	}
	n := &p.Network
	entries := make([]entry, 0, len(n.Implied)+len(n.Links)+len(p.Schedule))
	for _, links := range [][]plan.LinkSpec{n.Implied, n.Links} {
		for i := range links {
			spec := &links[i]
			config, err := c.configure(&spec.LinkSettings, s.Default)
			if err != nil {
				return Located(spec.Source, err)
			}
			entries = append(entries, entry{Ends: spec.Ends, config: config})
		}
	}
	for _, change := range byTime(p.Schedule) {
		if time.Duration(change.At) > link.Horizon {
			return syntax.Errorf(change.Source.At("at"), "%v is later than a run can be; accepted is up to %v",
				change.At, unit.Duration(link.Horizon))
		}
		if !change.OfLinks() {
			continue
		}
		e, err := c.change(s, change)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	s.Links = newLinks(s.Default, p, entries)
	return s.Links.checkOutages()
}

// change reads what the schedule does to links.
func (c *Catalog) change(s *Spec, change *plan.Change) (e entry, err error) {
	changed := plan.LinkSettings{Delay: change.Delay, Loss: change.Loss, Source: change.Source}
	changed.Reorder = change.Reorder != nil && *change.Reorder
	if change.Rate != nil {
		changed.Rate = *change.Rate
	}
	e = entry{Ends: change.Ends(), change: change, at: time.Duration(change.At)}
	if e.config, err = c.configure(&changed, s.Default); err != nil {
		return e, Located(change.Source, err)
	}
	change.Delay = changed.Delay // with its defaults spelled out
	if change.Rate != nil {
		*change.Rate = changed.Rate
	}
	return e, nil
}

// configure lays settings over a base, and spells out their delay and rate. What they leave
// out is the base's; outages that they name stand instead of the base's.
func (c *Catalog) configure(l *plan.LinkSettings, base link.Config) (link.Config, error) {
	config := base
	settings.Overlay(&config, &l.Config, l.Source)
	if l.Delay != nil {
		d, resolved, err := c.delay(l.Delay)
		if err != nil {
			return config, err
		}
		config.Delay, l.Delay = d, resolved
	}
	if l.Rate.Node != nil {
		r, resolved, err := c.linkRate(l.Rate.Node)
		if err != nil {
			return config, err
		}
		config.Rate, l.Rate.Node = r, resolved
	}
	if l.Loss != nil {
		config.Loss = link.Loss(*l.Loss)
	}
	if l.Outages != nil {
		config.Outages, config.Intermittent = nil, link.Intermittent{}
	}
	for _, o := range l.Outages {
		if o.Random != nil {
			if config.Intermittent != (link.Intermittent{}) {
				return config, About("outages", errors.New("the outages name gilbert-elliott twice; a link goes down "+
					"and up at random by one pair of times"))
			}
			config.Intermittent = *o.Random
			continue
		}
		from := time.Duration(o.From)
		if from > link.Horizon || time.Duration(o.For) > link.Horizon-from {
			return config, About("outages", fmt.Errorf("an outage from %v for %v ends later than a run can; accepted "+
				"is an end up to %v", o.From, o.For, unit.Duration(link.Horizon)))
		}
		config.Outages = append(config.Outages, link.Outage{From: from, To: from + time.Duration(o.For)})
	}
	config.Outages = link.MergeOutages(config.Outages)
	return config, config.Validate()
}

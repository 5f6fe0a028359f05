package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Link is a directed edge that differs from the plan's default.
type Link struct {
	From, To string
	Config   link.Config
}

// Change gives an edge other settings at an instant.
type Change struct {
	At time.Duration
	Link
}

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
	d.Declare("exponential", link.Exponential{}, "min plus an exponentially distributed time")
	d.Declare("pareto", link.Pareto{}, "longer than x with probability (min/x)^alpha, truncated to max")
	d.Declare("log-normal", link.LogNormal{}, "min plus a time of this median whose natural logarithm is normally "+
		"distributed with standard deviation sigma")
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
			s.Points, err = readBeside(c, s.Source.At("file"), &s.File, "trace", link.ReadTrace)
			return s.Trace, err
		}))
}

// readBeside reads the file that a plan names at n, beside the plan unless its path is absolute.
// The path becomes absolute, at n too, so that the resolved plan can stand anywhere. A catalog with
// a folder reads in it alone, and leaves the path as it is.
func readBeside[T any](c *Catalog, n *syntax.Node, path *string, what string,
	read func(r io.Reader, name string) (T, error)) (content T, err error) {
	f, err := c.open(n, path)
	if err != nil {
		return content, syntax.Errorf(n, "the %s cannot be read: %w", what, err)
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	if content, err = read(f, f.Name()); err != nil {
		return content, syntax.Errorf(n, "%w", err)
	}
	return content, nil
}

func (c *Catalog) open(n *syntax.Node, path *string) (*os.File, error) {
	if c.Folder != nil {
		return c.Folder.Open(*path)
	}
	name := *path
	if n.Pos.File != "--set" && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(n.Pos.File), name)
	}
	if absolute, err := filepath.Abs(name); err == nil {
		*path, n.Text = absolute, absolute
	}
	return os.Open(name)
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
		d, resolved, err = c.Delays.read(c, n, "kind")
	}
	if err != nil {
		return nil, nil, err
	}
	if err := d.Validate(); err != nil {
		return nil, nil, Located(n, err)
	}
	return d, resolved, nil
}

// network resolves the plan's links and what its schedule does to them.
func (c *Catalog) network(s *Spec) error {
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
	names := p.Names()
	for i := range p.Network.Links {
		spec := &p.Network.Links[i]
		config, err := c.configure(&spec.LinkSettings, s.Default)
		if err != nil {
			return Located(spec.Source, err)
		}
		for from, to := range names.Pairs(spec.Ends) {
			if len(s.Links) == maxLinks {
				return syntax.Errorf(spec.Source,
					"the links name more than %d directed pairs; say under default what all have in common", maxLinks)
			}
			s.Links = append(s.Links, Link{From: p.Nodes[from].Name, To: p.Nodes[to].Name, Config: config})
		}
	}
	return c.schedule(s, names)
}

// configure lays settings over a base, and spells out their delay. What they leave
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
	config.Outages = merge(config.Outages)
	return config, config.Validate()
}

// merge sorts outages and joins those that touch.
func merge(outages []link.Outage) []link.Outage {
	sorted := slices.SortedFunc(slices.Values(outages),
		func(a, b link.Outage) int { return cmp.Compare(a.From, b.From) })
	var merged []link.Outage
	for _, o := range sorted {
		if n := len(merged); n > 0 && o.From <= merged[n-1].To {
			merged[n-1].To = max(merged[n-1].To, o.To)
			continue
		}
		merged = append(merged, o)
	}
	return merged
}

// pair is a directed pair of nodes.
type pair struct{ from, to string }

// schedule turns the plan's schedule into changes of edges. Outages are known from
// the start, because a link that goes down must know when it comes up.
func (c *Catalog) schedule(s *Spec, names plan.Names) error {
	current := map[pair]link.Config{}
	for _, l := range s.Links {
		current[pair{l.From, l.To}] = l.Config
	}
	down := map[pair]time.Duration{}
	var order []pair // of pairs with outages, for a fixed order
	edge := func(k pair) link.Config {
		if config, ok := current[k]; ok {
			return config
		}
		return s.Default
	}
	outages := map[pair][]link.Outage{}
	for _, change := range byTime(s.Plan.Schedule) {
		at := time.Duration(change.At)
		if at > link.Horizon {
			return syntax.Errorf(change.Source.At("at"), "%v is later than a run can be; accepted is up to %v",
				change.At, unit.Duration(link.Horizon))
		}
		if !change.OfLinks() {
			continue
		}
		changed := plan.LinkSettings{Delay: change.Delay, Loss: change.Loss, Source: change.Source}
		if change.Rate != nil {
			changed.Rate = float64(*change.Rate)
		}
		for a, b := range names.Pairs(change.Ends()) {
			from, to := s.Plan.Nodes[a].Name, s.Plan.Nodes[b].Name
			k := pair{from, to}
			switch _, isDown := down[k]; {
			case change.Do == plan.Down && !isDown:
				down[k] = at
				order = append(order, k)
			case change.Do == plan.Up && !isDown:
				return syntax.Errorf(change.Source.At("do"), "the link from %s to %s is not down at %v", from, to, at)
			case change.Do == plan.Up && down[k] == at: // it is not down for any time
				delete(down, k)
			case change.Do == plan.Up:
				outages[k] = append(outages[k], link.Outage{From: down[k], To: at})
				delete(down, k)
			}
			config, err := c.configure(&changed, edge(k))
			if err != nil {
				return Located(change.Source, err)
			}
			current[k] = config
			s.Changes = append(s.Changes, Change{At: at, Link: Link{From: from, To: to, Config: config}})
		}
		change.Delay = changed.Delay // with its defaults spelled out
	}
	for _, k := range order {
		if at, isDown := down[k]; isDown {
			outages[k] = append(outages[k], link.Outage{From: at, To: link.Forever})
			delete(down, k)
		}
	}
	return s.putOutages(order, outages)
}

// putOutages makes the scheduled outages known to every configuration of an edge.
func (s *Spec) putOutages(order []pair, outages map[pair][]link.Outage) error {
	configs := map[pair][]*link.Config{}
	for i := range s.Changes {
		k := pair{s.Changes[i].From, s.Changes[i].To}
		configs[k] = append(configs[k], &s.Changes[i].Config)
	}
	named := map[pair]bool{}
	for i := range s.Links {
		k := pair{s.Links[i].From, s.Links[i].To}
		configs[k], named[k] = append(configs[k], &s.Links[i].Config), true
	}
	for _, k := range order {
		extra := outages[k]
		delete(outages, k)
		for _, config := range configs[k] {
			config.Outages = merge(append(slices.Clip(config.Outages), extra...))
		}
		if !named[k] {
			config := s.Default
			config.Outages = merge(append(slices.Clip(config.Outages), extra...))
			s.Links, named[k] = append(s.Links, Link{From: k.from, To: k.to, Config: config}), true
		}
		if len(extra) > maxOutages {
			return fmt.Errorf("the link from %s to %s goes down %d times, at most %d", k.from, k.to, len(extra),
				maxOutages)
		}
	}
	return nil
}

// maxLinks bounds the directed pairs that the links of a plan name.
const maxLinks = 1 << 20

// maxOutages bounds the outages that a schedule gives one link.
const maxOutages = 100_000

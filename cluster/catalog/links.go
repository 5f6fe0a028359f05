package catalog

import (
	"cmp"
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
	type constant struct {
		Delay unit.Duration `plan:"delay,required" doc:"of every message"`
	}
	c.Delays.Add(Define("constant", "always the same; a bare duration means this",
		func() constant { return constant{} },
		func(_ *Catalog, s *constant) (link.Delay, error) {
			return link.Constant{Delay: time.Duration(s.Delay)}, nil
		}))
	type uniform struct {
		Range unit.DurationRange `plan:"range,required" doc:"from the shortest to the longest"`
	}
	c.Delays.Add(Define("uniform", "equally likely within a range", func() uniform { return uniform{} },
		func(_ *Catalog, s *uniform) (link.Delay, error) {
			return link.Uniform{Min: time.Duration(s.Range.Min), Max: time.Duration(s.Range.Max)}, nil
		}))
	type normal struct {
		Mean unit.Duration `plan:"mean,required" doc:"before it is truncated"`
		Std  unit.Duration `plan:"std,required" doc:"standard deviation, before it is truncated"`
		Min  unit.Duration `plan:"min" doc:"the shortest"`
		Max  unit.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
	}
	c.Delays.Add(Define("normal", "normally distributed, truncated to min and max", func() normal { return normal{} },
		func(_ *Catalog, s *normal) (link.Delay, error) {
			return link.Normal{Mean: time.Duration(s.Mean), Std: time.Duration(s.Std), Min: time.Duration(s.Min),
				Max: time.Duration(s.Max)}, nil
		}))
	type exponential struct {
		Mean unit.Duration `plan:"mean,required" doc:"of what is added to min"`
		Min  unit.Duration `plan:"min" doc:"the shortest"`
		Max  unit.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
	}
	c.Delays.Add(Define("exponential", "min plus an exponentially distributed time",
		func() exponential { return exponential{} },
		func(_ *Catalog, s *exponential) (link.Delay, error) {
			return link.Exponential{Mean: time.Duration(s.Mean), Min: time.Duration(s.Min), Max: time.Duration(s.Max)},
				nil
		}))
	addHeavyTails(c)
	addDelaysWithMemory(c)
}

// addDelaysWithMemory adds delays that depend on the one before or on the time.
func addDelaysWithMemory(c *Catalog) {
	type walk struct {
		First unit.DurationRange `plan:"first,required" doc:"where the walk begins: drawn from this range"`
		Step  unit.Duration      `plan:"step,required" doc:"the most by which the delay changes from one message to the next"`
		Min   unit.Duration      `plan:"min" doc:"the shortest; the walk goes no lower"`
		Max   unit.Duration      `plan:"max,omitzero" doc:"the longest; default: no bound"`
	}
	c.Delays.Add(Define("random-walk", "uniform at first, shifted by up to ±step after each use",
		func() walk { return walk{} },
		func(_ *Catalog, s *walk) (link.Delay, error) {
			return link.RandomWalk{
				FirstMin: time.Duration(s.First.Min), FirstMax: time.Duration(s.First.Max),
				Step: time.Duration(s.Step), Min: time.Duration(s.Min), Max: time.Duration(s.Max),
			}, nil
		}))
	type trace struct {
		File        string       `plan:"file,required" doc:"of lines time_s,delay_s, beside the plan unless its path is absolute"`
		Interpolate bool         `plan:"interpolate" doc:"whether delays change linearly from line to line"`
		Repeat      bool         `plan:"repeat" doc:"whether the trace begins anew after its end"`
		Source      *syntax.Node `plan:",node"`
	}
	c.Delays.Add(Define("trace",
		"measured delays from a CSV file beside the plan: header time_s,delay_s (or ms, us), a point a line, # for "+
			"comments", func() trace { return trace{} },
		func(c *Catalog, s *trace) (link.Delay, error) {
			points, err := readBeside(c, s.Source.At("file"), &s.File, "trace", link.ReadTrace)
			return link.Trace{Points: points, Interpolate: s.Interpolate, Repeat: s.Repeat}, err
		}))
}

// addHeavyTails adds delays of which a few are much longer than the rest.
func addHeavyTails(c *Catalog) {
	type pareto struct {
		Min   unit.Duration `plan:"min,required" doc:"the shortest"`
		Alpha float64       `plan:"alpha,required" doc:"the shape: the smaller, the heavier the tail; without a mean up to 1"`
		Max   unit.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
	}
	c.Delays.Add(Define("pareto", "longer than x with probability (min/x)^alpha, truncated to max",
		func() pareto { return pareto{} },
		func(_ *Catalog, s *pareto) (link.Delay, error) {
			return link.Pareto{Min: time.Duration(s.Min), Alpha: s.Alpha, Max: time.Duration(s.Max)}, nil
		}))
	type logNormal struct {
		Median unit.Duration `plan:"median,required" doc:"the time beyond min that half of the messages stay below"`
		Sigma  float64       `plan:"sigma,required" doc:"standard deviation of the natural logarithm of that time"`
		Min    unit.Duration `plan:"min" doc:"added to every delay"`
		Max    unit.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
	}
	c.Delays.Add(Define("log-normal",
		"min plus a time of this median whose natural logarithm is normally distributed with standard deviation sigma",
		func() logNormal { return logNormal{} },
		func(_ *Catalog, s *logNormal) (link.Delay, error) {
			return link.LogNormal{Median: time.Duration(s.Median), Sigma: s.Sigma, Min: time.Duration(s.Min),
				Max: time.Duration(s.Max)}, nil
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
	for i := range p.Network.Links {
		spec := &p.Network.Links[i]
		config, err := c.configure(&spec.LinkSettings, s.Default)
		if err != nil {
			return Located(spec.Source, err)
		}
		for from, to := range p.Pairs(spec.Ends) {
			if len(s.Links) == maxLinks {
				return syntax.Errorf(spec.Source,
					"the links name more than %d directed pairs; say under default what all have in common", maxLinks)
			}
			s.Links = append(s.Links, Link{From: from, To: to, Config: config})
		}
	}
	return c.schedule(s)
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
		config.Loss = loss(l.Loss)
	}
	if l.Outages != nil {
		config.Outages, config.Intermittent = nil, link.Intermittent{}
	}
	for _, o := range l.Outages {
		if o.Kind != "" {
			if config.Intermittent != (link.Intermittent{}) {
				return config, About("outages", fmt.Errorf("the outages name %s twice; a link goes down and up at "+
					"random by one pair of times", o.Kind))
			}
			config.Intermittent = link.Intermittent{Up: time.Duration(o.Up), Down: time.Duration(o.Down)}
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

func loss(l *plan.Loss) link.Loss {
	made := link.Loss{
		Probability: float64(l.Probability), Drop: l.Kind == plan.Drop,
		Timeout: time.Duration(l.Timeout), Attempts: l.Attempts,
	}
	if b := l.Bursts; b != nil {
		made.Bursts = link.Bursts{P: float64(b.P), R: float64(b.R), H: float64(b.H), K: float64(b.K)}
	}
	return made
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
func (c *Catalog) schedule(s *Spec) error {
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
		for from, to := range s.Plan.Pairs(change.Ends()) {
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
	for _, k := range order {
		extra := outages[k]
		delete(outages, k)
		named := false
		for i := range s.Links {
			if l := &s.Links[i]; l.From == k.from && l.To == k.to {
				l.Config.Outages = merge(append(slices.Clip(l.Config.Outages), extra...))
				named = true
			}
		}
		if !named {
			config := s.Default
			config.Outages = merge(append(slices.Clip(config.Outages), extra...))
			s.Links = append(s.Links, Link{From: k.from, To: k.to, Config: config})
		}
		for i := range s.Changes {
			if l := &s.Changes[i]; l.From == k.from && l.To == k.to {
				l.Config.Outages = merge(append(slices.Clip(l.Config.Outages), extra...))
			}
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

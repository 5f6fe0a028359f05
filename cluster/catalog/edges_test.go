package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// drawnNetwork is a plan's nodes, links and schedule.
type drawnNetwork struct {
	nodes    []string // entries of the plan
	names    []string // of nodes, groups and everyone
	links    []string
	schedule []string
}

func drawNetwork(t *rapid.T) (d drawnNetwork) {
	d.names = []string{`"*"`, `"*"`}
	for i := range rapid.IntRange(2, 4).Draw(t, "entries") {
		name, count := fmt.Sprintf("n%d-", i), rapid.IntRange(0, 3).Draw(t, "count")
		d.names = append(d.names, name)
		if count == 0 {
			d.nodes = append(d.nodes, fmt.Sprintf("{name: %s}", name))
			continue
		}
		d.nodes = append(d.nodes, fmt.Sprintf("{name: %s, count: %d}", name, count))
		for k := range count {
			d.names = append(d.names, fmt.Sprintf("%s%d", name, k+1))
		}
	}
	name, number := rapid.SampledFrom(d.names), rapid.IntRange(1, 9)
	ends := func(both string) string {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		if rapid.Bool().Draw(t, "both") {
			return fmt.Sprintf("%s: [%s, %s]", both, a, b)
		}
		return fmt.Sprintf("from: %s, to: %s", a, b)
	}
	for range rapid.IntRange(0, 4).Draw(t, "links") {
		of := rapid.SampledFrom([]string{"delay: %dms", "rate: %d B/s", "outages: [{from: %dms, for: 2ms}]"})
		setting := fmt.Sprintf(of.Draw(t, "of"), number.Draw(t, "value"))
		d.links = append(d.links, fmt.Sprintf("{%s, %s}", ends("between"), setting))
	}
	for range rapid.IntRange(0, 5).Draw(t, "changes") {
		do := rapid.SampledFrom([]string{"delay: 7ms", "rate: 77 B/s", "do: down", "do: down", "do: up"}).Draw(t, "do")
		d.schedule = append(d.schedule, fmt.Sprintf("{at: %dms, %s, %s}", number.Draw(t, "at"), ends("link"), do))
	}
	return d
}

func (d *drawnNetwork) text() string {
	return "data: {set: synthetic-traffic}\nmodel: {kind: mlp, layers: [93, 5]}\narchitecture: {kind: local}\n" +
		"stop: {epochs: 1}\nnodes: [" + strings.Join(d.nodes, ", ") + "]\nnetwork: {default: {delay: 20ms, " +
		"outages: [{from: 1ms, for: 1ms}]}, links: [" + strings.Join(d.links, ", ") + "]}\nschedule: [" +
		strings.Join(d.schedule, ", ") + "]\n"
}

// read reads the plan; nil if a node is at both ends of a link.
func (d *drawnNetwork) read(t testing.TB) *plan.Plan {
	p, err := plan.ReadPlan(parse(t, "plan.yaml", d.text()))
	if err != nil {
		return nil
	}
	return p
}

// walked is what one pair of nodes is like by a walk over all entries.
type walked struct {
	delay []float64 // at the beginning, and after each change
	rate  []rate.Rate
	down  func(at time.Duration) bool
}

// names reports whether the ends are about a pair of nodes.
func names(e plan.Ends, from, to *plan.NodeSpec) (named bool) {
	answers := func(n *plan.NodeSpec, name string) bool { return name == "*" || name == n.Name || name == n.Group }
	for _, d := range e.Directions() {
		named = named || answers(from, d[0]) && answers(to, d[1])
	}
	return named
}

// bound is a rate that is always the same.
func bound(n plan.Rate) rate.Rate {
	var written unit.ByteRate
	if n.Node != nil && written.UnmarshalPlan(n.Node) == nil && written > 0 {
		return rate.Constant(written)
	}
	return nil
}

// walk goes through the whole plan for one pair of nodes. upright is the first entry that has the
// link come up that is not down, or -1.
func walk(p *plan.Plan, from, to *plan.NodeSpec) (w walked, upright int) {
	about := func(e plan.Ends) bool { return names(e, from, to) }
	milliseconds := func(text string) (ms float64) {
		_, _ = fmt.Sscanf(text, "%fms", &ms)
		return ms
	}
	delay, limit, outages := 20.0, rate.Rate(nil), p.Network.Default.Outages
	for i := range p.Network.Links {
		if l := &p.Network.Links[i]; about(l.Ends) {
			delay, limit, outages = 20, bound(l.Rate), p.Network.Default.Outages
			if n, given := l.Source.Get("delay"); given {
				delay = milliseconds(n.Text)
			}
			if _, given := l.Source.Get("outages"); given {
				outages = l.Outages
			}
		}
	}
	w.delay, w.rate = []float64{delay}, []rate.Rate{limit}
	schedule := byTime(p.Schedule)
	isDown := func(at time.Duration, until int) (down bool) {
		for _, c := range schedule[:until] {
			if about(c.Ends()) && time.Duration(c.At) <= at && c.Do != "" {
				down = c.Do == plan.Down
			}
		}
		return down
	}
	upright = -1
	for i, c := range schedule {
		if !about(c.Ends()) {
			continue
		}
		if c.Delay != nil {
			delay = 7
		}
		if c.Rate != nil {
			limit = bound(*c.Rate)
		}
		w.delay, w.rate = append(w.delay, delay), append(w.rate, limit)
		if c.Do == plan.Up && !isDown(time.Duration(c.At), i) && upright < 0 {
			upright = i
		}
	}
	w.down = func(at time.Duration) bool {
		for _, o := range outages {
			if at >= time.Duration(o.From) && at < time.Duration(o.From+o.For) {
				return true
			}
		}
		return isDown(at, len(schedule))
	}
	return w, upright
}

// alike reports where a course is not as the walk has found.
func (w *walked) alike(c *Course) error {
	configs := []link.Config{c.Config}
	for _, change := range c.Changes {
		configs = append(configs, change.Config)
	}
	if len(configs) != len(w.delay) {
		return fmt.Errorf("%d configurations, want %d", len(configs), len(w.delay))
	}
	for i, config := range configs {
		if err := config.Validate(); err != nil {
			return err
		}
		if got := config.Delay.(link.Constant).Delay.Seconds() * 1000; got != w.delay[i] || config.Rate != w.rate[i] {
			return fmt.Errorf("configuration %d: delay %v, rate %v, want %v, %v", i, got, config.Rate, w.delay[i],
				w.rate[i])
		}
		for at := ms / 2; at < 12*ms; at += ms {
			down := slices.ContainsFunc(config.Outages, func(o link.Outage) bool { return at >= o.From && at < o.To })
			if down != w.down(at) {
				return fmt.Errorf("configuration %d: down at %v is %v", i, at, down)
			}
		}
	}
	return nil
}

func TestLinksAreWhatAWalkOverAllPairsAndEntriesFinds(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		d := drawNetwork(t)
		p := d.read(outer)
		if p == nil {
			return
		}
		s, err := Default().Read(p)
		first, where := len(p.Schedule), ""
		for a := range p.Nodes {
			for b := range p.Nodes {
				w, upright := walk(p, &p.Nodes[a], &p.Nodes[b])
				if a == b {
					continue
				}
				if upright >= 0 && upright < first {
					first, where = upright, fmt.Sprintf("the link from %s to %s is not down", p.Nodes[a].Name,
						p.Nodes[b].Name)
				}
				if err == nil {
					if err := w.alike(s.Links.Between(int32(a), int32(b))); err != nil {
						t.Fatalf("%s to %s: %v\n%s", p.Nodes[a].Name, p.Nodes[b].Name, err, d.text())
					}
				}
			}
		}
		if (err != nil) != (where != "") || err != nil && !strings.Contains(err.Error(), where) {
			t.Fatalf("got %v, want %q\n%s", err, where, d.text())
		}
	})
}

// A network that has seen some of the changes is what the course says after them.
func TestANetworkFollowsTheSchedule(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		d := drawNetwork(t)
		p := d.read(outer)
		if p == nil {
			return
		}
		s, err := Default().Read(p)
		if err != nil {
			return
		}
		names := make([]string, len(p.Nodes))
		for i := range names {
			names[i] = p.Nodes[i].Name
		}
		n, current := link.New(1, names), s.Links.Start()
		if current == nil {
			return
		}
		n.SetDefault(s.Default)
		n.SetConfigs(current.Config)
		changes := current.Changes(n)
		happens := []int{0} // the entry that each change comes from, plus 1
		for i, c := range byTime(p.Schedule) {
			if p.Names().Count(c.Ends()) > 0 {
				happens = append(happens, len(p.Network.Links)+i+1)
			}
		}
		for done := range len(changes) + 1 {
			for a, b := range p.Names().Pairs(plan.Ends{From: "*", To: "*"}) {
				course := s.Links.Between(a, b)
				want := course.Config
				for k, at := range course.entries {
					if int(at) < happens[done] {
						want = course.Changes[k].Config
					}
				}
				if rapid.Bool().Draw(t, "used") && n.Edge(a, b).Delay(0) != want.Delay.(link.Constant).Delay {
					t.Fatalf("after %d changes %s to %s takes %v, want %v\n%s", done, names[a], names[b],
						n.Edge(a, b).Delay(0), want.Delay, d.text())
				}
			}
			if done < len(changes) {
				changes[done].Apply()
			}
		}
	})
}

package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/cluster/record/goodput"
)

// Hurts reports whether anything disturbs runs of a plan: faults, or something in its schedule that
// Undisturbed leaves out.
func Hurts(p *plan.Plan) bool { return p.Faults != nil || len(listed(p.Schedule, p)) > 0 }

// Undisturbed returns a plan without faults and without what hurts of its schedule: what happens to
// nodes, but for the first join of one that is absent at first, cuts, and links that go down and
// come up. Nodes are there when they are available, and the network stays as the plan describes it:
// with the losses and outages of its links, and with all later delays, rates, losses and
// topologies.
func Undisturbed(p *plan.Plan) *plan.Plan {
	calm := *p
	calm.Faults, calm.Schedule = nil, []plan.Change{}
	arrives := arrivals(p)
	for i, c := range p.Schedule {
		switch {
		case c.Cut != nil || c.Node != "" && !arrives[i]:
			continue
		case c.OfLinks():
			c.Do = ""
			if c.Delay == nil && c.Rate == nil && c.Loss == nil && c.Reorder == nil {
				continue
			}
		}
		calm.Schedule = append(calm.Schedule, c)
	}
	return &calm
}

// arrivals says of each change of the schedule whether it is the first of its nodes, a join. Of a
// group of which some members were there before it is none.
func arrivals(p *plan.Plan) []bool {
	absent, named := p.Absent(), p.Names()
	seen := make([]bool, len(p.Nodes))
	order := make([]int, len(p.Schedule))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Schedule[a].At, p.Schedule[b].At) })
	arrives := make([]bool, len(p.Schedule))
	for _, i := range order {
		c := &p.Schedule[i]
		nodes := named[c.Node]
		arrives[i] = c.Do == plan.Join && len(nodes) > 0
		for _, n := range nodes {
			arrives[i] = arrives[i] && absent[n] && !seen[n]
			seen[n] = true
		}
	}
	return arrives
}

// List are the faults of a plan that Schedule has returned, in the order of time: what hurts of the
// changes before the n-th, which its schedule says, and those from there on, which were drawn.
func List(scheduled *plan.Plan, n int) []goodput.Fault {
	all := listed(scheduled.Schedule[:n], scheduled)
	for _, f := range listed(scheduled.Schedule[n:], scheduled) {
		f.Drawn = true
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b goodput.Fault) int { return cmp.Compare(a.At, b.At) })
	return all
}

// listed are those of some changes of a plan that hurt, in their order.
func listed(changes []plan.Change, p *plan.Plan) (all []goodput.Fault) {
	goes := comingAndGoing(p)
	for i := range changes {
		c := &changes[i]
		f := goodput.Fault{At: seconds(c.At), What: c.Do, Factor: c.Factor}
		switch {
		case c.Cut != nil:
			f.What, f.Nodes, f.Until = "cut", c.Cut[0], seconds(c.At+c.For)
		case c.OfLinks() && c.Do == plan.Down:
			f.Nodes, f.Until = ends(c), again(changes[i:], func(o *plan.Change) bool {
				return o.OfLinks() && o.Do == plan.Up && slices.Equal(ends(o), ends(c))
			})
		case c.Node == "" || c.Do == plan.Join || goes[c.Node]:
			continue
		default:
			f.Nodes = []string{c.Node}
			if f.Until = seconds(c.At + c.Notice + c.For); c.For == 0 {
				f.Until = again(p.Schedule, func(o *plan.Change) bool {
					return o.Node == c.Node && o.Do == plan.Join && o.At > c.At
				})
			}
		}
		all = append(all, f)
	}
	return all
}

// again is when the first of some changes comes that is asked for; 0 if none does.
func again(changes []plan.Change, is func(*plan.Change) bool) (at float64) {
	for i := range changes {
		if is(&changes[i]) && (at == 0 || seconds(changes[i].At) < at) {
			at = seconds(changes[i].At)
		}
	}
	return at
}

// ends are the names at the ends of the links that change.
func ends(c *plan.Change) []string {
	if c.Link != nil {
		return c.Link
	}
	return []string{c.From, c.To}
}

func seconds(d unit.Duration) float64 { return time.Duration(d).Seconds() }

// maxNamed is how many nodes of a fault are named.
const maxNamed = 4

// Describe says what a fault is in a few words: "12.3 s: crash of w1 until 42.3 s".
func Describe(f *goodput.Fault) string {
	names := f.Nodes
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("%.4g s: %s of %s", f.At, f.What, strings.Join(names, ", "))
	if f.Factor > 0 {
		text += fmt.Sprintf(" by %.4g", f.Factor)
	}
	if f.Until > 0 {
		text += fmt.Sprintf(" until %.4g s", f.Until)
	}
	return text
}

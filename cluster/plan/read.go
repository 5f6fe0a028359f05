package plan

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/gradwire/gradwire/cluster/naming"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// ReadPlan decodes and checks one point's tree: every default filled in, groups written out as
// their members, every name that a link uses known. A sweep in it is read but not carried out; see
// [Points].
//
// The error is an [*Error] or [Errors], each at the offending value, also for values that a sweep
// or --set put there.
func ReadPlan(root *syntax.Node) (*Plan, error) {
	p := Default()
	if root != nil {
		p.Name = nameFromFile(root.Pos.File)
	}
	c := check{root: root}
	if err := settings.Decode(root, p); err != nil {
		return nil, c.checkTree(syntax.Flatten(root, err))
	}
	c.top(p)
	p.Nodes = c.expand(p.Nodes)
	if err := syntax.Join(c.errs); err != nil {
		return nil, err
	}
	c.names(p)
	c.network(p)
	c.evaluate(p)
	c.stop()
	c.schedule(p)
	c.available(p)
	c.faults(p)
	if err := syntax.Join(c.errs); err != nil {
		return nil, err
	}
	return p, nil
}

// checkTree adds errors to the decoding errors of a plan: the errors of checks that need only its tree.
func (c *check) checkTree(errs syntax.Errors) error {
	if c.root == nil || c.root.Kind != syntax.Map {
		return syntax.Join(errs)
	}
	network := c.root.At("network")
	c.delay(network.At("default"))
	for _, l := range network.At("links").Items {
		c.delay(l)
	}
	if _, given := c.root.Get("stop"); !given || c.root.At("stop").Kind == syntax.Map {
		c.stop()
	}
	for _, change := range c.root.At("schedule").Items {
		c.checkAction(change)
	}
	for _, e := range c.errs {
		samePlace := func(o *syntax.Error) bool { return o.Path != "" && o.Path == e.Path }
		if !slices.ContainsFunc(errs, samePlace) {
			errs = append(errs, e)
		}
	}
	return syntax.Join(errs)
}

func nameFromFile(file string) string {
	base := filepath.Base(file)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	if nameProblem(base) != "" {
		return "plan"
	}
	return base
}

// nameProblem says what keeps name from naming a plan and the folder of its results.
func nameProblem(name string) string {
	switch {
	case name == "" || len(name) > 100:
		return "has not 1 to 100 bytes"
	case strings.Trim(name, ".") == "":
		return "consists of dots only"
	case strings.ContainsAny(name, `/\:*?"<>|`):
		return `has one of / \ : * ? " < > | in it`
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has a character in it that cannot be printed"
	}
	return ""
}

// check collects what is wrong with a decoded plan.
type check struct {
	root  *syntax.Node
	errs  syntax.Errors
	known []string                // names that a link may use, in the order of the file, groups before their members
	first map[string]*syntax.Node // where each of them was given
	group map[string]bool
}

func (c *check) errorf(n *syntax.Node, format string, args ...any) {
	if len(c.errs) < syntax.MaxErrors {
		c.errs = append(c.errs, syntax.Errorf(n, format, args...))
	}
}

func (c *check) top(p *Plan) {
	if problem := nameProblem(p.Name); problem != "" {
		c.errorf(c.root.At("name"), "the name %s %s; it also names the folder of the results", syntax.Quote(p.Name),
			problem)
	}
	if p.Detect > MaxDetect {
		c.errorf(c.root.At("detect"), "a crash noticed after %s; accepted is up to %s", p.Detect, MaxDetect)
	}
	for _, key := range []string{"data", "model", "train", "architecture"} {
		if n, ok := c.root.Get(key); ok && n.Kind == syntax.Null {
			c.errorf(n, "%s has no value", key)
		}
	}
	if len(p.Nodes) == 0 {
		c.errorf(c.root.At("nodes"), "there are no nodes; give at least one, such as {name: server, role: server}")
	}
}

// expand writes groups out as their members.
func (c *check) expand(nodes []NodeSpec) []NodeSpec {
	total := 0
	for i := range nodes {
		if total += nodes[i].size(); total > MaxNodeCount {
			c.errorf(c.root.At("nodes"), "the plan has more than %d nodes", MaxNodeCount)
			return nil
		}
	}
	out := make([]NodeSpec, 0, total)
	for _, spec := range nodes {
		if spec.Count == nil {
			out = append(out, spec)
			continue
		}
		count := *spec.Count
		spec.Count, spec.Group = nil, spec.Name
		for i := range count {
			spec.Name = memberName(spec.Group, i)
			out = append(out, spec)
		}
	}
	return out
}

// size is how many nodes an entry of the plan stands for, up to one more than there may be.
func (s *NodeSpec) size() int {
	if s.Count == nil {
		return 1
	}
	return min(*s.Count, MaxNodeCount+1)
}

// names checks the names of nodes and groups, and notes them.
func (c *check) names(p *Plan) {
	c.first, c.group = make(map[string]*syntax.Node, len(p.Nodes)), map[string]bool{}
	claim := func(name string, at *syntax.Node) {
		if before, twice := c.first[name]; twice {
			c.errorf(at, "the name %s is given twice; it stands already in line %d", syntax.Quote(name),
				before.Pos.Line)
			return
		}
		c.first[name] = at
		c.known = append(c.known, name)
	}
	for i, n := range p.Nodes {
		at := n.Source.At("name")
		if n.Group != "" && (i == 0 || p.Nodes[i-1].Source != n.Source) {
			c.group[n.Group] = true
			claim(n.Group, at)
		}
		if problem := nodeNameProblem(n.Name); problem != "" {
			c.errorf(at, "%s %s", syntax.Quote(n.Name), problem)
			continue
		}
		claim(n.Name, at)
	}
}

func nodeNameProblem(name string) string {
	switch name {
	case Coordinator:
		return "is the name of the run's coordinator; give the node another"
	case "nonhost":
		return "is what protoactor calls an address of no node; give the node another name"
	}
	return naming.Problem(name)
}

func (c *check) network(p *Plan) {
	network := c.root.At("network")
	if p.Network.None {
		c.bare(p)
		return
	}
	c.delay(network.At("default"))
	c.sites(p)
	for _, l := range p.Network.Links {
		c.delay(l.Source)
		c.ends(l.Source, l.Ends, "between")
	}
}

// bare checks that nothing asks for links that are not emulated.
func (c *check) bare(p *Plan) {
	const without = "%s, where network is none and nothing is emulated; leave this out, or describe a network"
	for i, n := range p.Nodes {
		if i > 0 && p.Nodes[i-1].Source == n.Source {
			continue // of the same group
		}
		if !n.Uplink.Equal(Unlimited().Node) {
			c.errorf(n.Source.At("uplink"), without, "this limits what leaves a node")
		}
		if !n.Downlink.Equal(Unlimited().Node) {
			c.errorf(n.Source.At("downlink"), without, "this limits what reaches a node")
		}
		if n.Delay != nil {
			c.errorf(n.Source.At("delay"), without, "this delays what a node sends and receives")
		}
	}
	for _, change := range p.Schedule {
		if change.OfLinks() || change.Cut != nil {
			c.errorf(change.Source, without, "this changes a link")
		}
	}
}

// delay checks the delay of the map n as far as it needs no names of delay models.
func (c *check) delay(n *syntax.Node) {
	delay, ok := n.Get("delay")
	if !ok || delay.Kind == syntax.Map {
		return
	}
	var d unit.Duration
	if err := d.UnmarshalPlan(delay); err != nil {
		c.errs = append(c.errs, syntax.Flatten(delay, err)...)
	}
}

// ends checks that a link's ends are given in one of the two ways and are known; both is the key
// for both directions.
func (c *check) ends(n *syntax.Node, e Ends, both string) {
	between := n.At(both)
	switch {
	case e.Between != nil && (e.From != "" || e.To != ""):
		c.errorf(between, "%s gives both directions; from and to give one; use either", both)
	case e.Between != nil && len(e.Between) != 2:
		c.errorf(between, "%s has %d names; a link has two ends: [a, b]", both, len(e.Between))
	case e.Between != nil:
		c.pair(n, between.Items[0], between.Items[1])
	case e.From == "" || e.To == "":
		c.errorf(n, "a link needs its ends: %s: [a, b] for both directions, or from: a and to: b for one", both)
	default:
		c.pair(n, n.At("from"), n.At("to"))
	}
}

func (c *check) pair(n, a, b *syntax.Node) {
	for _, end := range []*syntax.Node{a, b} {
		if end.Text != Everyone {
			c.named(end)
		}
	}
	if a.Text == b.Text && a.Text != Everyone && !c.group[a.Text] {
		c.errorf(b, "%s is at both ends; a link joins two nodes", syntax.Quote(b.Text))
	}
}

// named checks that n names a node or a group.
func (c *check) named(n *syntax.Node) {
	if _, known := c.first[n.Text]; !known && len(c.errs) < syntax.MaxErrors {
		c.errorf(n, "there is no node named %s%s", syntax.Quote(n.Text), syntax.Suggest(n.Text, "known", c.known))
	}
}

func (c *check) evaluate(p *Plan) {
	if p.Evaluate.Lag != nil && *p.Evaluate.Lag == 0 {
		c.errorf(c.root.At("evaluate").At("lag"),
			"a lag of 0s; a verdict takes some time, give more or leave lag out for one interval")
	}
	if p.Evaluate.Target != nil && p.Stop.Target != nil {
		c.errorf(c.root.At("evaluate").At("target"),
			"a target stands under stop too; give it there to end a run with it, here to go on")
	}
	if p.Evaluate.Early && p.Evaluate.Target == nil && p.Stop.Target == nil {
		c.errorf(c.root.At("evaluate").At("early"),
			"early judges a model until it is surely below the target, and there is none; give stop a target, or "+
				"evaluate one to go on at")
	}
	c.target("evaluate", p.Evaluate.Target)
	c.target("stop", p.Stop.Target)
}

func (c *check) target(section string, target *unit.Fraction) {
	if target != nil && *target == 0 {
		c.errorf(c.root.At(section).At("target"), "a target of 0%% is reached before the run begins; give more")
	}
}

func (c *check) stop() {
	stop := c.root.At("stop")
	bounded := slices.ContainsFunc([]string{"epochs", "steps", "rounds", "time"},
		func(key string) bool { return stop.At(key) != stop })
	if !bounded {
		c.errorf(stop, "a run must end: give stop at least one of epochs, steps, rounds and time, such as "+
			"{target: 94%%, epochs: 10}")
	}
}

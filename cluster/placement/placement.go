// Package placement says on which process each node of a plan lives.
package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/plan"
)

// rule says where some nodes of a plan live.
type rule struct {
	what    string             // a node, a group or a role
	where   string             // for people, as in "process a"
	fits    func(h *host) bool // the process
	missing string             // what is to be said where none fits, before the names of all
}

// Rules say where nodes live. Of those about a node the first one holds.
type Rules []rule

// Parse reads rules of the form WHAT=PROCESS or WHAT=LABEL:VALUE.
func Parse(texts []string) (Rules, error) {
	var rules Rules
	for _, text := range texts {
		what, to, ok := strings.Cut(text, "=")
		if !ok || what == "" || to == "" {
			return nil, fmt.Errorf("placement %q; accepted are WHAT=PROCESS and WHAT=LABEL:VALUE, where WHAT is a "+
				"node, a group or a role of the plan", text)
		}
		r := rule{
			what: what, where: "process " + to, fits: func(h *host) bool { return h.Name == to },
			missing: "which is not in the cluster; there are",
		}
		if key, value, label := strings.Cut(to, ":"); label {
			r.where, r.missing = fmt.Sprintf("a process with label %s=%s", key, value), "and there is none among"
			r.fits = func(h *host) bool { return h.Meta.Labels[key] == value }
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func (r rule) about(n *plan.NodeSpec) bool {
	return r.what == n.Name || r.what == n.Group || r.what == n.Role
}

// host is a process that nodes can be placed on.
type host struct {
	membership.Member
	reserved int // cores, by actors that belong to no run
	nodes    int
}

// load is how many nodes the host would have for each core that is not reserved with one more.
func (h *host) load() float64 { return float64(h.nodes+1) / float64(max(h.Meta.Cores-h.reserved, 1)) }

// taken reports whether all cores of the host are reserved.
func (h *host) taken() bool { return h.reserved > 0 && h.reserved >= h.Meta.Cores }

// Assign returns the process of each node of a plan, in their order: where a rule says so; the one
// that bears the node's name; otherwise the least loaded for its cores of those with its role, or,
// if there is none, of those without a role. Of equals it is the first by name. No node lives where
// actors that belong to no run have reserved all cores.
func (rules Rules) Assign(pl *plan.Plan, members []membership.Member, reserved map[string]int) ([]string, error) {
	hosts := make([]host, len(members))
	for i, m := range members {
		hosts[i] = host{Member: m, reserved: reserved[m.Name]}
	}
	for _, r := range rules {
		if !slices.ContainsFunc(pl.Nodes, func(n plan.NodeSpec) bool { return r.about(&n) }) {
			return nil, fmt.Errorf("placement of %s: the plan has no node, group or role of this name", r.what)
		}
	}
	where := make([]string, len(pl.Nodes))
	// Those whose place is given come first, so that the others find out who is loaded.
	for i := range pl.Nodes {
		given, err := ruledHost(&pl.Nodes[i], rules, hosts)
		if err != nil {
			return nil, err
		}
		if given != nil {
			where[i] = given.Name
			given.nodes++
		}
	}
	for i := range pl.Nodes {
		if where[i] != "" {
			continue
		}
		h, err := freeHost(&pl.Nodes[i], hosts)
		if err != nil {
			return nil, err
		}
		where[i] = h.Name
		h.nodes++
	}
	return where, full(hosts)
}

// freeHost returns the host of a node that may live anywhere.
func freeHost(n *plan.NodeSpec, hosts []host) (*host, error) {
	fits := func(role string) *host {
		return least(hosts, func(h *host) bool { return h.Meta.Role == role && !h.taken() })
	}
	if n.Role != "" {
		if h := fits(n.Role); h != nil {
			return h, nil
		}
	}
	if h := fits(""); h != nil {
		return h, nil
	}
	var taken []host
	for _, h := range hosts {
		if h.taken() && (h.Meta.Role == "" || h.Meta.Role == n.Role) {
			taken = append(taken, h)
		}
	}
	if len(taken) > 0 {
		return nil, fmt.Errorf("node %s can live nowhere: actors that belong to no run have reserved all cores of "+
			"%s; gradwire actors lists them", n.Name, nameHosts(taken))
	}
	return nil, fmt.Errorf("node %s has role %s, and all processes are kept for other roles", n.Name, n.Role)
}

// full returns an error if a process would have more nodes than it can.
func full(hosts []host) error {
	for _, h := range hosts {
		if h.nodes > live.MaxNodes {
			return fmt.Errorf("%d nodes would live on process %s; at most %d can", h.nodes, h.Name, live.MaxNodes)
		}
	}
	return nil
}

// ruledHost returns the host that a node must be placed on; nil if any will do.
func ruledHost(n *plan.NodeSpec, rules Rules, hosts []host) (*host, error) {
	for _, r := range rules {
		if !r.about(n) {
			continue
		}
		switch h := least(hosts, func(h *host) bool { return r.fits(h) && !h.taken() }); {
		case h != nil:
			return h, nil
		case least(hosts, r.fits) == nil:
			return nil, fmt.Errorf("node %s is to live on %s, %s %s", n.Name, r.where, r.missing, nameHosts(hosts))
		default:
			return nil, fmt.Errorf("node %s is to live on %s, of which actors that belong to no run have reserved "+
				"all cores; gradwire actors lists them", n.Name, r.where)
		}
	}
	return least(hosts, func(h *host) bool { return h.Name == n.Name && !h.taken() }), nil
}

// least returns the least loaded of the hosts that will do; nil if there is none.
func least(hosts []host, will func(h *host) bool) (best *host) {
	for i := range hosts {
		if h := &hosts[i]; will(h) && (best == nil || h.load() < best.load()) {
			best = h
		}
	}
	return best
}

func nameHosts(hosts []host) string {
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return strings.Join(names, ", ")
}

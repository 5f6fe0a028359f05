package node

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/cluster/catalog"
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

// parseRules reads rules of the form WHAT=PROCESS or WHAT=LABEL:VALUE.
func parseRules(texts []string) ([]rule, error) {
	var rules []rule
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

// assign says on which process each node of a plan lives: where a rule says so, the first one that
// is about the node; on the process that bears its name; otherwise on the least loaded for its
// cores of those with its role, or, if there is none, of those without a role. Of equals it is the
// first by name. No node lives where actors that belong to no run have reserved all cores.
func assign(pl *plan.Plan, rules []rule, members []membership.Member, reserved map[string]int) ([]string, error) {
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
func ruledHost(n *plan.NodeSpec, rules []rule, hosts []host) (*host, error) {
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

// fingerprint distinguishes catalogs that give plans different meanings, as far as names and
// settings show.
func fingerprint(c *catalog.Catalog) string {
	d := xxhash.New()
	sum(d, c.Models)
	sum(d, c.Layers)
	sum(d, c.Datasets)
	sum(d, c.Splits)
	sum(d, c.Optimizers)
	sum(d, c.Schedules)
	sum(d, c.Architectures)
	sum(d, c.Consistencies)
	sum(d, c.Compressors)
	sum(d, c.Delays)
	sum(d, c.LinkRates)
	sum(d, c.Topologies)
	return fmt.Sprintf("%016x", d.Sum64())
}

// sum adds the kinds of one sort, in the order of their names.
func sum[T any](d *xxhash.Digest, kinds catalog.Kinds[T]) {
	all := slices.SortedFunc(slices.Values(kinds.All()),
		func(a, b catalog.Kind[T]) int { return cmp.Compare(a.Name, b.Name) })
	_, _ = d.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(all))))
	for _, k := range all {
		_, _ = d.WriteString(k.Name + "\x00" + k.Settings() + "\x00")
	}
}

package catalog

import (
	"slices"
	"sync"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Links say what the directed edges between a plan's nodes are like, at the beginning of a run and
// after each change of the schedule. An entry of the plan is kept once, under the names of its
// ends, however many pairs of nodes these stand for. What a pair is like is put together when
// somebody asks: from the entries under the names that its two nodes answer to.
type Links struct {
	base    link.Config
	nodes   []plan.NodeSpec
	names   plan.Names
	entries []entry // of the plan's links, then of its schedule in the order of time
	called  []calls // by node
	// under lists entries, ascending, by the numbers of the names of their ends; each list has a
	// number, from 1.
	under map[[2]int32]*list
}

// entry is an entry of the plan's links, or of its schedule.
type entry struct {
	plan.Ends
	// config is what a link is like, or, of what a change leaves out, the default.
	config link.Config
	change *plan.Change // nil for a link
	at     time.Duration
}

// list is the entries under one pair of names.
type list struct {
	number  int32
	entries []int32
}

// calls are the numbers of the names that a node answers to, from 1: its own, its group's and
// everyone's. A name that no entry has is 0.
type calls [3]int32

// class is the numbers of the lists that are about a pair, in a fixed order. Pairs of one class are
// alike.
type class [9]int32

// Course is what an edge is like during a run.
type Course struct {
	// Config holds from the beginning, with every outage of the schedule in it.
	Config link.Config
	// Changes are what follows, in the order of time.
	Changes []link.LineChange

	entries []int32 // that the changes come from
}

func newLinks(base link.Config, p *plan.Plan, entries []entry) *Links {
	l := &Links{base: base, nodes: p.Nodes, names: p.Names(), entries: entries,
		under: make(map[[2]int32]*list, 2*len(entries))}
	numbers := map[string]int32{}
	number := func(name string) int32 {
		if numbers[name] == 0 {
			numbers[name] = int32(len(numbers) + 1)
		}
		return numbers[name]
	}
	for i := range entries {
		for _, ends := range entries[i].Directions() {
			pair := [2]int32{number(ends[0]), number(ends[1])}
			at := l.under[pair]
			if at == nil {
				at = &list{number: int32(len(l.under) + 1)}
				l.under[pair] = at
			}
			at.entries = append(at.entries, int32(i))
		}
	}
	if len(entries) > 0 {
		l.called = make([]calls, len(p.Nodes))
	}
	for i := range l.called {
		n := &p.Nodes[i]
		l.called[i] = calls{numbers[n.Name], numbers[n.Group], numbers[plan.Everyone]}
	}
	return l
}

// differ reports whether any edge is not as the default from the beginning on.
func (l *Links) differ() bool {
	return slices.ContainsFunc(l.entries, func(e entry) bool {
		if e.change != nil && e.change.Do != plan.Down {
			return false
		}
		return l.names.Count(e.Ends) > 0
	})
}

// Drop reports whether any edge may lose messages for good at some time of a run.
func (l *Links) Drop() bool {
	drops := func(l *link.Loss) bool { return l.Drop || l.Bounded() }
	return drops(&l.base.Loss) || slices.ContainsFunc(l.entries, func(e entry) bool { return drops(&e.config.Loss) })
}

// class finds the lists that are about a pair. Nodes beyond the plan's are in none.
func (l *Links) class(from, to int32) (c class, found bool) {
	if int(max(from, to)) >= len(l.called) {
		return c, false
	}
	count := 0
	for _, a := range l.called[from] {
		for _, b := range l.called[to] {
			if a == 0 || b == 0 {
				continue
			}
			if at := l.under[[2]int32{a, b}]; at != nil {
				c[count] = at.number
				count++
			}
		}
	}
	return c, count > 0
}

// Between returns the course of the edge from one node to another, by their positions in the plan.
func (l *Links) Between(from, to int32) *Course {
	var about []int32
	if from != to && int(max(from, to)) < len(l.called) {
		for _, a := range l.called[from] {
			for _, b := range l.called[to] {
				if at := l.under[[2]int32{a, b}]; at != nil {
					about = append(about, at.entries...)
				}
			}
		}
	}
	slices.Sort(about)
	return l.course(slices.Compact(about))
}

// course lays the entries of a pair over each other: of its links the last one counts, alone, and
// each change is laid over what was before it. Outages are known from the beginning, because a link
// that goes down must know when it comes up.
func (l *Links) course(about []int32) *Course {
	c := &Course{Config: l.base}
	var outages []link.Outage
	var down outage
	for _, i := range about {
		e := &l.entries[i]
		if e.change == nil {
			c.Config = e.config
		} else if o, over := down.step(e); over {
			outages = append(outages, o)
		}
	}
	if down.is {
		outages = append(outages, link.Outage{From: down.since, To: link.Forever})
	}
	if outages != nil {
		c.Config.Outages = link.MergeOutages(append(slices.Clip(c.Config.Outages), outages...))
	}
	config := c.Config
	for _, i := range about {
		if e := &l.entries[i]; e.change != nil {
			config = e.over(config)
			c.Changes = append(c.Changes, link.LineChange{At: e.at, Config: config})
			c.entries = append(c.entries, i)
		}
	}
	return c
}

// over lays a change over a configuration.
func (e *entry) over(c link.Config) link.Config {
	if e.change.Rate != nil {
		c.Rate = e.config.Rate
	}
	if e.change.Delay != nil {
		c.Delay = e.config.Delay
	}
	if e.change.Loss != nil {
		c.Loss = e.config.Loss
	}
	if e.change.Reorder != nil {
		c.Reorder = e.config.Reorder
	}
	return c
}

// outage is whether a link is down, as the schedule says, and since when.
type outage struct {
	is    bool
	since time.Duration
}

// step carries out a change. It returns the outage that ends with it, unless that took no time.
func (o *outage) step(e *entry) (ended link.Outage, over bool) {
	switch {
	case e.change.Do == plan.Down && !o.is:
		*o = outage{true, e.at}
	case e.change.Do == plan.Up && o.is:
		ended, over = link.Outage{From: o.since, To: e.at}, e.at > o.since
		o.is = false
	}
	return ended, over
}

// checkOutages returns an error if a link is to come up that is not down. Nodes that have the same
// names in what the schedule says of outages are looked at once, as a kind.
func (l *Links) checkOutages() error {
	k := l.kinds()
	if k == nil {
		return nil
	}
	type state struct {
		outage
		last int // the entry that was carried out last, plus 1
	}
	states := map[[2]int32]*state{}
	for i := range l.entries {
		e := &l.entries[i]
		if !e.flaps() {
			continue
		}
		upright := [2]int32{-1, -1} // the first pair that is not down
		for _, ends := range e.Directions() {
			for _, a := range k.named[ends[0]] {
				for _, b := range k.named[ends[1]] {
					pair, are := k.first(a, b)
					s := states[[2]int32{a, b}]
					if s == nil {
						s = &state{}
						states[[2]int32{a, b}] = s
					}
					if !are || s.last == i+1 {
						continue
					}
					if e.change.Do == plan.Up && !s.is && (upright[0] < 0 || slices.Compare(pair[:], upright[:]) < 0) {
						upright = pair
					}
					s.step(e)
					s.last = i + 1
				}
			}
		}
		if upright[0] >= 0 {
			return syntax.Errorf(e.change.Source.At("do"), "the link from %s to %s is not down at %v",
				l.nodes[upright[0]].Name, l.nodes[upright[1]].Name, e.change.At)
		}
	}
	return nil
}

// flaps reports whether an entry is about an outage.
func (e *entry) flaps() bool { return e.change != nil && e.change.Do != "" }

// kinds are the kinds of nodes that the schedule's outages tell apart.
type kinds struct {
	named   map[string][]int32 // the kinds of the nodes that a name stands for
	members [][]int32          // the first two nodes of each kind
}

// kinds sorts the nodes; nil if there are no outages in the schedule.
func (l *Links) kinds() *kinds {
	k := &kinds{named: map[string][]int32{}}
	for i := range l.entries {
		if e := &l.entries[i]; e.flaps() {
			for _, ends := range e.Directions() {
				k.named[ends[0]], k.named[ends[1]] = nil, nil
			}
		}
	}
	if len(k.named) == 0 {
		return nil
	}
	of := map[[3]string]int32{}
	for i := range l.nodes {
		names := [3]string{l.nodes[i].Name, l.nodes[i].Group, plan.Everyone}
		for n, name := range names {
			if _, there := k.named[name]; !there {
				names[n] = ""
			}
		}
		kind, known := of[names]
		if !known {
			kind = int32(len(of))
			of[names] = kind
			k.members = append(k.members, nil)
			for _, name := range names {
				if name != "" {
					k.named[name] = append(k.named[name], kind)
				}
			}
		}
		if len(k.members[kind]) < 2 {
			k.members[kind] = append(k.members[kind], int32(i))
		}
	}
	return k
}

// first is the first pair of different nodes of two kinds, if there is one.
func (k *kinds) first(a, b int32) (pair [2]int32, found bool) {
	from, others := k.members[a][0], k.members[b]
	if a == b {
		others = others[1:]
	}
	if len(others) == 0 {
		return pair, false
	}
	return [2]int32{from, others[0]}, true
}

// Current is what the links are like during one run, as the changes of its schedule happen. It is
// safe for concurrent use.
type Current struct {
	links *Links

	mu       sync.Mutex
	courses  map[class]*Course
	happened int // entries before this one have happened, if they are the schedule's
}

// Start returns what the links are like at the beginning of a run; nil if no entry is about any.
func (l *Links) Start() *Current {
	if len(l.entries) == 0 {
		return nil
	}
	return &Current{links: l, courses: map[class]*Course{}}
}

// Config returns what the edge between two nodes is like now, for [link.Network.SetConfigs]; nil
// where no entry is about it. After each change of the schedule that is about the edge it is
// another pointer.
func (r *Current) Config(from, to int32) *link.Config {
	c, found := r.links.class(from, to)
	if !found || from == to {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	course := r.courses[c]
	if course == nil {
		course = r.links.Between(from, to)
		r.courses[c] = course
	}
	now, _ := slices.BinarySearch(course.entries, int32(r.happened))
	if now == 0 {
		return &course.Config
	}
	return &course.Changes[now-1].Config
}

// Changes are what the schedule does to the links of a network that Config configures.
func (r *Current) Changes(n *link.Network) (changes []link.Change) {
	for i := range r.links.entries {
		e := &r.links.entries[i]
		edges := r.links.names.Count(e.Ends)
		if e.change == nil || edges == 0 {
			continue
		}
		changes = append(changes, link.Change{At: e.at, Edges: edges, Apply: func() {
			r.mu.Lock()
			r.happened = i + 1
			r.mu.Unlock()
			for _, ends := range e.Directions() {
				n.Reconfigure(r.links.names[ends[0]], r.links.names[ends[1]])
			}
		}})
	}
	return changes
}

package placement_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/placement"
	"github.com/gradwire/gradwire/cluster/plan"
)

func TestNodesArePlacedByRuleNameRoleAndCores(t *testing.T) {
	member := func(name string, cores int, role string, labels ...string) membership.Member {
		m := membership.Member{Name: name, Meta: membership.Meta{Role: role, Cores: cores, Labels: map[string]string{}}}
		for _, l := range labels {
			m.Meta.Labels[l] = "yes"
		}
		return m
	}
	nodes := []plan.NodeSpec{{Name: "server", Role: "server"}, {Name: "w1", Role: "worker", Group: "w"},
		{Name: "w2", Role: "worker", Group: "w"}, {Name: "far", Role: "worker"}}
	all := []membership.Member{member("a", 1, ""), member("b", 4, ""), member("far", 1, ""),
		member("gpu", 8, "special", "fast"), member("s", 1, "server")}
	for _, x := range []struct {
		rules    []string
		members  []membership.Member
		reserved map[string]int
		want     string
	}{
		{members: all[:1], want: "a a a a"},
		{members: all[:2], want: "b b b a"},
		{members: all[:3], want: "b b b far"},
		{members: all, want: "s b b far"},
		{members: all[3:], rules: []string{"worker=s"}, want: "s s s s"},
		{members: all, rules: []string{"w=fast:yes", "far=a", "worker=b"}, want: "s gpu gpu a"},
		{members: all, rules: []string{"w2=a", "worker=far"}, want: "s far a far"},
		{members: all[:3], reserved: map[string]int{"b": 3}, want: "a b a far"},
		{members: all[:3], reserved: map[string]int{"b": 4}, want: "a a far far"},
		{members: all[:3], reserved: map[string]int{"far": 1}, want: "b b b a"},
		{members: all, reserved: map[string]int{"s": 1}, want: "b b b far"},
		{members: all[3:], reserved: map[string]int{"s": 1},
			want: "node server can live nowhere: actors that belong to no run have reserved all cores of s; gradwire " +
				"actors lists them"},
		{members: all[:2], reserved: map[string]int{"a": 1, "b": 5},
			want: "node server can live nowhere: actors that belong to no run have reserved all cores of a, b; " +
				"gradwire actors lists them"},
		{members: all, reserved: map[string]int{"a": 1}, rules: []string{"w2=a"},
			want: "node w2 is to live on process a, of which actors that belong to no run have reserved all cores; " +
				"gradwire actors lists them"},
		{members: all, reserved: map[string]int{"gpu": 8}, rules: []string{"w=fast:yes"},
			want: "node w1 is to live on a process with label fast=yes, of which actors that belong to no run have " +
				"reserved all cores; gradwire actors lists them"},
		{members: all[3:4], want: "node server has role server, and all processes are kept for other roles"},
	} {
		rules, err := placement.Parse(x.rules)
		if err != nil {
			t.Fatal(err)
		}
		where, err := rules.Assign(&plan.Plan{Nodes: nodes}, x.members, x.reserved)
		got := strings.Join(where, " ")
		if err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("with %v and reserved %v: %s, want %s", x.rules, x.reserved, got, x.want)
		}
	}
}

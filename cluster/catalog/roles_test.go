package catalog

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan"
)

// regions is an architecture of three roles, of which two are for any number of nodes.
type regions struct{}

func (regions) Roles() []train.Role {
	return []train.Role{{Name: "root", Holds: true, Min: 1, Max: 1}, {Name: "site", Min: 1},
		{Name: "worker", Trains: true, Min: 1}}
}

func (regions) Kind(*train.Task, train.Place) actors.Kind { return nil }

func withRegions() *Catalog {
	c := Default()
	c.Architectures.Declare("regions", regions{}, "")
	return c
}

// roles reads a plan of nodes and an architecture, and returns each node's role.
func roles(t *testing.T, architecture, nodes string, anyRole bool) (string, *Spec, error) {
	t.Helper()
	text := "data: {set: synthetic-traffic, split: {kind: iid}}\nmodel: {kind: mlp, layers: [93, 5]}\nstop: {epochs: " +
		"1}\n" +
		"architecture: " + architecture + "\nnodes: " + nodes + "\n"
	p, err := plan.ReadPlan(parse(t, "plan.yaml", text))
	if err != nil {
		return "", nil, err
	}
	p.AnyRole = anyRole
	s, err := withRegions().Read(p)
	if err != nil {
		return "", nil, err
	}
	var all []string
	for i, node := range s.Plan.Nodes {
		if s.Roles[i].Name != node.Role {
			t.Errorf("node %s has the role %s and is written as %s", node.Name, s.Roles[i].Name, node.Role)
		}
		all = append(all, node.Name+"="+node.Role)
	}
	return strings.Join(all, " "), s, nil
}

func TestNodesGetTheirRolesFromTheArchitecture(t *testing.T) {
	const three = "[{name: a}, {name: b}, {name: c}]"
	for _, x := range []struct {
		architecture, nodes string
		anyRole             bool
		want                string
	}{
		{"{kind: parameter-server}", three, false, "a=server b=worker c=worker"},
		{"{kind: parameter-server, roles: {server: b}}", three, false, "a=worker b=server c=worker"},
		{"{kind: parameter-server, roles: {server: [a, c]}}", three, false, "a=server b=worker c=server"},
		{"{kind: parameter-server, roles: {worker: [a, c]}}", three, false, "a=worker b=server c=worker"},
		{"{kind: parameter-server, roles: {server: added}}", three, false, "a=worker b=worker c=worker server=server"},
		{"{kind: parameter-server}", "[{name: a}, {name: b, role: server}, {name: c}]", false,
			"a=worker b=server c=worker"},
		{"{kind: parameter-server, roles: {server: a}}", "[{name: a}, {name: b, role: server}]", false,
			"a=server b=worker"},
		{"{kind: parameter-server}", "[{name: a, role: worker}, {name: b}]", false, "a=worker b=server"},
		{"{kind: parameter-server}", "[{name: n, count: 3}]", false, "n1=server n2=worker n3=worker"},
		{"{kind: parameter-server, roles: {server: x, worker: n}}", "[{name: n, count: 2}, {name: x}]", false,
			"n1=worker n2=worker x=server"},
		{"{kind: parameter-server, roles: {server: added}}", "[{name: server, role: server}, {name: w, role: worker}]",
			false, "server=server w=worker"},
		{"{kind: parameter-server, roles: {server: [added]}}", "[{name: added}, {name: b}]", false,
			"added=server b=worker"},
		{"{kind: gossip}", three, false, "a=peer b=peer c=peer"},
		{"{kind: gossip}", "[{name: a, role: server}, {name: b, role: worker}]", true, "a=peer b=peer"},
		{"{kind: parameter-server}", "[{name: a, role: peer}, {name: b, role: peer}]", true, "a=server b=worker"},
		{"{kind: all-reduce}", "[{name: hub, role: server}, {name: b, role: worker}]", true, "hub=worker b=worker"},
		{"{kind: regions, roles: {site: b}}", "[{name: a}, {name: b}, {name: c}]", false, "a=root b=site c=worker"},
	} {
		got, s, err := roles(t, x.architecture, x.nodes, x.anyRole)
		if err != nil || got != x.want {
			t.Errorf("%s of %s: got %s, %v; want %s", x.architecture, x.nodes, got, err, x.want)
			continue
		}
		// What is written out for the run alone, without a sweep, gives the same roles again.
		tree, err := s.Plan.Node()
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.ReadPlan(parse(t, "again.yaml", tree.YAML()))
		if err != nil {
			t.Fatalf("%v\n%s", err, tree.YAML())
		}
		again, err := withRegions().Read(p)
		if err != nil {
			t.Fatalf("%v\n%s", err, tree.YAML())
		}
		second, err := again.Plan.Node()
		if err != nil || second.YAML() != tree.YAML() || again.Plan.Nodes[0].Role != s.Plan.Nodes[0].Role {
			t.Errorf("%s of %s is read again as\n%s, %v, and was\n%s", x.architecture, x.nodes, second.YAML(), err,
				tree.YAML())
		}
		// So does naming what each role has.
		written := withRoles(parse(t, "x.yaml", "x: "+x.architecture).At("x"), s.Casting())
		if got, _, err := roles(t, written.Flow(), x.nodes, x.anyRole); err != nil || got != x.want {
			t.Errorf("%s of %s: got %s, %v; want %s", written.Flow(), x.nodes, got, err, x.want)
		}
	}
}

func TestMistakesOfRolesAreToldWithTheirPlace(t *testing.T) {
	const two = "[{name: a}, {name: b}]"
	for _, x := range []struct {
		architecture, nodes string
		anyRole             bool
		want                string
	}{
		{"{kind: parameter-server, roles: {boss: a}}", two, false,
			"plan.yaml:4:48: architecture.roles.boss: this architecture has no role \"boss\""},
		{"{kind: parameter-server, roles: {server: hub}}", two, false,
			"plan.yaml:4:56: architecture.roles.server: there is no node named \"hub\" (accepted: a, b)"},
		{"{kind: parameter-server, roles: {server: [a], worker: [a, b]}}", two, false,
			"node a has the role server already; a node has one role"},
		{"{kind: parameter-server, roles: {server: [a, b]}}", two, false, "0 nodes have the role worker"},
		{"{kind: parameter-server, roles: {server: []}}", two, false,
			"this names no nodes; give roles such as {server: hub}"},
		{"{kind: parameter-server, roles: hub}", two, false, "roles are given as a map, such as {server: hub}"},
		{"{kind: parameter-server, roles: {server: added}}", "[{name: server}, {name: b}]", false,
			"the node that is added would be called server, and there is one of that name"},
		{"{kind: parameter-server, roles: {server: a, worker: b}}", "[{name: a}, {name: b}, {name: c}]", false,
			"nodes[2]: node c is left without a role; give it one of server or worker"},
		{"{kind: parameter-server}", "[{name: a}]", false, "0 nodes have the role worker"},
		{"{kind: regions}", "[{name: a}, {name: b}, {name: c}]", false,
			"node b is left without a role; give it one of root, site or worker"},
		{"{kind: gossip}", "[{name: a, role: server}]", false,
			"node a has the role \"server\", which this architecture does not know"},
		{"{kind: parameter-server, servers: {replicas: 1}, delivery: as-is}", two, false,
			"architecture.delivery: as-is, where servers have replicas; accepted is reliable"},
		{"{kind: gossip, role: {peer: a}}", two, false, "unknown key \"role\"; did you mean roles?"},
	} {
		_, _, err := roles(t, x.architecture, x.nodes, x.anyRole)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s of %s: got %v\nwant %s", x.architecture, x.nodes, err, x.want)
		}
	}
}

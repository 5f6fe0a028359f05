package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

// three is a sweep of three factors, one of whose values has commas.
func three() record.Summary {
	s, _ := reporttest.Sweep(3, 0.94, map[string]float64{},
		reporttest.Axis{Key: "architecture", Values: []string{"server", "{kind: gossip, every: 4}"}},
		reporttest.Axis{Key: "data.split", Values: []string{"iid", "alpha 1", "near: most"}},
		reporttest.Axis{Key: "network.default.delay", Values: []string{"1", "10"}})
	return s
}

func TestEachFactorHasOneMeaning(t *testing.T) {
	s := three()
	for _, c := range []struct {
		view             report.View
		by, dash, facets string
	}{
		{report.View{}, "architecture", "network.default.delay", "data.split"},
		{report.View{By: "split"}, "data.split", "architecture", "network.default.delay"},
		{report.View{Facet: "delay"}, "architecture", "data.split", "network.default.delay"},
		{report.View{By: "network.default.delay", Facet: "architecture"}, "network.default.delay", "data.split",
			"architecture"},
	} {
		l, err := c.view.Arrange(s)
		if err != nil {
			t.Fatal(err)
		}
		var facets []string
		for _, f := range l.Facets {
			facets = append(facets, f.Key)
		}
		if l.By.Key != c.by || l.Dash == nil || l.Dash.Key != c.dash || strings.Join(facets, " ") != c.facets {
			t.Errorf("%+v: by %s, dash %+v, facets %q", c.view, l.By.Key, l.Dash, facets)
		}
		names := map[string]bool{}
		for _, g := range s.Groups {
			name := l.Panel(g.Point) + "|" + l.Row(g.Point)
			if names[name] {
				t.Errorf("%+v: two points are %q", c.view, name)
			}
			names[name] = true
		}
	}
	if _, err := (report.View{By: "spilt"}).Arrange(s); err == nil ||
		!strings.Contains(err.Error(), "architecture, data.split, network.default.delay") {
		t.Errorf("an unknown key: %v", err)
	}
}

// A layout has one factor for keys with paired values: the first key, or the key that --by names.
func TestPairedKeysAreOneFactor(t *testing.T) {
	s, _ := reporttest.Sweep(3, 0.94, map[string]float64{},
		reporttest.Axis{Key: "network.topology", Values: []string{"complete", "racks"}},
		reporttest.Axis{Key: "architecture", Values: []string{"server", "ring", "switch", "three switches"}},
		reporttest.Axis{Key: "nodes", Values: []string{"server", "workers", "switch", "switches"}})
	paired := map[string]string{"server": "server", "ring": "workers", "switch": "switch", "three switches": "switches"}
	s.Groups = slices.DeleteFunc(s.Groups, func(g record.Group) bool {
		a := g.Point.Value("architecture")
		racks := g.Point.Value("network.topology") == "racks"
		return g.Point.Value("nodes") != paired[a] || racks != (a == "three switches")
	})
	for by, want := range map[string]string{"": "architecture", "nodes": "nodes"} {
		l, err := report.View{By: by}.Arrange(s)
		if err != nil || l.By.Key != want || l.Dash != nil || len(l.Facets) > 0 {
			t.Errorf("by %q: %+v, %v", by, l, err)
		}
	}
}

func TestAFactorOfManyValuesHasPanelsOrRowsAndNeverSharedLooks(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("m%d", i))
	}
	s, _ := reporttest.Sweep(1, 0.94, nil, reporttest.Axis{Key: "architecture", Values: many},
		reporttest.Axis{Key: "data.split", Values: []string{"a", "b"}},
		reporttest.Axis{Key: "train.batch", Values: []string{"1", "2", "3", "4", "5"}})
	l, err := report.View{}.Arrange(s)
	if err != nil || l.By.Key != "architecture" || l.Dash != nil || len(l.Facets) != 2 || len(l.Panels(s)) != 10 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestWhereKeepsPointsAndItsErrorsNameWhatIsAccepted(t *testing.T) {
	s := three()
	for _, c := range []struct {
		conditions []string
		runs       int
		err        string
	}{
		{nil, 36, ""},
		{[]string{"architecture=server"}, 18, ""},
		{[]string{"architecture!=server"}, 18, ""},
		{[]string{"architecture={kind: gossip, every: 4}"}, 18, ""},
		{[]string{"architecture={kind: gossip, every: 4},server"}, 36, ""},
		{[]string{"architecture={kind: gossip, every: 4},data.split=iid,near: most"}, 12, ""},
		{[]string{"split=iid, delay=1.0"}, 6, ""},
		{[]string{"data.split=iid", "default.delay=10"}, 6, ""},
		{[]string{"data.split=IID"}, 12, ""},
		{[]string{"data.split=idd"}, 0, "accepted: iid; alpha 1; near: most"},
		{[]string{"splt=iid"}, 0, "accepted: architecture, data.split, network.default.delay"},
		{[]string{"iid"}, 0, "KEY=VALUE or KEY!=VALUE is accepted, with KEY one of architecture"},
		{[]string{""}, 0, "KEY=VALUE"},
		{[]string{"data.split="}, 0, "accepted: iid"},
		{[]string{"=,=,!="}, 0, "accepted"},
		{[]string{"data.split=iid,x=3"}, 0, "another condition on architecture, data.split"},
		{[]string{"data.split=iid", "data.split=alpha 1"}, 0, "no point meets all"},
	} {
		kept, err := report.Where(s, c.conditions)
		if len(kept) != c.runs || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %d runs, %v; want %d and %q", c.conditions, len(kept), err, c.runs, c.err)
		}
	}
}

func TestNodesAreOrderedByTheirGroupsAndNumbers(t *testing.T) {
	names := []string{"peer10", "asia2", "peer2", "server", "asia1", "7"}
	slices.SortFunc(names, report.CompareNames)
	if got := strings.Join(names, " "); got != "7 asia1 asia2 peer2 peer10 server" {
		t.Error(got)
	}
}

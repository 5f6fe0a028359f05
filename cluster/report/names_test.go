package report_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
)

func TestMappingsAreNamedByTheirKindAndWhatDiffers(t *testing.T) {
	for value, want := range map[string]string{
		"{kind: gossip, every: 4}": "gossip, every 4", "{every: 4, kind: gossip}": "gossip, every 4",
		"{kind: gossip, topology: {kind: ring}}":            "gossip, topology ring",
		"{kind: parameter-server, roles: {server: added}}":  "parameter-server, roles (server added)",
		"{kind: gossip, topology: {kind: ring, degree: 2}}": "gossip, topology (ring, degree 2)",
		"{kind: \"a, b\", list: [1, 2]}":                    "a, b, list [1, 2]",
		"label":                                             "label", "{broken": "{broken",
		"{broken}": "{broken}", "near: most": "near: most", "4": "4", "": "",
	} {
		if got := report.PointName(record.Point{{Key: "architecture", Value: value}}); got != want {
			t.Errorf("%s is called %q, want %q", value, got, want)
		}
	}
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"{kind: a, every: 4, x: 1}", "{kind: a, every: 8, x: 1}", "{kind: b, x: 1}"},
			"a, every 4|a, every 8|b, x 1"},
		{[]string{"4", "8"}, "every 4|every 8"}, {[]string{"true", "false"}, "every true|every false"},
		{[]string{"10ms", "slow"}, "every 10ms|slow"},
		{[]string{"{kind: a, b: 1}", "a, b 1"}, "k.every={kind: a, b: 1}|k.every=a, b 1"},
		{[]string{strings.Repeat("x", 50) + "1", strings.Repeat("x", 50) + "2"},
			"k.every=" + strings.Repeat("x", 50) + "1|k.every=" + strings.Repeat("x", 50) + "2"},
	} {
		points := make([]record.Point, len(c.values))
		for i, v := range c.values {
			points[i] = record.Point{{Key: "k.every", Value: v}, {Key: "same", Value: "s"}}
			c.want = strings.ReplaceAll(c.want, "k.every="+v, "k.every="+v+"; same=s")
		}
		if got := strings.Join(report.PointNames(points), "|"); got != c.want {
			t.Errorf("%q are called %q, want %q", c.values, got, c.want)
		}
	}
}

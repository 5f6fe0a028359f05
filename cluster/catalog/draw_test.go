package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
)

func TestADelaySaysWhenItIsDrawn(t *testing.T) {
	of := link.Uniform{Min: time.Millisecond, Max: time.Second}
	for draw, want := range map[string]link.Delay{
		"": of, ", draw: message": of,
		", draw: link": link.Once{Of: of}, ", draw: node": link.Once{Of: of, PerNode: true},
	} {
		s := mustSpec(t, "network: {default: {delay: {kind: uniform, range: 1ms..1s"+draw+"}}}")
		equal(t, draw, want, s.Default.Delay)
		tree, err := s.Plan.Node()
		if err != nil {
			t.Fatal(err)
		}
		if written := "delay: {kind: uniform, range: 1ms..1s" + draw + "}"; !strings.Contains(tree.YAML(), written) {
			t.Errorf("the resolved plan lacks %s:\n%s", written, tree.YAML())
		}
	}
	for given, want := range map[string]string{
		"{kind: uniform, range: 1ms..1s, draw: once}": `network.default.delay.draw: unknown`,
		"{kind: uniform, range: 1ms..1s, drew: link}": `unknown key "drew"; did you mean draw?`,
	} {
		_, err := spec(t, "", "network: {default: {delay: "+given+"}}")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

package catalog

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn/compress"
)

// built reads a plan of three nodes without a server, of an architecture.
func built(t *testing.T, architecture string) (*Spec, error) {
	t.Helper()
	text := strings.NewReplacer("kind: parameter-server", architecture, ", role: server", "", ", role: worker",
		"").Replace(plainPlan)
	p, err := plan.ReadPlan(parse(t, "plan.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return Default().Read(p)
}

func TestCompressionIsReadWithItsDefaultsSpelledOut(t *testing.T) {
	reduction := collective.Default()
	reduction.Algorithm, reduction.Feedback = collective.AllToAll, compress.EF
	reduction.Compress = compress.Chain{compress.TopK{Share: 0.01}, compress.Int(4)}
	gossiping, pairing := gossip.Default(), adpsgd.Default()
	gossiping.Compress, pairing.Compress = compress.Chain{compress.Int(8)}, compress.Chain{compress.BFloat16{}}
	for architecture, want := range map[string]struct {
		made     any
		resolved string
	}{
		"kind: all-reduce, algorithm: all-to-all, compress: {up: [{kind: top-k, share: 1%}, quantise]}": {reduction,
			"{up: [{kind: top-k, share: 1%}, {kind: quantise, bits: 4, block: 256, rounding: nearest}], feedback: ef}"},
		"kind: gossip, compress: {models: [int8]}": {gossiping,
			"{models: [{kind: int8, block: 256, rounding: nearest}]}"},
		"kind: ad-psgd, compress: {models: [bfloat16]}": {pairing, "{models: [{kind: bfloat16}]}"},
	} {
		s, err := built(t, architecture)
		if err != nil {
			t.Errorf("%s: %v", architecture, err)
			continue
		}
		equal(t, architecture, want.made, any(s.Architecture))
		section, _ := s.Plan.Architecture.Get("compress")
		equal(t, architecture, want.resolved, section.Flow())
		again, err := built(t, inner(s.Plan.Architecture))
		if err != nil {
			t.Fatalf("the resolved plan: %v", err)
		}
		equal(t, "the resolved plan", s.Architecture, again.Architecture)
	}
}

// inner is a section without its braces.
func inner(n *syntax.Node) string { return strings.TrimSuffix(strings.TrimPrefix(n.Flow(), "{"), "}") }

func TestArchitecturesThatDoNotCompressSayWhy(t *testing.T) {
	for architecture, want := range map[string]string{
		"kind: d-psgd, compress: {models: [int8]}": "plan.yaml:4:30: architecture.compress: models travel whole; " +
			"write choco: {compress: […]}, which sends compressed differences of them",
		"kind: local, compress: {up: [int8]}": "plan.yaml:4:29: architecture.compress: there is nothing to " +
			"compress: peers send nothing",
	} {
		if _, err := built(t, architecture); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", architecture, err, want)
		}
	}
}

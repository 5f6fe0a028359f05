package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/cluster/plan"
)

// gossiping reads a plan of three peers with settings of the architecture.
func gossiping(t *testing.T, settings string) (*Spec, error) {
	t.Helper()
	text := strings.NewReplacer("kind: parameter-server", "kind: gossip"+settings, ", role: server", "",
		", role: worker", "").Replace(plainPlan)
	p, err := plan.ReadPlan(parse(t, "plan.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return Default().Read(p)
}

func TestGossipIsReadWithItsDefaultsSpelledOut(t *testing.T) {
	half := gossip.Choice{By: gossip.Random, Share: 0.5}
	for settings, want := range map[string]struct {
		architecture gossip.Architecture
		resolved     string
	}{
		"": {
			gossip.Architecture{Every: 1, Choice: half, Exchange: gossip.Push, Wait: true, Merge: gossip.Mean,
				Lead: gossip.NoLead},
			"{kind: gossip, every: 1, choose: {kind: random, share: 50%}, exchange: push, wait: true, merge: mean, " +
				"moved: 0}",
		},
		", period: 2s, exchange: push-pull, merge: age, lead: 0, moved: 0.5": {
			gossip.Architecture{Period: 2 * time.Second, Choice: half, Exchange: gossip.PushPull, Merge: gossip.Age,
				Moved: 0.5},
			"{kind: gossip, period: 2s, choose: {kind: random, share: 50%}, exchange: push-pull, wait: false, merge: " +
				"age, moved: 0.5, lead: 0}",
		},
		", every: 3, choose: {kind: latency, floor: 1%}, wait: false": {
			gossip.Architecture{Every: 3, Choice: gossip.Choice{By: gossip.Latency, Share: 0.5, Floor: 0.01},
				Exchange: gossip.Push, Merge: gossip.Mean, Lead: gossip.NoLead},
			"{kind: gossip, every: 3, choose: {kind: latency, share: 50%, floor: 1%}, exchange: push, wait: false, " +
				"merge: mean, moved: 0}",
		},
		", choose: {count: 1}, exchange: pull": {
			gossip.Architecture{Every: 1, Choice: gossip.Choice{By: gossip.Random, Count: 1}, Exchange: gossip.Pull,
				Wait: true, Merge: gossip.Mean, Lead: gossip.NoLead},
			"{kind: gossip, every: 1, choose: {kind: random, count: 1}, exchange: pull, wait: true, merge: mean, " +
				"moved: 0}",
		},
	} {
		s, err := gossiping(t, settings)
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		equal(t, settings, want.architecture, s.Architecture.(gossip.Architecture))
		equal(t, settings, want.resolved, s.Plan.Architecture.Flow())
		again, err := gossiping(t, strings.TrimSuffix(strings.TrimPrefix(want.resolved, "{kind: gossip"), "}"))
		if err != nil {
			t.Errorf("the resolved plan %s: %v", want.resolved, err)
			continue
		}
		equal(t, "the resolved plan", s.Architecture, again.Architecture)
	}
}

func TestMistakesInGossipAreToldWithTheirPlace(t *testing.T) {
	for settings, want := range map[string]string{
		", every: 0": "plan.yaml:4:37: architecture.every: 0 is out of range; accepted " +
			"is 1 or more",
		", every: 1, period: 1s": "architecture.period: period and every, which stands in line 4, " +
			"exclude each other; give either every (steps between two exchanges; or 0.1 epochs, or 4000 " +
			"samples, of all workers together) or period (time between two " +
			"exchanges)",
		", period: 0s":              "architecture.period: 0s is out of range; accepted is more than 0s",
		", period: 1s, wait: true":  "architecture.wait: wait goes with every only",
		", choose: {kind: nearest}": `architecture.choose.kind: unknown kind "nearest" (accepted: random, latency)`,
		", choose: {share: 50%, count: 1}": "architecture.choose.count: count and share, which stands in " +
			"line 4, exclude each other; give either share (share of the neighbours that are chosen, rounded to the " +
			"nearest number, at least one) or count",
		", choose: {share: 0%}": "architecture.choose.share: 0% is out of range; accepted is more " +
			"than 0%",
		", choose: {count: 0}":                "architecture.choose.count: 0 is out of range",
		", choose: {kind: random, floor: 1%}": "architecture.choose.floor: floor goes with kind: latency only",
		", choose: {weight: 3}":               "architecture.choose.weight: unknown key",
		", exchange: pusch":                   `architecture.exchange: unknown exchange "pusch"; did you mean push?`,
		", merge: median":                     `architecture.merge: unknown merge "median"`,
		", moved: -1": "plan.yaml:4:37: architecture.moved: -1 is out of range; " +
			"accepted is 0 or more",
		", lead: -1": "plan.yaml:4:36: architecture.lead: -1 is out of range; accepted " +
			"is 0 or more",
		", neighbours: 3":                          "architecture.neighbours: unknown key",
		", choose: {kind: latency, floor: 101%}":   "architecture.choose.floor",
		", every: 1, choose: latency, wait: false": "architecture.choose: found",
	} {
		if _, err := gossiping(t, settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", settings, err, want)
		}
	}
}

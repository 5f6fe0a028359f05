package driver_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/driver"
)

// Processes of a cluster read what was chosen, and who is where, from the text that they are sent.
func TestClusterRunsWhatWasChosenBetweenTheSitesOfThePlan(t *testing.T) {
	text := strings.NewReplacer("kind: watched-ring", "kind: all-reduce, algorithm: auto",
		"{default: {delay: 20ms}}", "{preset: regions-aws-2024, sites: {peer1: lhr, \"*\": fra}}").Replace(ring)
	c, client := gathered(t, "a", "b")
	for algorithm, set := range map[string][]string{
		"all-to-all":   nil, // chosen
		"hierarchical": {"architecture.algorithm=hierarchical"},
	} {
		summary, dir := c.result(client, text, set...)
		virtual := run(t, load(t, text, set...), driver.Options{})
		if diff := cmp.Diff(virtual.Runs[0].Choice, summary.Runs[0].Choice); diff != "" {
			t.Error(diff)
		}
		if made := summary.Runs[0].Choice; (made == nil) != (set != nil) || made != nil && made.Chosen != algorithm {
			t.Errorf("the record says %v, want %s chosen: %v", made, algorithm, set == nil)
		}
		if diff := cmp.Diff(losses(t, virtual.Dir), losses(t, dir)); diff != "" {
			t.Errorf("%s: %s", algorithm, diff)
		}
	}
}

package catalog

import (
	"strings"
	"testing"
)

func TestNewPlanListsTheKindsThatItsSectionsAccept(t *testing.T) {
	c := Default()
	text, err := c.Start(Start{Architecture: "gossip", Data: "synthetic-traffic", Program: "gradwire"})
	if err != nil {
		t.Fatal(err)
	}
	for key, words := range map[string][]string{
		"set": c.Datasets.names(), "split": c.Splits.names(), "optimizer": c.Optimizers.names(),
		"kind: mlp": c.Models.names(), "kind: gossip": c.Architectures.names(),
	} {
		found := false
		for line := range strings.Lines(text) {
			listed := strings.HasSuffix(line, " ("+strings.Join(words, ", ")+")\n")
			found = found || listed && strings.HasPrefix(strings.TrimSpace(line), key)
		}
		if !found {
			t.Errorf("%s: %v are not listed in\n%s", key, words, text)
		}
	}
}

func TestNewPlansOfEveryArchitectureNameWhatComparisonsNeed(t *testing.T) {
	c := Default()
	for _, k := range c.Architectures.All() {
		start := Start{Architecture: k.Name, Data: "synthetic-traffic", Program: "gradwire"}
		if k.Name == "gossip-learning" {
			start.Set = []string{"architecture.period=10ms"}
		}
		text, err := c.Start(start)
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		for _, want := range []string{"# tune: {", "# roles: {", "# compute: native\n", "# delay: ", "# record: events\n",
			"needs\n# it"} {
			if !strings.Contains(text, "\n"+want) && !strings.Contains(text, want) {
				t.Errorf("%s: a new plan does not say %q", k.Name, want)
			}
		}
	}
}

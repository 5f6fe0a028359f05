package catalog

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

func TestPresetsOfArchitecturesAreTheWordsOfTheirKey(t *testing.T) {
	c := Default()
	for kind, presets := range map[string]map[string]string{
		"federated": federated.Presets, "all-reduce": collective.Presets,
	} {
		k, _ := c.Architectures.find(kind)
		names := slices.Sorted(maps.Keys(presets))
		for _, key := range k.Keys() {
			if key.Name == "preset" && !slices.Equal(slices.Sorted(slices.Values(key.Words)), names) {
				t.Errorf("%s accepts %s, presets are %v", kind, key.Words, names)
			}
		}
	}
}

func TestErrorsAboutSettingsOfAPresetPointAtItsName(t *testing.T) {
	const text = "architecture:\n  kind: all-reduce\n  preset: diloco\n  reduce: gradients\n"
	plan, err := syntax.Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	section, _ := plan.Get("architecture")
	_, _, err = Default().Architectures.Read(Default(), section)
	if want := "plan.yaml:3:11: architecture.preset: outer is "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s…", err, want)
	}
}

package catalog

import (
	"maps"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/federated"
)

func TestFederatedPresetsAreTheWordsOfTheirKey(t *testing.T) {
	c := Default()
	k, _ := c.Architectures.find("federated")
	for _, key := range k.Keys() {
		if key.Name == "preset" && !slices.Equal(slices.Sorted(slices.Values(key.Words)),
			slices.Sorted(maps.Keys(federated.Presets))) {
			t.Errorf("the key accepts %s, presets are %v", key.Words, slices.Sorted(maps.Keys(federated.Presets)))
		}
	}
}

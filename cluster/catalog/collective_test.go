package catalog

import (
	"strings"
	"testing"
)

// The topology says who is whose neighbour; these have no neighbours.
func TestArchitecturesThatPassOverTheTopologySaySo(t *testing.T) {
	passes := map[string]bool{"parameter-server": true, "all-reduce": true, "federated": true, "noloco": true}
	for _, k := range Default().Architectures.All() {
		if said := strings.Contains(k.Doc, "the network's topology"); said != passes[k.Name] {
			t.Errorf("%s says that it passes over the topology: %v, want %v:\n%s", k.Name, said, passes[k.Name], k.Doc)
		}
	}
}

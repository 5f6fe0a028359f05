package node

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
)

func TestFingerprintTellsCatalogsApartByWhatTheyName(t *testing.T) {
	first, second := catalog.Default(), catalog.Default()
	if fingerprint(first) != fingerprint(second) {
		t.Error("two default catalogs differ")
	}
	type settings struct{}
	none := catalog.Define("none-of-these", "", func() settings { return settings{} },
		func(*catalog.Catalog, *settings) (catalog.Loader, error) { return catalog.Loader{}, nil })
	second.Datasets.Add(none)
	if fingerprint(first) == fingerprint(second) {
		t.Error("a catalog with another data set is the same")
	}
}

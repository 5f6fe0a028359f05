package figure

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

func TestARegisteredKindIsDrawnInItsPlaceAndOnlyWithWhatItNeeds(t *testing.T) {
	before := slices.Clone(kinds)
	defer func() { kinds = before }()
	register(Kind{Name: "loss-time", Section: Accuracy, Place: 3, Needs: Curves | Links,
		Drawings: single(titled("Loss over time"), accuracyOverTime)})
	s, traces := reporttest.Sample([]string{"a"}, 1, 0.94)
	names := func() (all []string) {
		for _, one := range All(&Data{Summary: s, Traces: traces}) {
			all = append(all, one.Name)
		}
		return all
	}
	if got := names(); slices.Contains(got, "loss-time") {
		t.Errorf("without links: %q", got)
	}
	reporttest.Spread(s, traces, 5, ring)
	got := names()
	want := []string{"accuracy-bytes", "loss-time", "models-1"} // kinds of one place are ordered by their names
	if at := slices.Index(got, want[0]); at < 0 || len(got) < at+3 || !slices.Equal(got[at:at+3], want) {
		t.Errorf("drawn are %q, want %q in them", got, want)
	}
	paths, err := drawAll(t.TempDir(), &Data{Summary: s, Traces: traces})
	if err != nil || !slices.ContainsFunc(paths, func(p string) bool { return filepath.Base(p) == "loss-time.png" }) {
		t.Errorf("%v, written: %q", err, paths)
	}
}

func TestNoTwoKindsHaveOneName(t *testing.T) {
	defer func() {
		if recover() != kindTwice {
			t.Error("a second kind of the same name was registered")
		}
	}()
	register(kinds[0])
}

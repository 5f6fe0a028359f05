package figure

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

func TestProbePictureOfFewAndOfManyEdges(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		edges, probes int
		want          []string
	}{
		{1, 5, []string{"hub", "Shaded: down"}},
		{MaxProbedPanels, 20, []string{"hub", "Marks at the top: lost"}},
		{2, dotsDrawn, []string{"least to greatest"}},
		{MaxProbedPanels + 1, 20, []string{"Over 13 edges", "edges down, %"}},
	} {
		var all []*report.Probed
		for i := range c.edges {
			all = append(all, reporttest.Probed(string(rune('a'+i)), c.probes, 0.001*float64(i)))
		}
		for _, name := range []string{"one", "two"} {
			if err := Probes(filepath.Join(dir, name), "a title", all); err != nil {
				t.Fatal(err)
			}
		}
		one, two := read(t, dir, "one.svg"), read(t, dir, "two.svg")
		if one != two || read(t, dir, "one.png") != read(t, dir, "two.png") {
			t.Errorf("%d edges: equal input gives different bytes", c.edges)
		}
		for _, want := range append(c.want, "a title") {
			if !strings.Contains(one, want) {
				t.Errorf("%d edges: no %q in the picture", c.edges, want)
			}
		}
		if m, err := png.Decode(strings.NewReader(read(t, dir, "one.png"))); err != nil || m.Bounds().Dx() != 1400 {
			t.Errorf("%v", err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

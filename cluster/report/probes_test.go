package report

import (
	"bytes"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// probed is an edge with so many probes, of delays from low upwards, of which every tenth is lost.
func probed(to string, count int, low float64) *Probed {
	p := &Probed{From: "hub", To: to, Model: "uniform range 10ms..20ms", End: float64(count), Down: [][2]float64{{1, 3}}, DownShare: 2 / float64(count)}
	for i := range count {
		p.Sent = append(p.Sent, float64(i))
		p.Delay = append(p.Delay, low+float64(i)/1024)
		took := low + float64(i)/512
		if i%10 == 9 {
			took = math.Inf(1)
		}
		p.Took = append(p.Took, took)
		p.Tries += 1 + i%2
	}
	return p
}

func TestSummaryOfProbes(t *testing.T) {
	got := probed("a", 20, 0.25).Summary()
	want := ProbeSummary{
		From: "hub", To: "a", Model: "uniform range 10ms..20ms", Sent: 20, PerMinute: 60,
		Delay: Quantiles{0.25 + 9.0/1024, 0.25 + 18.0/1024, 0.25 + 19.0/1024},
		Took:  Quantiles{0.25 + 8.0/512, 0.25 + 18.0/512, 0.25 + 18.0/512}, // of 18 that arrived
		Down:  0.1, Lost: 0.1, Resent: 0.5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProbeTableLeavesOutWhatThereIsNotAndSumsUpMany(t *testing.T) {
	table := func(all []*Probed) string {
		var b bytes.Buffer
		if err := ProbeTable(&b, all); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	plain := probed("a", 8, 0.001)
	plain.DownShare, plain.Tries = 0, 8
	text := table([]*Probed{plain})
	if head, _, _ := strings.Cut(text, "\n"); strings.Contains(head, "down") || strings.Contains(head, "rate") || strings.Contains(head, "resent") {
		t.Errorf("columns without anything in them:\n%s", text)
	}
	var many []*Probed
	for i := range MaxProbedRows {
		many = append(many, probed(strings.Repeat("x", 1+i), 20, float64(MaxProbedRows-i)/1000))
	}
	if lines := strings.Count(table(many), "hub →"); lines != MaxProbedRows {
		t.Errorf("%d rows for %d edges", lines, MaxProbedRows)
	}
	text = table(append(many, probed("last", 20, 5)))
	rows := strings.Split(text, "\n")
	if !strings.HasPrefix(rows[1], "all 41") || strings.Count(text, "hub →") != 10 || !strings.HasPrefix(rows[11], "hub → last") {
		t.Errorf("sum of many edges:\n%s", text)
	}
	for _, row := range rows {
		if n := len([]rune(row)); n > 2*tableWidth {
			t.Errorf("%d characters: %s", n, row)
		}
	}
}

func TestProbeTableOfATerminalKeepsEveryLineWithinItsWidth(t *testing.T) {
	all := []*Probed{probed("somewhere-with-a-long-name", 20, 0.001), probed("b", 20, 5)}
	all[0].Rate = 1e6
	full := 0
	for columns := 12; columns <= 200; columns++ {
		b := screen{columns: columns}
		if err := ProbeTable(&b, all); err != nil {
			t.Fatal(err)
		}
		heading, _, _ := strings.Cut(b.String(), "\n")
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > columns {
				t.Errorf("%d columns, %d characters: %s", columns, n, line)
			}
		}
		_, missed, _ := strings.Cut(strings.Join(strings.Fields(b.String()), " "), "No room here for ")
		rate, said := strings.Contains(heading, "rate"), strings.Contains(missed, "rate")
		if rate == said {
			t.Errorf("%d columns: rate is shown %v, missed %v:\n%s", columns, rate, said, b.String())
		}
		if rate {
			full++
		}
	}
	if full < 100 {
		t.Errorf("there was room for all columns at %d widths only", full)
	}
}

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
		var all []*Probed
		for i := range c.edges {
			all = append(all, probed(string(rune('a'+i)), c.probes, 0.001*float64(i)))
		}
		for _, name := range []string{"one", "two"} {
			if err := ProbePicture(filepath.Join(dir, name), "a title", all); err != nil {
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

package text

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

func TestProbeTableLeavesOutWhatThereIsNotAndSumsUpMany(t *testing.T) {
	table := func(all []*report.Probed) string {
		var b bytes.Buffer
		if err := Probes(&b, all); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	plain := reporttest.Probed("a", 8, 0.001)
	plain.DownShare, plain.Tries = 0, 8
	text := table([]*report.Probed{plain})
	if head, _, _ := strings.Cut(text, "\n"); strings.Contains(head, "down") || strings.Contains(head, "rate") ||
		strings.Contains(head, "resent") {
		t.Errorf("columns without anything in them:\n%s", text)
	}
	var many []*report.Probed
	for i := range MaxProbedRows {
		many = append(many, reporttest.Probed(strings.Repeat("x", 1+i), 20, float64(MaxProbedRows-i)/1000))
	}
	if lines := strings.Count(table(many), "hub →"); lines != MaxProbedRows {
		t.Errorf("%d rows for %d edges", lines, MaxProbedRows)
	}
	text = table(append(many, reporttest.Probed("last", 20, 5)))
	rows := strings.Split(text, "\n")
	if !strings.HasPrefix(rows[1], "all 41") || strings.Count(text, "hub →") != 10 ||
		!strings.HasPrefix(rows[11], "hub → last") {
		t.Errorf("sum of many edges:\n%s", text)
	}
	for _, row := range rows {
		if n := len([]rune(row)); n > 2*tableWidth {
			t.Errorf("%d characters: %s", n, row)
		}
	}
}

func TestProbeTableOfATerminalKeepsEveryLineWithinItsWidth(t *testing.T) {
	all := []*report.Probed{reporttest.Probed("somewhere-with-a-long-name", 20, 0.001), reporttest.Probed("b", 20, 5)}
	all[0].Rate = 1e6
	full := 0
	for columns := 12; columns <= 200; columns++ {
		b := screen{columns: columns}
		if err := Probes(&b, all); err != nil {
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

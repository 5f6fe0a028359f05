package pivot_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/pivot"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

var axes = []reporttest.Axis{{Key: "architecture", Values: []string{"ring", "server"}},
	{Key: "data.split", Values: []string{"iid", "skewed"}}}

func arrange(t *testing.T, s record.Summary) report.Layout {
	t.Helper()
	l, err := report.View{}.Arrange(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The order of the rows is said to change only where verdicts say so on both sides.
func TestOrderChangesOnlyBeyondDoubt(t *testing.T) {
	for _, c := range []struct {
		slowness map[string]float64
		want     string
	}{
		{map[string]float64{"ring × iid": 5, "server × skewed": 5}, "The order of architecture changes with split " +
			"beyond doubt: at iid, server is ahead of ring; at skewed, ring is ahead of server."},
		{map[string]float64{"server": 5}, "is not seen to change with split: ring is fastest"},
		{map[string]float64{"server × skewed": 5}, "is not seen to change with split: ring is fastest"},
	} {
		s, _ := reporttest.Sweep(8, 0.94, c.slowness, axes...)
		got := pivot.Order(s, arrange(t, s))
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%v: %q, want %q", c.slowness, got, c.want)
		}
	}
	s, _ := reporttest.Sweep(8, 0.94, nil, axes[0])
	if got := pivot.Order(s, arrange(t, s)); len(got) != 0 {
		t.Errorf("one factor: %q", got)
	}
}

func TestATableHasOneUnitAndMissingValuesOneForm(t *testing.T) {
	s, _ := reporttest.Sweep(8, 0.94, map[string]float64{"skewed": 1e-4}, axes...)
	s.Runs = s.Runs[:len(s.Runs)-8] // the last point is missing
	s.Groups = record.GroupRuns(s.Runs, s.Target)
	table := pivot.Of(s, arrange(t, s))
	if strings.Join(table.Head, "|") != "architecture|iid, s|skewed, s" {
		t.Errorf("%q", table.Head)
	}
	for format, missing := range map[string]string{"markdown": " – |\n", "latex": " & -- \\\\\n", "csv": ",\n"} {
		var b strings.Builder
		if err := table.Write(&b, format); err != nil || !strings.Contains(b.String(), missing) ||
			strings.Contains(b.String(), "NaN") {
			t.Errorf("%s: %v\n%s", format, err, b.String())
		}
		if format == "csv" {
			rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
			if err != nil || len(rows) != 3 || rows[2][2] != "" {
				t.Errorf("%v, %q", err, rows)
			}
		}
	}
}

// Cells have the same words in all formats, however many runs reached the target.
func TestCellsSayHowManyRunsArrivedAndHowFarApart(t *testing.T) {
	goal := 0.9
	point := func(name string, seconds ...float64) []record.Run {
		return reporttest.Runs(record.Point{{Key: "k", Value: name}}, nil, nil, seconds...)
	}
	s := reporttest.Summary(&goal, point("all", 1, 2, 3, 4, 5, 6), point("most", 1, 2, 3, 4, 5, -60),
		point("few", 1, 2, 3, 4, 5), point("few, most", 1, 2, 3, 4, -60), point("half", 1, -60, -60, -60, -60),
		point("none", -60, -60, -60, -60, -60, -60), point("one", 2))
	table := pivot.Of(s, arrange(t, s))
	for i, want := range []string{"3.50 [1.00, 6.00]", "3.50 [1.00, ∞] 5/6", "3.00 (1.00–5.00)", "3.00 (1.00–∞) 4/5",
		"not reached (4 of 5)", "not reached (6 of 6)", "2.00"} {
		if got := strings.TrimRight(table.Rows[i][1], " =*?"); got != want {
			t.Errorf("%s: %q, want %q", table.Rows[i][0], got, want)
		}
	}
	for format, want := range map[string][]string{
		"markdown": {"[1.00, ∞] 5/6", "∞: too few runs"}, "csv": {"[1.00, ∞] 5/6"},
		"latex": {`% needs \usepackage{booktabs}`, `[1.00, $\infty$] 5/6`, "(1.00--5.00)"},
	} {
		var b strings.Builder
		_ = table.Write(&b, format)
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: %q is not in\n%s", format, w, b.String())
			}
		}
	}
}

func TestTablesEscapeWhatTheirFormatsMeanByASign(t *testing.T) {
	s, _ := reporttest.Sweep(1, 0.94, nil,
		reporttest.Axis{Key: "architecture", Values: []string{"a|b", "{c_d: 5%}", `\x & $y# ~^<`}})
	table := pivot.Of(s, arrange(t, s))
	var markdown, latex strings.Builder
	_ = table.Write(&markdown, "markdown")
	_ = table.Write(&latex, "latex")
	if !strings.Contains(markdown.String(), `a\|b`) {
		t.Error(markdown.String())
	}
	for _, want := range []string{`c\_d`, `5\%`,
		`\textbackslash{}x \& \$y\# \textasciitilde{}\textasciicircum{}\textless{}`} {
		if !strings.Contains(latex.String(), want) {
			t.Errorf("%q is not in\n%s", want, latex.String())
		}
	}
}

package report_test

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

func TestPointsThatAreJudgedByDifferentFiguresAreSaidToBe(t *testing.T) {
	s, _ := reporttest.Sample([]string{"a", "b", "c"}, 1, 0.94)
	for _, c := range []struct {
		models                 int
		of                     [3]record.Of
		judged, suffix, clause string
	}{
		{1, [3]record.Of{record.Mean, record.Any, record.Mean}, "accuracy", "", ""},
		{2, [3]record.Of{record.Any, record.Any, record.Any}, "accuracy of the best node", " (best node)",
			"judged by the accuracy of the best node"},
		{2, [3]record.Of{record.Mean, record.Any, record.Mean}, "each point's own accuracy",
			" (as each point is judged)",
			"some points judged by the mean of the nodes' accuracies, others by the accuracy of the best node"},
	} {
		for i := range s.Runs {
			s.Runs[i].Models, s.Runs[i].Of = c.models, c.of[i]
		}
		if got := report.Judged(s); got != c.judged {
			t.Errorf("%v: judged is the %q, want %q", c.of, got, c.judged)
		}
		if got := report.JudgedSuffix(s); got != c.suffix {
			t.Errorf("%v: the suffix is %q, want %q", c.of, got, c.suffix)
		}
		if got := report.JudgedBy(s); got != c.clause {
			t.Errorf("%v: the clause is %q, want %q", c.of, got, c.clause)
		}
	}
}

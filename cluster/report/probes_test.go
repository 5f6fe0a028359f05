package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

func TestSummaryOfProbes(t *testing.T) {
	got := reporttest.Probed("a", 20, 0.25).Summary()
	want := report.ProbeSummary{
		Edge: report.Edge{From: "hub", To: "a", Model: "uniform range 10ms..20ms"}, Sent: 20, PerMinute: 60,
		Delay: report.Quantiles{P50: 0.25 + 9.0/1024, P95: 0.25 + 18.0/1024, Max: 0.25 + 19.0/1024},
		Took:  report.Quantiles{P50: 0.25 + 8.0/512, P95: 0.25 + 18.0/512, Max: 0.25 + 18.0/512}, // of 18 that arrived
		Down:  0.1, Lost: 0.1, Resent: 0.5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

package report_test

import (
	"math"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/goodput"
	"github.com/gradwire/gradwire/cluster/report"
)

func TestMeanGoodputIsOfTheRunsOfAPointThatHaveOne(t *testing.T) {
	faulty, calm := record.Point{{Key: "x", Value: "1"}}, record.Point{{Key: "x", Value: "2"}}
	s := record.Summary{Groups: []record.Group{{Point: calm}, {Point: faulty}}, Runs: []record.Run{
		{Point: faulty, Goodput: &goodput.Goodput{Share: 0.5}}, {Point: calm}, {Point: faulty},
		{Point: faulty, Goodput: &goodput.Goodput{Share: 0.75}},
	}}
	if got := report.MeanGoodput(s, faulty); got != 0.625 {
		t.Errorf("the mean of 0.5 and 0.75 is %v", got)
	}
	if !math.IsNaN(report.MeanGoodput(s, calm)) || !report.HasGoodput(s) {
		t.Error("a point without faults has a goodput, or one with faults has none")
	}
	if s.Groups = s.Groups[:1]; report.HasGoodput(s) {
		t.Error("no point has faults, and there is a goodput")
	}
}

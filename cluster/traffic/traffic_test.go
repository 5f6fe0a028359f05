package traffic_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/traffic"
)

// Two lives of a process, one of which counts all edges of a sender together.
func TestSumHasEachEdgeOnceAndMeansOfAllItsMessages(t *testing.T) {
	one := []record.Link{{From: "b", To: "a", Messages: 3, Bytes: 30, Lost: 1, DelayAsked: 2, DelayAchieved: 4},
		{From: "a", To: record.Everyone, Messages: 5}, {From: "a", To: "a", Messages: 1}}
	two := []record.Link{{From: "a", To: record.Everyone, Messages: 7},
		{From: "b", To: "a", Messages: 1, Bytes: 10, DelayAsked: 6, DelayAchieved: 1},
		{From: "a", To: "a", Messages: 1}}
	want := []record.Link{{From: "a", To: record.Everyone, Messages: 12}, {From: "a", To: "a", Messages: 2},
		{From: "b", To: "a", Messages: 4, Bytes: 40, Lost: 1, DelayAsked: 3, DelayAchieved: 3}}
	if record.Everyone > "a" {
		want[0], want[1] = want[1], want[0]
	}
	if diff := cmp.Diff(want, traffic.Sum([]string{"a", "b"}, one, two)); diff != "" {
		t.Error(diff)
	}
}

func TestCountsOfNodesThatThereAreNotAreLeftOut(t *testing.T) {
	counts := []link.Count{{Source: 1, Destination: 0, Stats: link.Stats{Sent: 2, DelayCount: 2,
		DelaySum: 3 * time.Second, Delivered: 1, TookSum: time.Second}},
		{Source: 0, Destination: link.Anyone, Stats: link.Stats{Sent: 1}},
		{Source: 2}, {Source: -1}, {Destination: 2}, {Destination: link.Anyone - 1}}
	want := []record.Link{{From: "b", To: "a", Messages: 2, DelayAsked: 1.5, DelayAchieved: 1},
		{From: "a", To: record.Everyone, Messages: 1}}
	if diff := cmp.Diff(want, traffic.Of([]string{"a", "b"}, counts)); diff != "" {
		t.Error(diff)
	}
}

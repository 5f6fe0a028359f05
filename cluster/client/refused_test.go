package client

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/protos"
)

func TestRefusalNamesItsProcessOnce(t *testing.T) {
	for _, c := range []struct{ process, says, want string }{
		{"n1", "no space left on device", "process n1: no space left on device"},
		{"n1", "process n1 is stopping", "process n1 is stopping"},
		{"n1", "node n1 has no cores", "node n1 has no cores"},
		{"n1", "process n2 is away", "process n1: process n2 is away"},
		{"", "no such file", "the process at 10.0.0.1:7946: no such file"},
	} {
		got := refused(&protos.Refusal{Error: c.says, Process: c.process}, "10.0.0.1:7946").Error()
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestPlaceInAPlanIsNamedAsThePlanIsHereBehindTheProcess(t *testing.T) {
	for says, want := range map[string]string{
		"process n1: plan.yaml:3:5: unknown":           "process n1: folder/plan.yaml:3:5: unknown",
		"process n1: plan.yaml:3:5: a\nplan.yaml:4: b": "process n1: folder/plan.yaml:3:5: a\nfolder/plan.yaml:4: b",
		"process n1: no room":                          "process n1: no room",
	} {
		if got := located("folder/plan.yaml", refusal.Input(errors.New(says))).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestConnectionThatIsResetIsNoQuestionOfCertificatesAlone(t *testing.T) {
	for _, id := range []*identity.Identity{nil, {}} {
		c := &Client{identity: id}
		if got := c.explain(syscall.ECONNRESET).Error(); !strings.HasPrefix(got, "the connection was reset: ") {
			t.Error(got)
		}
		if got := c.explain(io.EOF).Error(); !strings.Contains(got, "certificates") {
			t.Error(got)
		}
	}
}

// The client believes the process that knows best, in whichever order they answer.
func TestTheWordOfTheProcessThatHasTheRecordCounts(t *testing.T) {
	word := map[string]*protos.Submission{
		"has":   {Id: "1", Process: "a", State: "done"},
		"copy":  {Id: "1", Process: "b", State: "done", Copy: true},
		"held":  {Id: "1", Process: "a", State: "running", Held: true, Away: 5},
		"lost":  {Id: "1", Process: "a", State: "done", Lost: true},
		"away":  {Id: "1", Process: "a", State: "running", Away: 7},
		"other": {Id: "2", Process: "a", State: "running"},
	}
	nodes := []Node{{Address: "first"}, {Address: "second"}, {Address: "third"}}
	best := []string{"has", "copy", "held", "lost"} // each before those behind it
	for i, first := range best {
		for _, second := range append(best[i+1:], "away") {
			if first == "lost" && second == "away" {
				continue // neither knows more
			}
			for _, order := range [][]string{{first, second}, {second, first}} {
				var replies []*protos.Reply
				for _, name := range append(order, "other") {
					all := &protos.Submissions{Submissions: []*protos.Submission{word[name]}}
					replies = append(replies, &protos.Reply{Kind: &protos.Reply_Submissions{Submissions: all}})
				}
				all := merge(nodes, replies)
				at := map[bool]string{true: "first", false: "second"}[order[0] == first]
				if len(all) != 2 || all[0].address != at {
					t.Errorf("%v: %+v", order, all)
				}
			}
		}
	}
}

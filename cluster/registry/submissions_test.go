package registry

import (
	"fmt"
	"testing"

	"github.com/gradwire/gradwire/protos"
)

// TestSubmissionThatEndsLastIsEvictedLast ends one submission more than the registry keeps. The
// one claimed first ends last.
func TestSubmissionThatEndsLastIsEvictedLast(t *testing.T) {
	s, index := newState(), uint64(0)
	by := &protos.RegistryProcess{Name: "a", Incarnation: 1}
	claim := func(id string) {
		index++
		s.claimSubmission(index, by, &protos.ClaimSubmission{Id: id, Term: 1})
	}
	end := func(id string) {
		index++
		s.endSubmission(index, by, &protos.EndSubmission{Id: id, Term: 1})
	}
	claim("long")
	for i := range maxEnded {
		id := fmt.Sprint(i)
		claim(id)
		end(id)
	}
	end("long")
	if len(s.submissions) != maxEnded || s.Submission("0") != nil || !s.Submission("long").GetEnded() {
		t.Errorf("%d submissions; first %v, long %v", len(s.submissions), s.Submission("0"), s.Submission("long"))
	}
}

package submission

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

func TestTextsOfAnyKindAndLengthAreTold(t *testing.T) {
	for _, text := range []string{"caf\xe9", strings.Repeat("é", 1<<20), strings.Repeat("\xff", 1<<20)} {
		s := &Submission{queue: New(Config{Out: t.TempDir(), Log: func(string, ...any) {}}),
			changed: make(chan struct{}), entry: entry{State: request.Failed, Error: text}}
		s.Log("failed: %v", s.Error)
		m, _, _ := s.Now()
		lines, _, _, _ := s.since(0)
		if !strings.HasPrefix(text, m.Error[:3]) && !strings.HasPrefix(m.Error, "\uFFFD") {
			t.Errorf("%.20q is told as %.20q", text, m.Error)
		}
		var many []*protos.Submission
		for range MaxKept {
			listed, _, _ := s.Now()
			listed.Error = request.Text(listed.Error, request.MaxListed)
			many = append(many, listed)
		}
		for _, reply := range []*protos.Reply{
			{Kind: &protos.Reply_Submission{Submission: m}},
			{Kind: &protos.Reply_Lines{Lines: &protos.LogLines{Lines: slices.Repeat(lines, maxTold)}}},
			{Kind: &protos.Reply_Submissions{Submissions: &protos.Submissions{Submissions: many}}},
			{Kind: &protos.Reply_Refusal{Refusal: &protos.Refusal{Error: request.Text(text, request.MaxText)}}},
		} {
			if err := request.Write(io.Discard, reply); err != nil {
				t.Errorf("%.20q: %v", text, err)
			}
		}
	}
}

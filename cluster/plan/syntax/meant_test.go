package syntax_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

func TestWordsOfOtherProgramsLeadToThePlans(t *testing.T) {
	for word, want := range map[string]string{
		"bandwidth": "; did you mean rate?", "Latency": "; did you mean delay?", "L2": "; did you mean weight-decay?",
	} {
		known := []string{"delay", "rate", "weight-decay"}
		if got := syntax.Suggestion(word, known); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", word, got)
		}
		if got := syntax.Suggestion(word, []string{"unrelated"}); strings.Contains(got, "mean") {
			t.Errorf("%s where its word is not known: %s", word, got)
		}
	}
}

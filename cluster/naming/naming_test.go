package naming

import (
	"strings"
	"testing"
)

func TestNameBeginsWithALetterOrDigit(t *testing.T) {
	for _, good := range []string{"a", "7", "Z9", "eu-1.rack_2", strings.Repeat("x", Max)} {
		if problem := Problem(good); problem != "" {
			t.Errorf("%q %s", good, problem)
		}
	}
	for bad, want := range map[string]string{
		"":                         "has 0 bytes",
		strings.Repeat("x", Max+1): "has 65 bytes",
		"_a":                       "does not begin with",
		".":                        "does not begin with",
		"ä":                        "does not begin with",
		"a b":                      "is no name",
		"a/b":                      "is no name",
		"aé":                       "is no name",
		"a\xff":                    "is no name",
	} {
		if problem := Problem(bad); !strings.Contains(problem, want) {
			t.Errorf("%q: %q, want %q", bad, problem, want)
		}
	}
}

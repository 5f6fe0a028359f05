package plan

import (
	"os"
	"strings"
	"testing"
)

// The plan is one that a program of version 2 resolved.
func TestAPlanOfVersion2IsRewrittenIntoTodaysLanguage(t *testing.T) {
	text, err := os.ReadFile("testdata/version-2.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root := mustParse(t, string(text))
	if !Upgrade(root) || Upgrade(root) {
		t.Error("the plan was not upgraded once")
	}
	want := strings.Replace(string(text), "version: 2", "version: 4", 1)
	if got := root.YAML(); got != want {
		t.Errorf("upgraded:\n%s\nwant:\n%s", got, want)
	}
	if _, err := ReadPlan(root); err != nil {
		t.Error(err)
	}
}

func TestOnlyEarlierVersionsAreRewritten(t *testing.T) {
	const architecture = "architecture: {kind: parameter-server, consistency: {kind: asp}}}"
	for text, want := range map[string]string{
		"{version: 2, " + architecture: "{version: 4, " + architecture,
		"{version: 3, " + architecture: "{version: 4, " + architecture,
		"{version: 4, " + architecture: "",
		"{" + architecture:             "",
		"{version: 1}":                 "",
		// Where the algorithm was left to the default, the version stays one in which it is a ring.
		"{version: 3, architecture: {kind: all-reduce}}":                                   "",
		"{version: 3, architecture: {kind: all-reduce, algorithm: tree}}":                  "{version: 4, architecture: {kind: all-reduce, algorithm: tree}}",
		"{version: 2, architecture: {kind: clipped, of: {kind: all-reduce}}}":              "{version: 3, architecture: {kind: clipped, of: {kind: all-reduce}}}",
		"{version: 3, sweep: {architecture: [{kind: all-reduce}, {kind: local}]}}":         "",
		"{version: 3, architecture: {}, sweep: {architecture.kind: [all-reduce, gossip]}}": "",
	} {
		root := mustParse(t, text)
		changed := Upgrade(root)
		if want == "" {
			want = text
		}
		if root.Flow() != want || changed != (want != text) {
			t.Errorf("%s was made %s, changed: %v", text, root.Flow(), changed)
		}
	}
}

func TestAnAllReduceWithoutAnAlgorithmIsARingInEarlierVersions(t *testing.T) {
	for plan, want := range map[string]string{
		"{version: 3, architecture: {}, sweep: {architecture.kind: [all-reduce, gossip]}}": "{kind: all-reduce, algorithm: ring}",
		"{architecture: {}, sweep: {architecture.kind: [all-reduce, gossip]}}":             "{kind: all-reduce}",
	} {
		points, err := Points(mustParse(t, plan))
		if err != nil {
			t.Fatal(err)
		}
		first, second := points[0].Root.At("architecture").Flow(), points[1].Root.At("architecture").Flow()
		if first != want || second != "{kind: gossip}" {
			t.Errorf("%s: %s and %s, want %s and {kind: gossip}", plan, first, second, want)
		}
	}
}

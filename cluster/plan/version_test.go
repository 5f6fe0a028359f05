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
	want := strings.NewReplacer("version: 2", "version: 3", "consistency: {kind: asp}, ", "").Replace(string(text))
	if got := root.YAML(); got != want {
		t.Errorf("upgraded:\n%s\nwant:\n%s", got, want)
	}
	if _, err := ReadPlan(root); err != nil {
		t.Error(err)
	}
}

func TestOnlyWhatVersion2SaidIsRewritten(t *testing.T) {
	for text, want := range map[string]string{
		"{version: 2, sweep: {architecture: [{kind: parameter-server, consistency: {kind: asp}, " +
			"every: 2}]}}": "{version: 3, sweep: {architecture: [{kind: parameter-server, every: 2}]}}",
		"{version: 2, architecture: {kind: own, consistency: {kind: asp}}}": "{version: 3, architecture: {kind: own, " +
			"consistency: {kind: asp}}}",
		"{version: 2, architecture: {kind: parameter-server, consistency: {kind: ssp}}}": "{version: 3, " +
			"architecture: {kind: parameter-server, consistency: {kind: ssp}}}",
		"{version: 3, architecture: {kind: parameter-server, consistency: {kind: asp}}}": "",
		"{architecture: {kind: parameter-server, consistency: {kind: asp}}}":             "",
		"{version: 1}": "",
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

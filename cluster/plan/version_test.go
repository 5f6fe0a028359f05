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
	want := strings.Replace(string(text), "version: 2", "version: 3", 1)
	if got := root.YAML(); got != want {
		t.Errorf("upgraded:\n%s\nwant:\n%s", got, want)
	}
	if _, err := ReadPlan(root); err != nil {
		t.Error(err)
	}
}

func TestOnlyVersion2IsRewritten(t *testing.T) {
	const architecture = "architecture: {kind: parameter-server, consistency: {kind: asp}}}"
	for text, want := range map[string]string{
		"{version: 2, " + architecture: "{version: 3, " + architecture,
		"{version: 3, " + architecture: "",
		"{" + architecture:             "",
		"{version: 1}":                 "",
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

package record

import (
	"encoding/json"
	"math"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPointKeepsOrderAndValues(t *testing.T) {
	p := Point{{"z", "0.05"}, {"a", "20 %"}, {"m", "true"}, {"n", "01"}, {"o", ""}, {"q", `"x"`}, {"r", "NaN"},
		{"s", "-3e2"}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"z":0.05,"a":"20 %","m":true,"n":"01","o":"","q":"\"x\"","r":"NaN","s":-3e2}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var got Point
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAccuraciesAreTheLastAndTheHighest(t *testing.T) {
	d := Data{Curve: []Evaluation{{Accuracy: Float(math.NaN())}, {Accuracy: 0.9}, {Accuracy: 0.8}}}
	if final, best := d.Accuracies(); final != 0.8 || best != 0.9 {
		t.Errorf("final %v, best %v", final, best)
	}
	if final, best := (&Data{}).Accuracies(); !math.IsNaN(float64(final)) || !math.IsNaN(float64(best)) {
		t.Errorf("of nothing: final %v, best %v", final, best)
	}
}

func TestBuildIsReadFromSettingsWhereThereAreAny(t *testing.T) {
	if b := buildOf(nil, "portable"); b.Commit != "unknown" || b.Kernel != "portable" || b.Go == "" {
		t.Errorf("without information: %+v", b)
	}
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.modified", Value: "true"}, {Key: "GOAMD64", Value: "v3"}}}
	info.Main.Version = "v1.2.3"
	if b := buildOf(info, ""); b.Commit != "abc" || !b.Modified || b.GOAMD64 != "v3" || b.Version != "v1.2.3" {
		t.Errorf("got %+v", b)
	}
}

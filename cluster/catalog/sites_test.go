package catalog

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan"
)

const sitedPlan = `
data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes: [{name: s, role: server}, {name: w, role: worker, count: 3}, {name: x, role: worker}]
stop: {epochs: 1}
`

func TestNodesAreAsFarApartAsTheirSites(t *testing.T) {
	s, err := specOf(t, "", sitedPlan+`
network:
  preset: regions-aws-2024
  sites: {w2: syd, "*": iad, s: fra, w: lhr}
  default: {rate: 100 Mbit/s, delay: 7ms}
  links: [{between: [s, x], delay: 1ms}]
`)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{"s": "fra", "w1": "lhr", "w2": "syd", "w3": "lhr", "x": "iad"}
	trips := map[[2]string]float64{{"fra", "lhr"}: 18, {"fra", "syd"}: 251, {"fra", "iad"}: 93, {"lhr", "syd"}: 268,
		{"lhr", "lhr"}: 3, {"lhr", "iad"}: 78, {"syd", "iad"}: 198}
	place := map[string]int32{}
	for i := range s.Plan.Nodes {
		place[s.Plan.Nodes[i].Name] = s.Sites[i]
	}
	for from, a := range at {
		for to, b := range at {
			if (place[from] == place[to]) != (a == b) {
				t.Errorf("%s in %s is at site %d, %s in %s at %d", from, a, place[from], to, b, place[to])
			}
			if from == to {
				continue
			}
			want := time.Duration((trips[[2]string{a, b}] + trips[[2]string{b, a}]) * 1e6 / 2)
			if a == b {
				want = 3e6 / 2
			}
			if from+to == "sx" || from+to == "xs" { // the plan's own link
				want = time.Millisecond
			}
			got := s.edge(from, to)
			if d, is := got.Delay.(link.Constant); !is || d.Delay != want || got.Rate != rate.Constant(12.5e6) {
				t.Errorf("from %s to %s: %+v at %v bytes/s, want %v", from, to, got.Delay, got.Rate, want)
			}
			if of := s.Plan.Links().Edge(from, to).Delay; of.Text != want.String() {
				t.Errorf("from %s to %s the plan says %s, want %v", from, to, of.Text, want)
			}
		}
	}
}

func TestDirectionsOfAMatrixAreItsOwn(t *testing.T) {
	dir := t.TempDir()
	file := "delay_ms,s,w1,w2,w3,x\ns,,1,2,3,4\nw1,10,,5,5,5\nw2,20,6,,5,5\nw3,30,6,6,,5\nx,40,6,6,6,\n"
	if err := os.WriteFile(filepath.Join(dir, "m.csv"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := specOf(t, dir, sitedPlan+"network: {matrix: m.csv}\n")
	if err != nil {
		t.Fatal(err)
	}
	delays := map[string]time.Duration{"s w2": 2, "w2 s": 20, "w1 w3": 5, "w3 w1": 6, "x s": 40, "s x": 4}
	for ends, want := range delays {
		from, to, _ := strings.Cut(ends, " ")
		if got := s.edge(from, to).Delay; got != (link.Constant{Delay: want * time.Millisecond}) {
			t.Errorf("from %s to %s: %+v, want %v ms", from, to, got, int(want))
		}
	}
}

func TestMistakesOfSitesAreNamed(t *testing.T) {
	for network, want := range map[string]string{
		"{preset: regions-aws-2024, sites: {s: fra, w: fro, x: nrt}}": `no site named "fro"; did you mean fra?`,
		"{preset: regions-aws-2024, sites: {s: fra, w: lhr}}":         "x has no site; name one for it, for its group",

		"{matrix: nowhere.csv}": "nowhere.csv",
	} {
		_, err := specOf(t, t.TempDir(), sitedPlan+"network: "+network+"\n")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "plan.yaml:7:") {
			t.Errorf("%s: %v, want line 7 and: %s", network, err, want)
		}
	}
}

func TestPresetsAreTheWordsOfTheirKey(t *testing.T) {
	words := ""
	for _, p := range link.Presets() {
		words += "|" + p.Name
	}
	f, _ := reflect.TypeFor[plan.NetworkSpec]().FieldByName("Preset")
	if accepted := f.Tag.Get("words"); accepted != words[1:] {
		t.Errorf("the key accepts %s, presets are %s", accepted, words[1:])
	}
}

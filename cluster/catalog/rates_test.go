package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/link/rate"
)

const phones = `
data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
stop: {epochs: 1}
nodes:
  - {name: s, role: server, uplink: {kind: random-walk, min: 0 Mbit/s, max: 8 Mbit/s, step: 80 kbit/s}}
  - {name: w, role: worker, count: 2, uplink: {kind: mobile, line: lte-driving-up}, downlink: FILE}
network:
  default: {rate: {kind: quantiles, mean: 4 Mbit/s, p50: 4 Mbit/s, p95: 7 Mbit/s}}
  links: [{from: s, to: w, rate: unlimited}]
schedule: [{at: 1s, from: s, to: w1, rate: {kind: trace, file: cell.csv}}]
`

func traces(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range map[string]string{"lte.down": "0\n1\n1\n9\n", "cell.csv": "time_s,rate_kbps\n0,8\n5,16\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestRatesOfAPlanAreTheProcessesThatItNames(t *testing.T) {
	folder := traces(t)
	s, err := specOf(t, folder, strings.Replace(phones, "FILE", "{kind: trace, file: lte.down, format: mahimahi}", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Access[0].Uplink, (rate.RandomWalk{FirstMax: 1e6, Step: 1e4, Every: 1e9, Max: 1e6}); got != want {
		t.Errorf("walk %+v, want %+v", got, want)
	}
	if got := s.Access[1].Uplink.Mean(); got != 0.83*125e3 {
		t.Errorf("the mobile line carries %v bytes/s, want %v", got, 0.83*125e3)
	}
	if got := s.Access[2].Downlink.Mean(); got != 4*1500/0.009 || s.Access[2].Downlink != s.Access[1].Downlink {
		t.Errorf("the trace carries %v bytes/s", got)
	}
	if s.Access[0].Downlink != nil || s.edge("s", "w1").Rate != nil || s.edge("w1", "s").Rate.Mean() != 5e5 {
		t.Errorf("%+v, %+v", s.edge("s", "w1"), s.edge("w1", "s"))
	}
	if changes := s.changes(); len(changes) != 1 || changes[0].Config.Rate.Mean() != 1e3 {
		t.Errorf("%+v", changes)
	}
	tree, err := s.Plan.Node()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"first: [0 B/s, 8 Mbit/s], step: 80 kbit/s, every: 1s, min: 0 B/s",
		"uplink: {kind: mobile, line: lte-driving-up}",
		"p5: 0 B/s, p50: 4 Mbit/s", "format: mahimahi\n      repeat: true\n      anywhere: false",
	} {
		if !strings.Contains(tree.YAML(), want) {
			t.Errorf("the resolved plan lacks %q:\n%s", want, tree.YAML())
		}
	}
}

func TestRatesThatAreNoneSayWhereAndWhatIsAccepted(t *testing.T) {
	folder := traces(t)
	const walk = "{kind: random-walk, min: 0 Mbit/s, "
	for _, c := range [][2]string{
		{"{kind: phone}", `:8:102: @.kind: unknown link rate "phone"`},
		{"{kind: mobile, line: lte}", `:8:116: @.line: unknown mobile line "lte"`},
		{"{kind: trace, file: no.csv}", `:8:115: @.file: the trace cannot be read`},
		{"{kind: trace, file: lte.down}", `header "0", expected "time_s,rate_mbps"`},
		{"{kind: trace, file: cell.csv, format: mahimahi}",
			`:1: "time_s,rate_kbps", expected a whole number of milliseconds`},
		{"{kind: trace, file: cell.csv, anywhere: true}", `@.anywhere: anywhere is true: must be false`},
		{"{kind: trace, file: lte.down, format: mahimahi, repeat: false}", `@.repeat: a trace of Mahimahi starts over`},
		{"{kind: random-walk, min: 2 Mbit/s, max: 1 Mbit/s, step: 1 kbit/s}", `@.max`},
		{walk + "max: unlimited, step: 1 kbit/s}", `@.max`},
		{walk + "max: 1 Mbit/s, step: 1 kbit/s, first: [1 MB/s]}", `@.first`},
		{walk + "max: 1 Mbit/s, step: 1 kbit/s, first: [1 Mbit/s, 2 MB/s]}", `@.first`},
		{"{kind: quantiles, mean: 9 Mbit/s, p50: 4 Mbit/s, p95: 7 Mbit/s}", `@.mean`},
	} {
		given, want := c[0], strings.ReplaceAll(c[1], "@", "nodes[1].downlink")
		_, err := specOf(t, folder, strings.Replace(phones, "FILE", given, 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// readersOfTimes are all settings that name a file of times, with lines of it from a time on in its
// own unit.
var readersOfTimes = map[string]struct {
	setting, header string
	line            func(seconds int) string
}{
	"link.ReadTrace": {"network: {default: {delay: {kind: trace, file: %s}}}", "time_s,delay_ms\n",
		func(s int) string { return fmt.Sprintf("%d,80\n", s) }},
	"rate.ReadTrace": {"network: {default: {rate: {kind: trace, file: %s}}}", "time_s,rate_mbps\n",
		func(s int) string { return fmt.Sprintf("%d,8\n", s) }},
	"rate.ReadOpportunities": {"network: {default: {rate: {kind: trace, file: %s, format: mahimahi}}}", "",
		func(s int) string { return fmt.Sprintf("%d000\n", s) }},
	"plan.ReadDevices": {"", "device,on_s,off_s\n", func(s int) string { return fmt.Sprintf("a,%d,%d\n", s, s+1) }},
}

func TestEveryFileOfTimesOfAnotherClockCountsFromItsFirstTimeAndSaysSo(t *testing.T) {
	for name, r := range readersOfTimes {
		file := filepath.Join(t.TempDir(), "times.csv")
		for first, want := range map[int]string{0: "", 1732678850: "are of another clock"} {
			text := r.header + r.line(first) + r.line(first+2) + r.line(first+5)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			node, rest := "{name: p, count: 2, compute: {step: 5ms}}", fmt.Sprintf(r.setting, file)
			if r.setting == "" {
				node, rest = "{name: p, count: 2, compute: {step: 5ms}, available: {file: "+file+"}}", ""
			}
			root, err := syntax.Parse(
				"plan.yaml",
				[]byte("data: {set: synthetic-traffic}\nmodel: {kind: mlp, layers: [93, 5]}\n"+
					"architecture: {kind: gossip}\nnodes: ["+node+"]\nstop: {time: 1m}\n"+rest+"\n"),
			)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.ReadPlan(root)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Default().Read(p)
			if err != nil {
				t.Fatalf("%s from %d s: %v", name, first, err)
			}
			told := strings.Join(s.Notes, "\n")
			if (told == "") != (want == "") || !strings.Contains(told, want) {
				t.Errorf("%s from %d s: told %q, want %q", name, first, told, want)
			}
		}
	}
}

// A file of times that is not read by readTimes would be read with a clock of its own.
func TestEveryReaderOfTracesIsAmongThoseThatAreTried(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`read(Times|Beside)\(c, .*, ("trace", )?(\w+\.\w+)\)`).FindAllStringSubmatch(
			string(text), -1) {
			if m[2] != "" {
				t.Errorf("%s: %s reads a trace without the clock that all have", file, m[3])
			}
			if _, tried := readersOfTimes[m[3]]; m[1] == "Times" && !tried {
				t.Errorf("%s: %s is not tried", file, m[3])
			}
			if m[1] == "Times" {
				found++
			}
		}
	}
	if found != len(readersOfTimes) {
		t.Errorf("%d readers of times found, %d are tried", found, len(readersOfTimes))
	}
}

func TestWhatIsDueAfterTheEndIsTold(t *testing.T) {
	for _, late := range []string{
		"schedule: [{at: 50h, node: p2, do: crash}]", "schedule: [{at: 1m, link: [p1, p2], delay: 1s}]",
		"schedule: [{at: 2m, cut: [p1, p2], for: 1s}]", "schedule: [{at: 2m, topology: ring}]",
		"network: {default: {delay: 1ms, outages: [{from: 100h, for: 1s}]}}",
		"network: {links: [{between: [p1, p2], outages: [{from: 100h, for: 1s}]}]}",
	} {
		root, err := syntax.Parse(
			"plan.yaml",
			[]byte("data: {set: synthetic-traffic}\nmodel: {kind: mlp, layers: [93, 5]}\n"+
				"architecture: {kind: gossip}\nnodes: [{name: p, count: 2, compute: {step: 5ms}}]\nstop: {time: 1m}\n"+late+"\n"),
		)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.ReadPlan(root)
		if err != nil {
			t.Fatal(err)
		}
		if notes := p.Late(); len(notes) != 1 || !strings.Contains(notes[0], "never happens: stop.time is 1m") {
			t.Errorf("%s: told %q", late, notes)
		}
	}
}

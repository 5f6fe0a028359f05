package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const second = 1_000_000_000

func TestTracesAreRead(t *testing.T) {
	got, _, err := ReadDevices(strings.NewReader("# phones\ndevice,on_s,off_s\na,0,28800\nb,3600,7200.5 # charged\n\n"+
		"a,28800,28801\r\nb,10800,14400\n"), "trace.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := []Device{{{0, 28800 * second}, {28800 * second, 28801 * second}},
		{{3600 * second, 7200.5 * second}, {10800 * second, 14400 * second}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadTracesAreRefusedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    `trace.csv:1: no devices, expected the line "device,on_s,off_s"`,
		traceHeader + "\n":                    `trace.csv:2: no devices`,
		"a,0,1\n":                             `trace.csv:1: "a,0,1", expected the line "device,on_s,off_s"`,
		traceHeader + "\na,0\n":               `trace.csv:2: "a,0", expected a device and two times`,
		traceHeader + "\n,0,1\n":              `trace.csv:2: ",0,1", expected a device and two times`,
		traceHeader + "\na,-1,1\n":            `trace.csv:2: on_s "-1", expected a decimal number from 0 to 4611686018`,
		traceHeader + "\na,1,NaN\n":           `trace.csv:2: off_s "NaN", expected a decimal number`,
		traceHeader + "\na,1,9e99\n":          `trace.csv:2: off_s "9e99", expected a decimal number`,
		traceHeader + "\na,2,2\n":             `trace.csv:2: "a,2,2" ends before it has begun`,
		traceHeader + "\na,1,5\nb,0,1\na,4,6": `trace.csv:4: "a,4,6" begins before the time of a that stands before it`,
	} {
		if _, _, err := ReadDevices(strings.NewReader(text), "trace.csv"); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v\nwant %s", text, err, want)
		}
	}
}

// traced reads a plan whose nodes are available as given.
func traced(t *testing.T, available string) (*Plan, error) {
	t.Helper()
	plans, err := readAll("p.yaml", []byte("data: toy\nmodel: {kind: mlp}\narchitecture: {kind: federated}\n"+
		"nodes: [{name: w, count: 3, available: "+available+"}]\nstop: {time: 10h}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return plans[0], plans[0].Traced(func(a *Available) error {
		if a.File == "" {
			return errors.New("no file is named")
		}
		a.Devices = []Device{{{0, 7 * second}, {8 * second, 9 * second}}}
		return nil
	})
}

func TestWhatNodesDoIsBounded(t *testing.T) {
	for available, want := range map[string]string{
		"{on: 1h, off: 2h}":             "",
		"{file: trace.csv, repeat: 9s}": "",
		"{file: trace.csv, repeat: 8s}": "p.yaml:4:66: nodes[0].available.repeat: the trace goes on until 9s; accepted",
		"{on: 10ms, off: 10ms}":         "p.yaml:4:40: nodes[0].available: up to here nodes come and go more",
	} {
		_, err := traced(t, available)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", available, err, want)
		}
	}
}

// A plan is written with what it says, once for a group.
func TestAvailabilityIsWrittenAsItWasRead(t *testing.T) {
	for _, available := range []string{"{on: 1h, off: 2h}", "{on: 1h, off: 2h, first: 0ns}",
		"{file: trace.csv, repeat: 9s}"} {
		p, err := traced(t, available)
		if err != nil {
			t.Fatal(err)
		}
		n, err := p.Node()
		if err != nil {
			t.Fatal(err)
		}
		if text := n.YAML(); !strings.Contains(text, "count: 3") ||
			!strings.Contains(text, "available: "+strings.Replace(available, "0ns", "0s", 1)) {
			t.Errorf("%s is written as\n%s", available, text)
		}
	}
}

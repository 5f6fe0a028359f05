package driver_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

func TestBadInputIsToldBeforeAnythingIsWritten(t *testing.T) {
	t.Setenv("GRADWIRE_DATA", "") // or real data sets would be found
	data := t.TempDir()
	for _, x := range []struct {
		name, set string
		options   driver.Options
		want      string
	}{
		{name: "missing data set", set: "data={set: nsl-kdd}",
			want: "small.yaml:--set data={set: nsl-kdd}: data.set: data set nsl-kdd: KDDTrain+.txt"},
		{name: "no published test set", set: "data.test=published",
			want: "data.test: synthetic traffic has no published test set; give a share to hold out, such as 25%"},
		{name: "another number of inputs", set: "model.layers=[94, 5]",
			want: "small.yaml:4:8: model: the model takes 94 inputs, data set synthetic-traffic has 93"},
		{name: "another number of classes", set: "model.layers=[93, 6]",
			want: "small.yaml:4:8: model: the model tells 6 classes apart, data set synthetic-traffic has 5"},
		{name: "a worker that does not exist",
			set:  "sweep={data.split: [{kind: classes, workers: {fast: {DoS: 10%}}}]}",
			want: "split classes: unknown worker \"fast\""},
		{name: "a worker without samples", set: "sweep={data.split: [{kind: classes, workers: {near: {DoS: 10%}}}]}",
			want: "split classes leaves worker \"far\" without samples"},
		{name: "native in virtual time", set: "nodes.near.compute=native",
			want: "nodes[1].compute: compute: native has no meaning in virtual time"},
		{name: "unknown clock", options: driver.Options{Clock: "sun"},
			want: "clock \"sun\" is not known; accepted are virtual and real"},
		{name: "too many runs",
			set: "sweep={train.batch: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, " +
				"22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, " +
				"47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, " +
				"71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, " +
				"94, 95, 96, 97, 98, 99, 100, 101]}", options: driver.Options{},
			want: "101 points of 10000 repeats are 1010000 runs; at most 1000000 are accepted"},
		{name: "nothing to continue", options: driver.Options{Continue: true}, want: "no folder was named"},
	} {
		t.Run(x.name, func(t *testing.T) {
			set := []string{"sweep={}"}
			if x.name == "too many runs" {
				set = append(set, "repeats=10000")
			}
			if x.set != "" {
				set = append(set, x.set)
			}
			o := x.options
			o.Data = data
			if !o.Continue {
				o.Out = filepath.Join(t.TempDir(), "results", "out")
			}
			_, err := driver.Run(t.Context(), load(t, small, set...), o)
			expectInput(t, err, strings.TrimPrefix(x.want, "small.yaml:--set "))
			if o.Out == "" {
				return
			}
			if _, err := os.Stat(filepath.Dir(o.Out)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a folder was left behind: %v", err)
			}
		})
	}
}

func TestTopologyThatDoesNotSuitTheArchitectureIsBadInput(t *testing.T) {
	const ring = `
data: {set: synthetic-traffic, samples: 500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: ad-psgd}
nodes: [{name: peer, count: 4, compute: {step: 5ms}}]
network: {topology: ring, default: {delay: 5ms}}
evaluate: {every: 20ms}
stop: {time: 100ms}
`
	for set, want := range map[string]string{
		"network.topology=complete": "ring.yaml:4:15: architecture: the complete topology of 4 " +
			"nodes is not bipartite",
		"nodes=[{name: peer, count: 5}]": "ring.yaml:4:15: architecture: the topology, with all edges " +
			"that the schedule gives it, is not bipartite",
		"architecture.graph=exponential":             "architecture: graph: exponential brings its own topology",
		"architecture={kind: d-psgd, matrix: [[1]]}": "architecture: the mixing matrix has 1 rows for 4 nodes",
		"architecture={kind: d-psgd, matrix: [[0.5, 0, 0.5, 0], [0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1]]}": "" +
			"the topology has no edge from peer1 to peer3",
		"schedule=[{at: 5ms, topology: ring}, {at: 9ms, topology: star}]": "architecture: the topology, with all " +
			"edges that the schedule gives it, is not bipartite, as ad-psgd needs it",
		"network.topology=complete; architecture.graph=exponential; schedule=[{at: 50ms, topology: ring}]": "" +
			"schedule[0].topology: graph: exponential brings its own topology",
	} {
		p, err := driver.Parse("ring.yaml", []byte(ring), strings.Split(set, "; ")...)
		if err == nil {
			_, err = driver.Run(t.Context(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		}
		expectInput(t, err, want)
	}
	for _, set := range []string{
		"schedule=[{at: 50ms, topology: ring}]",
		"architecture={kind: d-psgd}; schedule=[{at: 50ms, topology: star}]",
		"architecture={kind: gossip}; schedule=[{at: 50ms, topology: star}]",
		"architecture={kind: d-psgd, matrix: [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]}",
	} {
		p, err := driver.Parse("ring.yaml", []byte(ring), strings.Split(set, "; ")...)
		if err == nil {
			_, err = driver.Run(t.Context(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		}
		if err != nil {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func expectInput(t *testing.T, err error, want string) {
	t.Helper()
	var input *driver.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v (%T)\nwant an InputError with %s", err, err, want)
	}
}

func TestFolderThatCannotBeUsedIsBadInput(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	full := filepath.Join(dir, "full")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Mkdir(full, 0o700),
		os.WriteFile(filepath.Join(full, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]driver.Options{
		"this folder exists and is not empty":    {Out: full},
		"output folder: open " + file:            {Out: file},
		"output folder: open " + file + "/below": {Out: filepath.Join(file, "below")},
		"--continue: " + dir:                     {Out: filepath.Join(dir, "nowhere"), Continue: true},
		"this folder holds no record":            {Out: full, Continue: true},
	} {
		_, err := driver.Run(t.Context(), load(t, small), o)
		expectInput(t, err, want)
	}
}

func TestFaultOfDataNamesThePlanAndTheLineOfTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "KDDTrain+.txt")
	if err := os.WriteFile(path, []byte("0,tcp,http\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(small, "synthetic-traffic, samples: 1500", "nsl-kdd", 1)
	_, err := driver.Run(t.Context(), load(t, text), driver.Options{Data: dir, Out: filepath.Join(dir, "out")})
	expectInput(t, err, "small.yaml:3:13: data.set: "+path+":1: 3 comma-separated fields")
	var place *syntax.Error
	if !errors.As(err, &place) || place.Pos.Line != 3 {
		t.Errorf("no place in %v", err)
	}
}

func TestFaultOfAFileOfOnesOwnPointsAtItsKey(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "t.csv"), filepath.Join(dir, "t.csv.more")
	if err := errors.Join(os.WriteFile(good, []byte("1,a\n2,b\n"), 0o600),
		os.WriteFile(bad, []byte("1,a\nx,b\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"file: " + bad:                          "data.file: " + bad,
		"file: " + good + ", test-file: " + bad: "data.test-file: " + bad,
	} {
		text := strings.Replace(small, "set: synthetic-traffic, samples: 1500", "set: csv, "+set, 1)
		_, err := driver.Run(t.Context(), load(t, text), driver.Options{Out: filepath.Join(dir, "out")})
		expectInput(t, err, want)
	}
}

func TestPlanThatCannotBeReadIsBadInput(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, make([]byte, syntax.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, path := range map[string]string{"the plan cannot be read: there is no file ": filepath.Join(dir, "none.yaml"),
		"bytes that a plan may have": large, "is a folder": dir} {
		_, err := driver.Load(path)
		expectInput(t, err, want)
	}
	_, err := driver.Parse("p.yaml", []byte("a: [1"))
	expectInput(t, err, "p.yaml:1")
	_, err = driver.Parse("p.yaml", []byte("a: 1"), "a.b")
	expectInput(t, err, "a.b")
	p := load(t, small)
	expectInput(t, p.Set("train.batch.size", "3"), "train.batch")
	if err := p.Set("train.batch", "16"); err != nil {
		t.Error(err)
	}
	text, err := p.Resolved(nil)
	if err != nil || !strings.Contains(text, "batch: 16") {
		t.Errorf("resolved: %v\n%s", err, text)
	}
}

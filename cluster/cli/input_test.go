package cli_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/turns"
)

// mistake is a bad plan, or a bad command line for a good one.
type mistake struct {
	name     string
	old, new string   // what is replaced in the small plan
	args     []string // default: run plan.yaml
	prepare  func(t *testing.T)
}

// What mistakes replace, and by what.
const (
	bomb         = "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n"
	nsl          = "{set: nsl-kdd}"
	digits       = "{set: mnist}"
	data, layers = "{set: synthetic-traffic, samples: 1500}", "layers: [93, 8, 5]"
)

var mistakes = []mistake{
	{name: "unknown-key", old: "batch: 32", new: "batch: 32, bacth: 64"},
	{name: "unknown-section", old: "name: small", new: "nane: small"},
	{name: "duplicate-key", old: "batch: 32", new: "batch: 32, batch: 64"},
	{name: "missing-unit", old: "delay: 50ms", new: "delay: 50"},
	{name: "unknown-unit", old: "delay: 50ms", new: "delay: 50msec"},
	{name: "negative-delay", old: "delay: 50ms", new: "delay: -50ms"},
	{name: "negative-step", old: "name: near, role: worker, compute: {step: 5ms}",
		new: "name: near, role: worker, compute: {step: -5ms}"},
	{name: "yaml-bomb", old: "name: small\n", new: bomb},
	{name: "cycle", old: "name: small\n", new: "name: &x [*x]\n"},
	{name: "node-twice", old: "name: far", new: "name: near"},
	{name: "node-called-coordinator", old: "name: far", new: "name: coordinator"},
	{name: "link-to-nobody", old: "between: [server, far]", new: "between: [server, fra]"},
	{name: "server-that-joins", old: "evaluate: {", new: "schedule: [{at: 1s, node: server, do: join}]\nevaluate: {"},
	{name: "topology-that-does-not-fit", old: "network:\n", new: "network:\n  topology: hypercube\n"},
	{name: "topology-not-connected", old: "network:\n",
		new: "network:\n  topology: {kind: erdos-renyi, probability: 0.001}\n"},
	{name: "shares-over-100", old: data,
		new: "{set: synthetic-traffic, split: {kind: classes, workers: {near: {DoS: 80%}, far: {DoS: 30%}}}}"},
	{name: "share-over-100", old: data,
		new: "{set: synthetic-traffic, split: {kind: classes, workers: {near: {DoS: 180%}}}}"},
	{name: "unknown-class", old: data,
		new: "{set: synthetic-traffic, split: {kind: classes, workers: {near: {Dos: 80%}}}}"},
	{name: "unknown-data-set", old: data, new: "{set: nslkdd}"},
	{name: "missing-data-set", old: data, new: nsl},
	{name: "no-data-folder", old: data, new: nsl, args: []string{"run", "plan.yaml"}},
	{name: "missing-mnist", old: data, new: digits},
	{name: "csv-42-fields", old: data, new: nsl, prepare: csv(connection[strings.Index(connection, ",")+1:])},
	{name: "csv-1e999", old: data, new: nsl, prepare: csv(connection,
		strings.Replace(connection, "0,tcp", "1e999,tcp", 1))},
	{name: "csv-kept-1e999", old: data, new: nsl, prepare: csv(connection,
		strings.Replace(connection, "0.17", "1e999", 1))},
	{name: "csv-empty", old: data, new: nsl, prepare: csv()},
	{name: "idx-truncated", old: data, new: digits, prepare: mnist(func(b []byte) []byte { return b[:len(b)-1] })},
	{name: "idx-too-long", old: data, new: digits, prepare: mnist(func(b []byte) []byte { return append(b, 0) })},
	{name: "idx-wrong-magic", old: data, new: digits, prepare: mnist(func(b []byte) []byte { b[2] = 0x0d; return b })},
	{name: "idx-wrong-count", old: data, new: digits,
		prepare: mnist(func(b []byte) []byte { b[7]++; return append(b, make([]byte, 4)...) })},
	{name: "idx-huge", old: data, new: digits, prepare: mnist(func(b []byte) []byte {
		b[4], b[5] = 0xff,
			0xff
		return b
	})},
	{name: "idx-gzip-truncated", old: data, new: digits, prepare: mnistGzip},
	{name: "inputs-do-not-fit", old: layers, new: "layers: [94, 8, 5]"},
	{name: "classes-do-not-fit", old: layers, new: "layers: [93, 8, 6]"},
	{name: "native-in-virtual-time", old: "name: near, role: worker, compute: {step: 5ms}",
		new: "name: near, role: worker, compute: native"},
	{name: "unknown-role", old: "name: near, role: worker", new: "name: near, role: wroker"},
	{name: "small-shard", old: "kind: parameter-server", new: "kind: parameter-server, servers: {shard: 1 B}"},
	{name: "no-bound", old: "stop: {epochs: 2}", new: "stop: {target: 94%}"},
	{name: "rate-negative", old: "rate: 0.1", new: "rate: -0.1"},
	{name: "not-yaml", old: "data: {set", new: "data: {{set"},
	{name: "folder-that-exists", args: []string{"run", "plan.yaml", "--out", "full"},
		prepare: func(t *testing.T) { write(t, "full/x", "x") }},
	{name: "folder-that-is-a-file", args: []string{"run", "plan.yaml", "--out", "plan.yaml"}},
	{name: "continue-nothing", args: []string{"run", "plan.yaml", "--continue", "nowhere"}},
	{name: "continue-and-out", args: []string{"run", "plan.yaml", "--continue", "a", "--out", "b"}},
	{name: "unknown-flag", args: []string{"run", "plan.yaml", "--repeat", "3"}},
	{name: "unknown-command", args: []string{"rum", "plan.yaml"}},
	{name: "predict-no-data", args: []string{"predict", "out/runs/0000"}},
	{name: "predict-no-run", args: []string{"predict", "out", "--data", "plan.yaml"}},
	{name: "predict-no-model", args: []string{"predict", "plan.yaml", "--data", "plan.yaml"}},
	{name: "eval-labels-of-no-file", args: []string{"eval", "out/runs/0000", "--labels", "labels.npy"}},
	{name: "unknown-list", args: []string{"list", "model"}},
	{name: "unknown-plan-command", args: []string{"plan", "print"}},
	{name: "no-plan", args: []string{"run"}},
	{name: "two-plans", args: []string{"run", "plan.yaml", "plan.yaml"}},
	{name: "nonexistent-plan", args: []string{"run", "plans.yaml"}},
	{name: "plan-without-a-name", args: []string{"run", ""}},
	{name: "plan-like-no-other", args: []string{"run", "data/other.yaml"}},
	{name: "new-plan-that-exists", args: []string{"plan", "new", "--out", "plan.yaml"}},
	{name: "check-nonexistent-plan", args: []string{"plan", "check", "plans.yaml"}},
	{name: "plan-that-is-a-folder", args: []string{"run", "."}},
	{name: "unknown-clock", args: []string{"run", "plan.yaml", "--clock", "sun"}},
	{name: "unknown-format", args: []string{"run", "plan.yaml", "--format", "xml"}},
	{name: "no-jobs", args: []string{"run", "plan.yaml", "--jobs", "0"}},
	{name: "no-repeats", args: []string{"run", "plan.yaml", "--repeats", "0"}},
	{name: "repeats-too-many", args: []string{"submit", "plan.yaml", "--repeats", "10001"}},
	{name: "set-repeats-too-many", args: []string{"run", "plan.yaml", "--set", "repeats=10001"}},
	{name: "seed-below-zero", args: []string{"run", "plan.yaml", "--seed", "-1"}},
	{name: "repeats-no-number", args: []string{"run", "plan.yaml", "--repeats", "many"}},
	{name: "set-unknown-key", args: []string{"run", "plan.yaml", "--set", "train.bacth=3"}},
	{name: "set-unknown-node", args: []string{"run", "plan.yaml", "--set", "nodes.slow.compute.step=3ms"}},
	{name: "set-without-value", args: []string{"run", "plan.yaml", "--set", "train.batch"}},
	{name: "report-without-folder", args: []string{"report"}},
	{name: "report-no-record", args: []string{"report", "."}},
	{name: "report-file", args: []string{"report", "plan.yaml"}},
	{name: "report-nowhere", args: []string{"report", "nowhere"}},
	{name: "report-into-another-file", args: []string{"report", ".", "--out", "plan.yaml"}},
	{name: "report-summary-cut-off", args: []string{"report", "."},
		prepare: func(t *testing.T) { write(t, "summary.json", "{\n\"runs\": [") }},
	{name: "report-summary-of-python", args: []string{"report", "."},
		prepare: func(t *testing.T) { write(t, "summary.json", "{\n\"runs\": [{\"final_accuracy\": -Infinity}]}") }},
	{name: "report-run-missing", args: []string{"report", "."},
		prepare: func(t *testing.T) { write(t, "summary.json", oneRun) }},
	{name: "list-invariants-argument", args: []string{"list", "invariants", "x"}},
	{name: "completion-argument", args: []string{"completion", "bash", "x"}},
	{name: "help-unknown", args: []string{"help", "rnu"}},
	{name: "help-below-a-command", args: []string{"help", "run", "x"}},
	{name: "help-unknown-list", args: []string{"help", "list", "model"}},
	{name: "help-flag-of-unknown", args: []string{"plan", "chek", "--help"}},
	{name: "run-into-a-file", args: []string{"run", "plan.yaml", "--out", "plan.yaml/x"}},
	{name: "run-data-is-a-file", args: []string{"run", "plan.yaml", "--data", "plan.yaml"}},
	{name: "run-data-nowhere", args: []string{"run", "plan.yaml", "--data", "nowhere"}},
	{name: "continue-a-file", args: []string{"run", "plan.yaml", "--continue", "plan.yaml"}},
	{name: "continue-no-record", args: []string{"run", "plan.yaml", "--continue", "data"}},
	{name: "plan-that-is-an-empty-folder", args: []string{"plan", "check", "data"}},
	{name: "identity-nowhere", args: []string{"submit", "plan.yaml", "--identity", "nowhere"}},
	{name: "identity-of-no-authority", args: []string{"identity", "issue", "nowhere", "--node", "a"}},
	{name: "identity-in-a-file", args: []string{"identity", "init", "plan.yaml/ca"}},
	{name: "node-cores-below-zero", args: []string{"node", "--insecure", "--name", "a", "--cores", "-1"}},
	{name: "drill-time-below-zero", args: []string{"drill", "--seeds", "5", "--time", "-1s"}},
	{name: "up-timeout", args: []string{"up", "--node-timeout", "1s"}},
	{name: "diff-one", args: []string{"diff", "."}},
	{name: "diff-format", args: []string{"diff", ".", ".", "--format", "xml"}},
	{name: "diff-no-record", args: []string{"diff", ".", "."},
		prepare: func(t *testing.T) { write(t, "summary.json", `{"surprise": 1}`) }},
	{name: "diff-run-and-record", args: []string{"diff", ".", "runs/0000"},
		prepare: func(t *testing.T) { write(t, "runs/0000/run.json", "{}") }},
	{name: "diff-runs-not-whole", args: []string{"diff", "runs/0000", "runs/0000"},
		prepare: func(t *testing.T) { write(t, "runs/0000/run.json", "{\n\"run\": 0,\n") }},
	{name: "replay-record", args: []string{"replay", "."}},
	{name: "replay-nowhere", args: []string{"replay", "runs/0007"},
		prepare: func(t *testing.T) { write(t, "summary.json", `{"runs": []}`) }},
	{name: "drill-nothing", args: []string{"drill"}},
	{name: "drill-plan-and-seeds", args: []string{"drill", "plan.yaml", "--seeds", "5"}},
	{name: "drill-no-seeds", args: []string{"drill", "plan.yaml", "--seeds", "0"}},
	{name: "drill-seeds-and-set", args: []string{"drill", "--seeds", "5", "--set", "train.batch=3"}},
	{name: "drill-seeds-and-seed", args: []string{"drill", "--seeds", "5", "--seed", "3"}},
	{name: "drill-seeds-and-out", args: []string{"drill", "--seeds", "5", "--out", "out"}},
	{name: "drill-seeds-and-data", args: []string{"drill", "--seeds", "5", "--data", "data"}},
	{name: "drill-from-without-seeds", args: []string{"drill", "plan.yaml", "--from", "7"}},
	{name: "drill-time-without-seeds", args: []string{"drill", "plan.yaml", "--time", "2m"}},
	{name: "links-without-plan", args: []string{"links"}},
	{name: "links-nonexistent-plan", args: []string{"links", "plans.yaml"}},
	{name: "links-no-duration", args: []string{"links", "plan.yaml", "--time", "10"}},
	{name: "links-no-time", args: []string{"links", "plan.yaml", "--time", "0s"}},
	{name: "links-too-long", args: []string{"links", "plan.yaml", "--time", "10000h"}},
	{name: "links-no-samples", args: []string{"links", "plan.yaml", "--samples", "0"}},
	{name: "links-many-samples", args: []string{"links", "plan.yaml", "--samples", "1000000"}},
	{name: "links-no-size", args: []string{"links", "plan.yaml", "--size", "large"}},
	{name: "links-size-huge", args: []string{"links", "plan.yaml", "--size", "10 GB"}},
	{name: "links-format", args: []string{"links", "plan.yaml", "--format", "xml"}},
	{name: "links-seed", args: []string{"links", "plan.yaml", "--seed", "one"}},
	{name: "links-point", args: []string{"links", "plan.yaml", "--point", "2"}},
	{name: "links-into-a-file", args: []string{"links", "plan.yaml", "--out", "plan.yaml"}},
	{name: "links-network-none",
		old: "network:\n  links:\n    - {between: [server, near], delay: 1ms}\n    - {between: [server, far], delay: " +
			"50ms}\n", new: "network: none\n", args: []string{"links", "plan.yaml"}},
	{name: "links-flapping-for-days", old: "[server, far], delay: 50ms",
		new:  "[server, far], outages: [{kind: gilbert-elliott, up: 1ms, down: 1ms}]",
		args: []string{"links", "plan.yaml", "--time", "100h"}},
	{name: "links-trace", old: "delay: 50ms", new: "delay: {kind: trace, file: trace.csv}",
		args:    []string{"links", "plan.yaml"},
		prepare: func(t *testing.T) { write(t, "trace.csv", "# mine\ntime_s,delay_ms\n0,1\n0,2\n") }},
	{name: "links-ring", old: "network:\n", new: "network:\n  topology: {kind: file, file: ring.csv}\n",
		args:    []string{"links", "plan.yaml"},
		prepare: func(t *testing.T) { write(t, "ring.csv", "server,near\nserver,fra\n") }},
	{name: "set-bad-value", args: []string{"plan", "show", "plan.yaml", "--set", "train.batch=many"}},
}

// oneRun is a summary of a run.
const oneRun = `{"runs": [{"run": 0, "point": {}, "seed": 1, "clock": "virtual"}]}`

func TestBadInputIsToldWithItsPlaceAndEndsWithTwo(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "bad"))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			if testing.Short() {
				turns.Row(t, i, len(mistakes), 3)
			}
			plan := small
			if m.old != "" {
				plan = edit(t, small, m.old, m.new)
			}
			if m.new == digits {
				plan = edit(t, plan, "[93, 8, 5]", "[784, 8, 10]")
			}
			enter(t, plan)
			if err := os.Mkdir("data", 0o700); err != nil {
				t.Fatal(err)
			}
			if m.prepare != nil {
				m.prepare(t)
			}
			args := m.args
			if args == nil {
				args = []string{"run", "plan.yaml", "--data", "data", "--out", "out"}
			}
			code, out, errs := gradwire(t, args...)
			expectCode(t, cli.ExitInput, code, errs)
			if out != "" {
				t.Errorf("on standard output: %s", out)
			}
			expectFile(t, filepath.Join(golden, m.name+".txt"), errs)
			for _, folder := range []string{"out", "results"} {
				if _, err := os.Stat(folder); err == nil {
					t.Errorf("a folder %s was left behind", folder)
				}
			}
		})
	}
}

// connection is a line of NSL-KDD.
const connection = "0,tcp,ftp_data,SF,491,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2,2," +
	"0.00,0.00,0.00,0.00,1.00,0.00,0.00,150,25,0.17,0.03,0.17,0.00,0.00,0.00,0.05,0.00,normal,20"

// csv puts lines into KDDTrain+.
func csv(lines ...string) func(t *testing.T) {
	return func(t *testing.T) { write(t, "data/nsl-kdd/KDDTrain+.txt", strings.Join(lines, "\n")) }
}

// idxFile returns an IDX file of bytes, the format of MNIST.
func idxFile(content []byte, dims ...uint32) []byte {
	b := []byte{0, 0, 8, byte(len(dims))}
	for _, n := range dims {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, content...)
}

// images is an IDX file of 10 images of 2 × 2 pixels, labels one of their classes.
func images() []byte { return idxFile(make([]byte, 40), 10, 2, 2) }

func labels() []byte { return idxFile([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10) }

// mnist writes a tiny MNIST whose training images are spoiled.
func mnist(spoil func([]byte) []byte) func(t *testing.T) {
	return func(t *testing.T) {
		write(t, "data/mnist/train-images-idx3-ubyte", string(spoil(images())))
		write(t, "data/mnist/train-labels-idx1-ubyte", string(labels()))
		write(t, "data/mnist/t10k-images-idx3-ubyte", string(images()))
		write(t, "data/mnist/t10k-labels-idx1-ubyte", string(labels()))
	}
}

func mnistGzip(t *testing.T) {
	mnist(func(b []byte) []byte { return b })(t)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(images()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("data/mnist/train-images-idx3-ubyte"); err != nil {
		t.Fatal(err)
	}
	write(t, "data/mnist/train-images-idx3-ubyte.gz", string(z.Bytes()[:z.Len()-9]))
}

func TestDataThatIsWholeIsRead(t *testing.T) {
	own := "{set: idx, images: data/mnist/train-images-idx3-ubyte, labels: data/mnist/train-labels-idx1-ubyte, " +
		"test-images: data/mnist/t10k-images-idx3-ubyte, test-labels: data/mnist/t10k-labels-idx1-ubyte}"
	plan := edit(t, small, "{set: synthetic-traffic, samples: 1500}", own)
	enter(t, edit(t, plan, "[93, 8, 5]", "[4, 10]"))
	mnist(func(b []byte) []byte { return b })(t)
	code, _, errs := gradwire(t, "run", "plan.yaml", "--out", "out")
	expectCode(t, cli.ExitDone, code, errs)
	write(t, "plan.yaml", edit(t, strings.Replace(plan, own, "{set: mnist}", 1), "[93, 8, 5]", "[784, 10]"))
	code, _, errs = gradwire(t, "run", "plan.yaml", "--data", "data", "--out", "other")
	expectCode(t, cli.ExitInput, code, errs)
	if !strings.Contains(errs,
		"train-images-idx3-ubyte: the file is cut short: 56 bytes of content; the published file has 47040016") {
		t.Errorf("a tiny MNIST is met with\n%s", errs)
	}
}

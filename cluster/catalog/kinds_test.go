package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn"
)

// required are the settings that a plan must give, by sort and kind, as small as they can be.
var required = map[string]string{
	"model mlp":    "layers: [4, 2]",
	"model linear": "inputs: 4",
	"model network": "input: [1, 28, 28], layers: [{kind: conv2d, channels: 3, kernel: 5}, max-pool, " +
		"relu, flatten, {kind: dense, outputs: 10}]",
	"layer conv2d":              "channels: 3, kernel: 5",
	"layer dense":               "outputs: 10",
	"data set libsvm":           "file: samples.txt",
	"data set csv":              "file: samples.csv",
	"data set idx":              "images: images, labels: labels",
	"data set npy":              "x: images, y: labels",
	"data set npz":              "file: images",
	"split classes":             "workers: {a: {x: 20%, y: 0.5}, b: {x: 80%}}",
	"split column":              "column: site, workers: {a: [fra, 7], b: [lon]}",
	"split dirichlet":           "alpha: 0.3",
	"split drawn":               "samples: 20, alpha: 0.5",
	"rate schedule step":        "first: 0.1, every: 100",
	"rate schedule exponential": "first: 0.1, decay: 0.99",
	"rate schedule inverse":     "first: 0.1, half: 1000",
	"rate schedule cosine":      "first: 0.1, steps: 1000",
	"rate schedule warmup":      "steps: 10, then: 0.1",
	"delay constant":            "delay: 5ms",
	"delay uniform":             "range: 1s..5s",
	"delay normal":              "mean: 10ms, std: 2ms",
	"delay exponential":         "mean: 10ms",
	"delay pareto":              "min: 10ms, alpha: 2.5",
	"delay log-normal":          "median: 40ms, sigma: 0.5",
	"delay random-walk":         "first: 1s..5s, step: 0.5s",
	"delay trace":               "file: trace.csv",
	"topology random-regular":   "degree: 4",
	"topology file":             "file: edges.csv",
}

// folder is a folder with a trace, samples and a list of edges in it.
func folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "trace.csv"), "time_s,delay_s\n0,0.001\n1,0.25\n")
	write(t, filepath.Join(dir, "samples.txt"), "-1 1:1\n+1 2:1\n")
	write(t, filepath.Join(dir, "samples.csv"),
		"id,age,colour,income\n1,30,red,low\n2,45,blue,high\n3,50,red,high\n4,28,red,low\n")
	write(t, filepath.Join(dir, "images"), "\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x03\x00\x33\x66\x99\xcc\xff")
	write(t, filepath.Join(dir, "labels"), "\x00\x00\x08\x01\x00\x00\x00\x02\x01\x00")
	write(t, filepath.Join(dir, "edges.csv"), "s,a # near\ns,b\n")
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, file, text string) *syntax.Node {
	t.Helper()
	n, err := syntax.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// section is the smallest section that names a kind.
func section(t testing.TB, dir, key, what, kind string) *syntax.Node {
	t.Helper()
	text := fmt.Sprintf("{%s: %s", key, kind)
	if more := required[what+" "+kind]; more != "" {
		text += ", " + more
	}
	return parse(t, filepath.Join(dir, "plan.yaml"), text+"}")
}

// checkKinds checks every kind of one sort. Key is what names the kind.
func checkKinds[T any](t *testing.T, c *Catalog, ks *Kinds[T], key string) {
	dir := folder(t)
	for _, k := range ks.All() {
		t.Run(ks.what+" "+k.Name, func(t *testing.T) {
			value, resolved, err := ks.read(c, section(t, dir, key, ks.what, k.Name), key)
			if err != nil {
				t.Fatal(err)
			}
			again, twice, err := ks.read(c, parse(t, filepath.Join(dir, "resolved.yaml"), resolved.YAML()), key)
			if err != nil {
				t.Fatalf("the resolved form cannot be read: %v\n%s", err, resolved.YAML())
			}
			if !resolved.Equal(twice) {
				t.Errorf("resolved once:\n%s\ntwice:\n%s", resolved.YAML(), twice.YAML())
			}
			if _, hasFunctions := any(value).(Loader); !hasFunctions && !reflect.DeepEqual(value, again) {
				t.Errorf("made %+v, of the resolved form %+v", value, again)
			}
			checkSettings(t, c, ks, k, key, resolved)
			if k.Doc == "" || strings.HasSuffix(k.Doc, ".") {
				t.Errorf("the list shows %q", k.Doc)
			}
		})
	}
}

// checkSettings compares what a list shows with what reading demands and fills in.
func checkSettings[T any](t *testing.T, c *Catalog, ks *Kinds[T], k Kind[T], key string, resolved *syntax.Node) {
	t.Helper()
	shown := parse(t, "shown", k.Settings())
	bare := syntax.NewMap(syntax.Field{Key: key, Value: syntax.NewText(k.Name)})
	_, _, err := ks.read(c, bare, key)
	missing, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(err), "plan: missing: "), "; ")
	for _, f := range shown.Fields {
		isRequired := err != nil && slices.Contains(strings.Split(missing, ", "), f.Key)
		if got := f.Value.Text == "required"; got != isRequired {
			t.Errorf("%s is shown as %s; reading without it: %v", f.Key, f.Value.Flow(), err)
		}
		filled, ok := resolved.Get(f.Key)
		switch given := strings.Contains(required[ks.what+" "+k.Name], f.Key+":"); {
		case f.Value.Text == "required", given:
		case f.Value.Text == "optional":
			if ok {
				t.Errorf("%s is shown as optional, but filled in as %s", f.Key, filled.Flow())
			}
		case !ok || !filled.Equal(f.Value):
			t.Errorf("%s is shown as %s, but filled in as %v", f.Key, f.Value.Flow(), filled)
		}
	}
	if n, m := len(shown.Fields), len(resolved.Fields)-1; n < m {
		t.Errorf("%d keys are shown, %d filled in", n, m)
	}
}

func TestEveryKindReadsItsDefaultsAndWhatItResolvesTo(t *testing.T) {
	c := Default()
	checkKinds(t, c, &c.Models, "kind")
	checkKinds(t, c, &c.Datasets, "set")
	checkKinds(t, c, &c.Splits, "kind")
	checkKinds(t, c, &c.Optimizers, "kind")
	checkKinds(t, c, &c.Schedules, "kind")
	checkKinds(t, c, &c.Architectures, "kind")
	checkKinds(t, c, &c.Delays, "kind")
	checkKinds(t, c, &c.Topologies, "kind")
}

func TestKindsThatHoldKindsReadWhatTheyResolveTo(t *testing.T) {
	c := Default()
	for _, text := range []string{
		"{kind: sgd, rate: 0.2, weight-decay: 1e-4}",
		"{kind: momentum, rate: {kind: step, first: 0.1, every: 50}, nesterov: true}",
		"{kind: adam, rate: {kind: warmup, steps: 10, then: {kind: cosine, first: 0.1, steps: 200}}}",
	} {
		value, resolved, err := c.Optimizers.read(c, parse(t, "plan.yaml", text), "kind")
		if err != nil {
			t.Fatal(err)
		}
		again, twice, err := c.Optimizers.read(c, parse(t, "resolved.yaml", resolved.YAML()), "kind")
		if err != nil || !resolved.Equal(twice) || !reflect.DeepEqual(value, again) {
			t.Errorf("%s resolves to\n%s\n%v", text, resolved.YAML(), err)
		}
	}
}

// unnameable is what a plan cannot say in a section of a sort, and what it is told.
var unnameable = []struct{ sort, text, want string }{
	{"model", "{kind: mpl, layers: [4, 2]}", "plan.yaml:1:11: x.kind: unknown model \"mpl\"; did you mean mlp?"},
	{"model", "{layers: [4, 2]}", "plan.yaml:1:4: x: the model is given by its kind: write kind: and one of mlp"},
	{"model", "mlp", "plan.yaml:1:4: x: found \"mlp\" where a map is expected; write {kind: mlp}"},
	{"model", "{kind: [mlp]}", "plan.yaml:1:11: x.kind: the model is given by its kind"},
	{"model", "{kind: mlp, layers: [4, 2], layer: 3}", "plan.yaml:1:32: x.layer: unknown key"},
	{"model", "{kind: mlp}", "plan.yaml:1:4: x: missing: layers"},
	{"model", "{kind: mlp, layers: [4]}", "plan.yaml:1:24: x.layers: mlp: layers [4]: at least two widths"},
	{"model", "{kind: mlp, layers: [4, 2], activation: rely}", "plan.yaml:1:44: x.activation: "},
	{"optimizer", "{kind: sgd, rate: -1}", "plan.yaml:1:22: x.rate: "},
	{"optimizer", "{kind: sgd, rate: {kind: stairs}}", "plan.yaml:1:29: x.rate.kind: unknown rate schedule \"stairs\""},
	{"optimizer", "{kind: adam, beta1: 2}",
		"plan.yaml:1:24: x.beta1: 2 is out of range; accepted is 0 or more, below 1"},
	{"optimizer", "{kind: sgd, rate: }", "plan.yaml:1:22: x.rate: "},
	{"data", "{set: nls-kdd}", "plan.yaml:1:10: x.set: unknown data set \"nls-kdd\"; did you mean nsl-kdd?"},
	{"data", "{set: nsl-kdd, encoding: 94}", "plan.yaml:1:29: x.encoding: 94 is not accepted; accepted are 93, 122"},
	{"data", "{set: nsl-kdd, samples: 100}", "plan.yaml:1:19: x.samples: unknown key"},
	{"data", "{set: synthetic-digits, encoding: 93}", "plan.yaml:1:28: x.encoding: unknown key"},
	{"data", "{set: synthetic-digits, splt: 3}",
		"plan.yaml:1:28: x.splt: unknown key \"splt\"; did you mean split? (accepted: delivery, fit, samples, scale, " +
			"seed, split, test, validation)"},
	{"data", "{set: synthetic-traffic, samples: 3}",
		"plan.yaml:1:38: x.samples: 3 is out of range; accepted is 100 to 10000000"},
	{"data", "{set: libsvm}", "plan.yaml:1:4: x: missing: file"},
	{"data", "{set: libsvm, file: nowhere.txt}",
		"plan.yaml:1:24: x.file: the file of samples cannot be read: open nowhere.txt: "},
	{"data", "{set: libsvm, file: nowhere.txt, features: -1}",
		"plan.yaml:1:47: x.features: -1 is out of range; accepted is 0 to 1048576"},
	{"data", "{set: csv}", "plan.yaml:1:4: x: missing: file"},
	{"data", "{set: csv, file: nowhere.csv}",
		"plan.yaml:1:21: x.file: the file of samples cannot be read: open nowhere.csv: "},
	{"data", "{set: csv, file: nowhere.csv, separator: colon}",
		"plan.yaml:1:45: x.separator: unknown separator \"colon\" (accepted: comma, semicolon, tab, bar)"},
	{"data", "{set: csv, file: nowhere.csv, header: yes}",
		"plan.yaml:1:42: x.header: unknown header \"yes\" (accepted: detect, present, absent)"},
	{"data", "{set: idx, images: nowhere, labels: nowhere}",
		"plan.yaml:1:23: x.images: the file of samples cannot be read: open nowhere: "},
	{"data", "{set: idx, images: a, labels: b, test-labels: c}",
		"plan.yaml:1:50: x.test-labels: test-labels goes with test-images only"},
	{"data", "{set: npy, x: a, y: b, test-x: c}", "plan.yaml:1:35: x.test-x: test-x goes with test-y only"},
	{"data", "{set: npz, file: nowhere.npz}",
		"plan.yaml:1:21: x.file: the file of samples cannot be read: open nowhere.npz: "},
	{"data", "{set: mnist, test: most}",
		"plan.yaml:1:23: x.test: \"most\" is neither a share such as 25% nor the word published"},
	{"data", "{set: mnist, test: 0%}", "plan.yaml:1:23: x.test: a share of 0% leaves nothing"},
	{"data", "{set: mnist, test: 100%}", "plan.yaml:1:23: x.test: a share of 100% leaves nothing"},
	{"data", "{set: mnist, fit: test}", "plan.yaml:1:22: x.fit: unknown fit \"test\" (accepted: train, all)"},
	{"data", "{set: mnist, scale: log}", "plan.yaml:1:24: x.scale: "},
	{"data", "{set: mnist, split: {kind: shard}}", "plan.yaml:1:31: x.split.kind: unknown split \"shard\""},
	{"split", "{kind: classes, workers: {a: {x: 60%}, b: {x: 41%}}}",
		"plan.yaml:1:50: x.workers.b.x: the workers' shares of class \"x\" add up to 101%; at most 100% can be given " +
			"away"},
	{"split", "{kind: classes, workers: {a: {x: 120%}}}",
		"plan.yaml:1:37: x.workers.a.x: \"120%\" is not between 0% and 100%"},
	{"split", "{kind: dirichlet, alpha: 0}", "plan.yaml:1:29: x.alpha: 0 is out of range; accepted is more than 0"},
	{"split", "{kind: shards, per-worker: 0}",
		"plan.yaml:1:31: x.per-worker: 0 is out of range; accepted is 1 to 1000"},
	{"delay", "-5ms", "plan.yaml:1:4: x: \"-5ms\" is negative"},
	{"delay", "5", "plan.yaml:1:4: x: \"5\" has no unit"},
	{"delay", "{kind: uniform, range: 5s..1s}", "plan.yaml:1:27: x.range: "},
	{"delay", "{kind: normal, mean: 1s, std: 1s, min: 3s, max: 2s}",
		"plan.yaml:1:52: x.max: max is 2s: must be from 3s"},
	{"delay", "{kind: normal, mean: 9000h, std: 1s}",
		"plan.yaml:1:25: x.mean: 9000h is out of range; accepted is 0s to 8760h"},
	{"delay", "{kind: uniform, range: 1s..9000h}", "plan.yaml:1:27: x.range: range is 1s..9000h: must be from 1s to"},
	{"delay", "{kind: random-walk, first: 1s..5s, step: 1s, max: 3s}",
		"plan.yaml:1:31: x.first: first is 1s..5s: must be from"},
	{"delay", "9000h", "plan.yaml:1:4: x: delay is 9000h: must be 0s to 8760h"},
	{"delay", "{kind: trace, file: nowhere.csv}",
		"plan.yaml:1:24: x.file: the trace cannot be read: open nowhere.csv: "},
	{"delay", "[1ms]", "plan.yaml:1:4: x: the delay is given by its kind"},
	{"topology", "rign", "plan.yaml:1:4: x: unknown topology \"rign\"; did you mean ring?"},
	{"topology", "random-regular", "plan.yaml:1:4: x: missing: degree"},
	{"topology", "[ring]",
		"plan.yaml:1:4: x: the topology is given by its kind: write kind: and one of complete, ring"},
	{"topology", "{kind: ring, size: 3}", "plan.yaml:1:17: x.size: unknown key"},
	{"topology", "{kind: star, centre: hub}", "plan.yaml:1:25: x.centre: centre is hub: must be the name of a node"},
	{"topology", "{kind: tree, branching: 0}", "plan.yaml:1:28: x.branching: 0 is out of range; accepted is 1 or more"},
	{"topology", "{kind: grid, rows: 3}", "plan.yaml:1:23: x.rows: rows is 3: must be a divisor of the 4 nodes"},
	{"topology", "{kind: random-regular, degree: 4}", "plan.yaml:1:35: x.degree: degree is 4: must be from 1 to 3"},
	{"topology", "{kind: erdos-renyi, probability: 1.5}", "plan.yaml:1:37: x.probability: \"1.5\" is not between"},
	{"topology", "erdos-renyi", "plan.yaml:1:4: x: a random graph needs the probability of an edge or the mean degree"},
	{"topology", "{kind: small-world, neighbours: 3}", "plan.yaml:1:36: x.neighbours: neighbours is 3: must be even"},
	{"topology", "{kind: file, file: nowhere.csv}",
		"plan.yaml:1:23: x.file: the edge list cannot be read: open nowhere.csv: "},
	{"arch", "{kind: parameter-server, scale: median}",
		"plan.yaml:1:36: x.scale: unknown scale \"median\"; did you mean mean? (accepted: sum, mean)"},
	{"arch", "{kind: d-psgd, moved: -1}", "plan.yaml:1:26: x.moved: -1 is out of range; accepted is 0 or more"},
	{"arch", "{kind: d-psgd, lead: -2}", "plan.yaml:1:25: x.lead: -2 is out of range; accepted is 0 or more"},
	{"arch", "{kind: parameter-server, every: 0}",
		"plan.yaml:1:36: x.every: 0 is out of range; accepted is 1 to 1048576"},
	{"arch", "{kind: ad-psgd, moved: 0, lead: -2}",
		"plan.yaml:1:36: x.lead: -2 is out of range; accepted is 0 or more"},
	{"arch", "{kind: all-reduce, every: 0}", "plan.yaml:1:30: x.every: 0 is out of range; accepted is 1 to 1048576"},
	{"optimizer", "{kind: adam, weight-decay: -1}",
		"plan.yaml:1:31: x.weight-decay: -1 is out of range; accepted is 0 or more"},
	{"optimizer", "{kind: adam, beta2: 1}",
		"plan.yaml:1:24: x.beta2: 1 is out of range; accepted is 0 or more, below 1"},
}

func TestWhatAPlanCannotNameIsToldWithItsPlace(t *testing.T) {
	c := Default()
	read := map[string]func(n *syntax.Node) error{
		"model":     func(n *syntax.Node) error { _, _, err := c.Models.read(c, n, "kind"); return err },
		"optimizer": func(n *syntax.Node) error { _, _, err := c.Optimizers.read(c, n, "kind"); return err },
		"data":      func(n *syntax.Node) error { _, _, err := c.data(n); return err },
		"split":     func(n *syntax.Node) error { _, _, err := c.Splits.read(c, n, "kind"); return err },
		"delay":     func(n *syntax.Node) error { _, _, err := c.delay(n); return err },
		"topology": func(n *syntax.Node) error {
			_, _,
				err := c.topology(n, []string{"s", "a", "b", "d"})
			return err
		},
		"arch": func(n *syntax.Node) error { _, _, err := c.Architectures.read(c, n, "kind"); return err },
	}
	for _, x := range unnameable {
		t.Run(x.text, func(t *testing.T) {
			err := read[x.sort](parse(t, "plan.yaml", "x: "+x.text).At("x"))
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v\nwant %s", err, x.want)
			}
		})
	}
}

func TestFaultOfATraceNamesThePlanAndTheLineOfTheFile(t *testing.T) {
	c := Default()
	dir := folder(t)
	write(t, filepath.Join(dir, "bad.csv"), "time_s,delay_s\n0,0.1\n1,-3\n")
	_, _, err := c.delay(parse(t, filepath.Join(dir, "plan.yaml"), "{kind: trace, file: bad.csv}"))
	for _, want := range []string{filepath.Join(dir, "plan.yaml") + ":1:21: file: ",
		filepath.Join(dir, "bad.csv") + ":3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTraceIsLookedForBesideThePlan(t *testing.T) {
	c := Default()
	dir := folder(t)
	want := link.Trace{Points: []link.Point{{At: 0, Delay: 1e6}, {At: 1e9, Delay: 250e6}}, Repeat: true}
	for _, file := range []string{"trace.csv", filepath.Join(dir, "trace.csv")} {
		d, resolved, err := c.delay(parse(t, filepath.Join(dir, "plan.yaml"),
			fmt.Sprintf("{kind: trace, file: %q, repeat: true}", file)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(link.Delay(want), d); diff != "" {
			t.Error(diff)
		}
		if got, want := resolved.At("file").Text, filepath.Join(dir, "trace.csv"); got != want {
			t.Errorf("the file resolves to %q, want %q, which can be found from anywhere", got, want)
		}
	}
}

func TestFilesOfSamplesAreTestedOnTheTestFileWhereThereIsOne(t *testing.T) {
	c := Default()
	dir := folder(t)
	write(t, filepath.Join(dir, "more.txt"), "+1 2:1\n")
	for text, want := range map[string]struct {
		share  float64
		tested int
	}{
		"{set: libsvm, file: samples.txt}":                                       {0.25, 0},
		"{set: libsvm, file: samples.txt, test-file: more.txt}":                  {0, 1},
		"{set: libsvm, file: samples.txt, test-file: more.txt, test: 50%}":       {0.5, 0},
		"{set: libsvm, file: samples.txt, test-file: more.txt, features: 7}":     {0, 1},
		"{set: libsvm, file: samples.txt, test: published, test-file: more.txt}": {0, 1},
	} {
		d, _, err := c.data(parse(t, filepath.Join(dir, "plan.yaml"), text))
		if err != nil {
			t.Fatal(err)
		}
		source, err := d.Load("", d.Test == 0)
		if err != nil {
			t.Fatal(err)
		}
		tested := 0
		if source.Test != nil {
			tested = source.Test.Len()
		}
		if d.Test != want.share || tested != want.tested || source.Pool.Len() != 2 {
			t.Errorf("%s: %v held out, %d samples to test on, %d others", text, d.Test, tested, source.Pool.Len())
		}
	}
}

func TestATableOfOnesOwnIsReadAsThePlanSays(t *testing.T) {
	c := Default()
	dir := folder(t)
	for text, want := range map[string]struct {
		x       []float32
		classes []string
	}{
		"{set: csv, file: samples.csv, ignore: [id], words: [colour]}": {[]float32{30, 0, 1, 45, 1,
			0, 50, 0, 1, 28, 0, 1}, []string{"high", "low"}},
		"{set: csv, file: samples.csv, header: present, ignore: [1], words: [3]}": {[]float32{30, 0, 1, 45, 1,
			0, 50, 0, 1, 28, 0, 1}, []string{"high", "low"}},
		"{set: csv, file: samples.csv, label: colour, ignore: [income]}": {[]float32{1, 30, 2, 45, 3,
			50, 4, 28}, []string{"blue", "red"}},
		"{set: csv, file: samples.csv, label: 3, ignore: [4, id], test-file: samples.csv}": {[]float32{30, 45, 50, 28},
			[]string{"blue", "red"}},
	} {
		d, resolved, err := c.data(parse(t, filepath.Join(dir, "plan.yaml"), text))
		if err != nil {
			t.Fatal(err)
		}
		source, err := d.Load("", d.Test == 0)
		if err == nil {
			err = source.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want.x, source.Pool.X); diff != "" {
			t.Errorf("%s: inputs (-want +got):\n%s", text, diff)
		}
		if diff := cmp.Diff(want.classes, source.Pool.Classes); diff != "" {
			t.Errorf("%s: classes (-want +got):\n%s", text, diff)
		}
		if published := strings.Contains(text, "test-file"); published != (source.Test != nil) ||
			published != (d.Test == 0) {
			t.Errorf("%s: %v held out, test set %v", text, d.Test, source.Test)
		}
		if got := resolved.At("file").Text; got != filepath.Join(dir, "samples.csv") {
			t.Errorf("the file resolves to %s", got)
		}
	}
}

func TestImagesOfOnesOwnAreRead(t *testing.T) {
	d, _, err := Default().data(parse(t, filepath.Join(folder(t), "plan.yaml"),
		"{set: idx, images: images, labels: labels, test-images: images, test-labels: labels}"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := d.Load("", true)
	if err == nil {
		err = source.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{0, 0.2, 0.4, 0.6, 0.8, 1}, source.Test.X); diff != "" ||
		!slices.Equal(source.Pool.Y, []int32{1, 0}) {
		t.Errorf("labels %v, inputs %s", source.Pool.Y, diff)
	}
}

func TestAddingAKindTwicePanics(t *testing.T) {
	defer func() {
		if reason := fmt.Sprint(recover()); reason != `catalog: model "mlp" is defined twice` {
			t.Errorf("panic %q", reason)
		}
	}()
	Default().Models.Add(Define("mlp", "again", func() struct{} { return struct{}{} },
		func(*Catalog, *struct{}) (nn.Model, error) { return nil, nil }))
}

func TestCatalogsDoNotShareWhatIsAddedToThem(t *testing.T) {
	a, b := Default(), Default()
	a.Models.Add(Define("own", "my own", func() struct{} { return struct{}{} },
		func(*Catalog, *struct{}) (nn.Model, error) { return nil, nil }))
	if n, m := len(a.Models.All()), len(b.Models.All()); n != m+1 {
		t.Errorf("%d kinds after adding one, %d in another catalog", n, m)
	}
}

// declared is a rate schedule of a user's own, whose fields are its settings.
type declared struct {
	First float64 `plan:"first,required" range:">0"`
	Last  float64 `plan:"last"`
}

func (d declared) Rate(int) float64 { return d.First }

func (d declared) Validate() error {
	if d.Last > d.First {
		return field.Errorf(d, "Last", "at most first")
	}
	return nil
}

func TestADeclaredKindHasTheTagsAndTheDefaultsOfItsValue(t *testing.T) {
	c := Default()
	c.Schedules.Declare("own", declared{Last: 0.1}, "my own")
	value, resolved, err := c.Schedules.Read(c, parse(t, "p", "{kind: own, first: 0.5}"))
	if err != nil || value != (declared{0.5, 0.1}) || resolved.Flow() != "{kind: own, first: 0.5, last: 0.1}" {
		t.Errorf("made %+v, %s, %v", value, resolved, err)
	}
	for text, want := range map[string]string{
		"{kind: own, first: 0}":            "x.first: 0 is out of range; accepted is more than 0",
		"{kind: own, first: 1, last: 2.0}": "x.last: last is 2.0: must be at most first",
	} {
		if _, _, err := c.Schedules.Read(c, parse(t, "p", "x: "+text).At("x")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestErrorOfAUsersKindHasThePlaceOfTheKeyItIsAbout(t *testing.T) {
	type own struct {
		Depth int `plan:"depth"`
	}
	c := Default()
	fault := fmt.Errorf("too deep")
	c.Models.Add(Define("own", "my own", func() own { return own{3} }, func(_ *Catalog, s *own) (nn.Model, error) {
		return nil, About("depth", fault)
	}))
	_, _, err := c.Models.read(c, parse(t, "plan.yaml", "{kind: own, depth: 7}"), "kind")
	if err == nil || !strings.HasPrefix(err.Error(), "plan.yaml:1:20: depth: too deep") {
		t.Errorf("got %v", err)
	}
	if About("depth", nil) != nil {
		t.Error("no error becomes one")
	}
}

func TestFilesOfAPlanOfOthersAreReadFromTheFolderAlone(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"x.npy": array("<f4", "(2, 1)", "\x00\x00\x80\x3f\x00\x00\x00\x40"), "y.npy": array("|u1", "(2,)", "\x00\x01"),
		"table.csv": "1,low\n2,high\n", "samples.txt": "-1 1:1\n+1 1:2\n",
	} {
		write(t, filepath.Join(dir, name), content)
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close() //nolint:errcheck // read only
	c := Default()
	c.Folder = folder
	for _, section := range []string{"set: npy, x: x.npy, y: y.npy", "set: csv, file: table.csv, scale: none",
		"set: libsvm, file: samples.txt"} {
		n, err := syntax.Parse("plan.yaml", []byte("{"+section+"}"))
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := c.data(n)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Load("elsewhere", false)
		if err != nil || !slices.Equal(s.Pool.X, []float32{1, 2}) {
			t.Errorf("%s: %+v, %v", section, s, err)
		}
	}
}

// array is a file of NumPy's format, version 1.
func array(kind, shape, values string) string {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", kind, shape)
	header += strings.Repeat(" ", 127-10-len(header)) + "\n"
	return "\x93NUMPY\x01\x00\x76\x00" + header + values
}

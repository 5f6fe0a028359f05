package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/turns"
)

// everyArchitecture is the names of a catalog's architectures.
func everyArchitecture(c *catalog.Catalog) (names []string) {
	for _, k := range c.Architectures.All() {
		names = append(names, k.Name)
	}
	return names
}

func TestANewPlanOfEveryArchitectureAndSyntheticSetIsInOrderAndRuns(t *testing.T) {
	schema := ownSchema(t)
	all := everyArchitecture(catalog.Default())
	for i, architecture := range all {
		for k, set := range []string{"synthetic-traffic", "synthetic-digits"} {
			t.Run(architecture+" "+set, func(t *testing.T) {
				turns.Row(t, i+k, len(all), 3)
				t.Chdir(t.TempDir())
				code, out, errs := gradwire(t, "plan", "new", "--architecture", architecture, "--data", set, "--set",
					"data.samples=1000", "--out", "p.yaml")
				expectCode(t, cli.ExitDone, code, errs)
				if out != "plan in p.yaml\n" {
					t.Error(out)
				}
				code, _, errs = gradwire(t, "plan", "check", "p.yaml")
				expectCode(t, cli.ExitDone, code, errs)
				p, err := driver.Load("p.yaml", "repeats=1", "stop.epochs=0.3")
				if err != nil {
					t.Fatal(err)
				}
				// Without plots, which take their time.
				r, err := driver.Run(t.Context(), p, driver.Options{Out: "out"})
				if err != nil || !r.Complete {
					t.Fatal(err)
				}
				text, err := os.ReadFile("p.yaml")
				if err != nil {
					t.Fatal(err)
				}
				if err := validate(t, schema, text); err != nil {
					t.Error(err)
				}
				served := architecture == "parameter-server" || architecture == "federated" || architecture == "gaia"
				if server := strings.Contains(string(text), "role: server"); server != served {
					t.Errorf("a server: %v", server)
				}
			})
		}
	}
}

func TestANewPlanOfEveryPublishedSetIsInOrder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, architecture := range everyArchitecture(catalog.Default()) {
		for _, set := range []string{"nsl-kdd", "mnist", "fashion-mnist", "spambase", "a9a"} {
			code, text, errs := gradwire(t, "plan", "new", "--architecture", architecture, "--data", set)
			expectCode(t, cli.ExitDone, code, errs)
			write(t, "p.yaml", text)
			code, _, errs = gradwire(t, "plan", "check", "p.yaml")
			expectCode(t, cli.ExitDone, code, errs)
		}
	}
}

func TestShapesThatAreDeclaredAreThoseOfTheSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long on one core")
	}
	data := os.Getenv("GRADWIRE_DATA")
	c := catalog.Default()
	for _, k := range c.Datasets.All() {
		l, err := c.Loader(k.Name)
		if err != nil || l.Inputs == 0 {
			continue // it reads files of one's own
		}
		source, err := l.Load(data, l.Test == 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is not here
		}
		if err != nil {
			t.Fatal(err)
		}
		if source.Pool.Inputs != l.Inputs || len(source.Pool.Classes) != l.Classes {
			t.Errorf("%s: declared %d inputs, %d classes; there are %d, %d", k.Name, l.Inputs, l.Classes,
				source.Pool.Inputs, len(source.Pool.Classes))
		}
	}
}

func TestANewPlanForATableOfOnesOwnHasItsShape(t *testing.T) {
	t.Chdir(t.TempDir())
	var table strings.Builder
	table.WriteString("a,b,c,class\n")
	for i := range 60 {
		table.WriteString([]string{"1,0,2,yes\n", "0,1,1,no\n", "1,1,0,maybe\n"}[i%3])
	}
	write(t, "t.csv", table.String())
	code, _, errs := gradwire(t, "plan", "new", "--data", "csv", "--set", "data.file=t.csv", "--set",
		"nodes.worker.count=2", "--out", "p.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	text, err := os.ReadFile("p.yaml")
	if err != nil || !strings.Contains(string(text), "layers: [3, 32, 3]") || !strings.Contains(string(text),
		"between: [worker2,") {
		t.Errorf("%v\n%s", err, text)
	}
	code, _, errs = gradwire(t, "run", "p.yaml", "--out", "out", "--repeats", "1", "--set", "train.batch=4")
	expectCode(t, cli.ExitDone, code, errs)
}

func TestANewPlanNamesFilesAsTheyLieBesideIt(t *testing.T) {
	t.Chdir(t.TempDir())
	table := "a,b,class\n" + strings.Repeat("1,0,yes\n0,1,no\n", 20)
	write(t, "plans/data/t.csv", table)
	write(t, "elsewhere/t.csv", table)
	code, _, errs := gradwire(t, "plan", "new", "--data", "csv", "--set", "data.file=plans/data/t.csv", "--out",
		"plans/p.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	if err := os.Rename("plans", "moved"); err != nil {
		t.Fatal(err)
	}
	code, _, errs = gradwire(t, "plan", "check", "moved/p.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	code, text, errs := gradwire(t, "plan", "new", "--data", "csv", "--set", "data.file=elsewhere/t.csv", "--out",
		"moved/q.yaml")
	expectCode(t, cli.ExitDone, code, text+errs)
	code, _, errs = gradwire(t, "plan", "check", "moved/q.yaml")
	expectCode(t, cli.ExitDone, code, errs)
}

func TestANewPlanOfAFileForEachWorkerNamesItsNodesAfterThem(t *testing.T) {
	t.Chdir(t.TempDir())
	table := "a,b,class\n" + strings.Repeat("1,0,yes\n0,1,no\n", 20)
	write(t, "plans/b.csv", table)
	write(t, "plans/p.csv", table)
	for architecture, nodes := range map[string]string{
		"gossip":           "name: berlin, role: peer|name: paris, role: peer",
		"parameter-server": "name: server, role: server|name: berlin, role: worker|name: paris, role: worker",
	} {
		code, _, errs := gradwire(t, "plan", "new", "--architecture", architecture, "--data", "csv", "--set",
			"data.file={paris: plans/p.csv, berlin: plans/b.csv}", "--out", "plans/"+architecture+".yaml")
		expectCode(t, cli.ExitDone, code, errs)
		text, err := os.ReadFile("plans/" + architecture + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range append(strings.Split(nodes, "|"), "file: {berlin: b.csv, paris: p.csv}") {
			if !strings.Contains(string(text), part) {
				t.Errorf("no %s in\n%s", part, text)
			}
		}
		if strings.Contains(string(text), "count:") {
			t.Errorf("there is a group of nodes in\n%s", text)
		}
	}
	if err := os.Rename("plans", "moved"); err != nil {
		t.Fatal(err)
	}
	code, _, errs := gradwire(t, "run", "moved/gossip.yaml", "--out", "out", "--repeats", "1")
	expectCode(t, cli.ExitDone, code, errs)
}

// relay is an architecture of a user's own: the parameter server with a key that has no default.
type relay struct {
	Depth int    `plan:"depth,required" doc:"how deep"`
	Mode  string `plan:"mode" words:"plain|odd" doc:"how it is done"`
}

func withRelay() *catalog.Catalog {
	c := catalog.Default()
	c.Architectures.Add(catalog.Define("relay", "a server behind others", func() relay { return relay{Mode: "plain"} },
		func(*catalog.Catalog, *relay) (train.Architecture, error) {
			return ps.Architecture{Scale: ps.Mean}, nil
		}))
	return c
}

func TestANewPlanCanBeOfAnArchitectureOfOnesOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := asGradwire(withRelay()).Run(context.Background(), args, &out, &errs)
		return code, out.String(), errs.String()
	}
	code, _, errs := run("plan", "new", "--architecture", "relay")
	expectCode(t, cli.ExitInput, code, errs)
	const want = "architecture relay has no default for depth (how deep): give it with --set architecture.depth=…\n"
	if errs != want {
		t.Errorf("got %q, want %q", errs, want)
	}
	code, _, errs = run("plan", "new", "--architecture", "relay", "--set", "architecture.depth=2", "--set",
		"data.samples=1000", "--out", "p.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	code, _, errs = run("run", "p.yaml", "--out", "out", "--repeats", "1", "--set", "stop.epochs=0.3")
	expectCode(t, cli.ExitDone, code, errs)
	_, help, _ := run("plan", "new", "--help")
	if !strings.Contains(help, "local, relay.") || !strings.Contains(help, "synthetic-digits.") {
		t.Errorf("what may be named is not in\n%s", help)
	}
}

func TestANewPlanReplacesNoFile(t *testing.T) {
	enter(t, small)
	code, _, errs := gradwire(t, "plan", "new", "--out", "plan.yaml")
	expectCode(t, cli.ExitInput, code, errs)
	if text, err := os.ReadFile("plan.yaml"); err != nil || string(text) != small ||
		!strings.Contains(errs, "plan.yaml: ") {
		t.Errorf("%v, %s", err, errs)
	}
}

func TestMistakesInNewPlansAreTold(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, x := range []struct{ args, want string }{
		{"--architecture gosip", `unknown architecture "gosip"; did you mean gossip? (accepted: parameter-server, `},
		{"--architecture gosip --data csv", `unknown architecture "gosip"; did you mean gossip?`},
		{"--data mnst", `unknown data set "mnst"; did you mean mnist? (accepted: `},
		{"--data csv", "data set csv has no default for file (the table, beside the plan unless its path is " +
			"absolute, or {WORKER: FILE} with one for each): give it with --set data.file=…"},
		{"--set data.samplse=5", `data.samplse: unknown key "samplse"; did you mean samples?`},
		{"--set nodes.wroker.count=5", `nodes has no item named "wroker"; did you mean worker?`},
		{"--set stop={}", "a run must end"},
		{"--data csv --set data.file=nowhere.csv", "the file of samples cannot be read: open nowhere.csv: "},
	} {
		code, out, errs := gradwire(t, append([]string{"plan", "new"}, strings.Fields(x.args)...)...)
		if code != cli.ExitInput || out != "" || !strings.Contains(errs, x.want) {
			t.Errorf("%s: exit code %d, %s, want %q", x.args, code, errs, x.want)
		}
	}
}

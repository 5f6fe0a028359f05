package cli_test

import (
	"bytes"
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

// ways asks as a shell does how a line goes on: the completions without what they mean, and the
// directive.
func ways(t testing.TB, line ...string) (all []string, directive string) {
	t.Helper()
	code, out, errs := gradwire(t, append([]string{"__complete"}, line...)...)
	expectCode(t, cli.ExitDone, code, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines[:len(lines)-1] {
		way, _, _ := strings.Cut(l, "\t")
		all = append(all, way)
	}
	return all, lines[len(lines)-1]
}

// What shells are told to do with completions, as cobra numbers it.
const (
	anything, words, keys, endings, dirs = ":0", ":4", ":6", ":8", ":16"
)

// completed are lines, the completions that they have, and what a shell is told to do with them.
var completed = []struct{ line, want, directive string }{
	{"run ''", "yaml yml", endings},
	{"run plan.yaml ''", "", words},
	{"submit ''", "yaml yml", endings},
	{"plan check ''", "yaml yml", endings},
	{"links ''", "yaml yml", endings},
	{"links plan.yaml --set network.default.r", "network.default.rate= network.default.rate. " +
		"network.default.reorder= network.default.repeat=", keys},
	{"plan show ''", "yaml yml", endings},
	{"run --clock ''", "virtual real", words},
	{"run --format ''", "text json", words},
	{"run --data ''", "", dirs},
	{"run --seed ''", "", words},
	{"run --continue ''", "other results/first results/second", words},
	{"report ''", "other results/first results/second", words},
	{"report results/first ''", "other results/second", words},
	{"report results/", "results/first results/second", words},
	{"report results/s", "results/second", words},
	{"report nothing/", "", dirs},
	{"diff other results/first ''", "", words},
	{"replay other/", "other/runs/0000 other/runs/0001", words},
	{"replay other/runs/0001", "other/runs/0001", words},
	{"predict other/", "other/runs/0000 other/runs/0001", words},
	{"predict other/runs/0000 --data ''", "", anything},
	{"eval other/runs/0000 --data ''", "", anything},
	{"data get mnist ''", "nsl-kdd fashion-mnist spambase a9a", words},
	{"data check ''", "nsl-kdd mnist fashion-mnist spambase a9a", words},
	{"list architectures ''",
		"parameter-server all-reduce in-network federated gaia gossip d-psgd ad-psgd gossip-learning noloco " +
			"local", words},
	{"list architectures gossip ''", "", words},
	{"plan new --architecture ''",
		"parameter-server all-reduce in-network federated gaia gossip d-psgd ad-psgd gossip-learning noloco " +
			"local", words},
	{"plan schema --out ''", "json", endings},
	{"status ''", "", words},
	{"identity init ''", "", dirs},
	{"run plan.yaml --set nodes.", "nodes.server. nodes.near. nodes.far.", keys},
	{"run plan.yaml --set nodes.near.compute.",
		"nodes.near.compute.step= nodes.near.compute.wander. nodes.near.compute.speed= " +
			"nodes.near.compute.native= nodes.near.compute.cores= nodes.near.compute.threads=", keys},
	{"run plan.yaml --set nodes.nobody.",
		"nodes.nobody.name= nodes.nobody.role= nodes.nobody.count= nodes.nobody.compute= nodes.nobody.compute. " +
			"nodes.nobody.uplink= nodes.nobody.uplink. nodes.nobody.downlink= nodes.nobody.downlink. " +
			"nodes.nobody.delay= nodes.nobody.delay. nodes.nobody.available.", keys},
	{"run plan.yaml --set network.links.server-f", "network.links.server-far.", keys},
	{"run plan.yaml --set architecture.",
		"architecture.kind= architecture.consistency= architecture.consistency. architecture.scale= " +
			"architecture.every= architecture.servers. architecture.backup= architecture.staleness-rate= " +
			"architecture.epoch-share= architecture.compress. architecture.delivery=", keys},
	{"run plan.yaml --set architecture.scale=", "architecture.scale=sum architecture.scale=mean", words},
	{"run plan.yaml --set architecture.kind=g",
		"architecture.kind=gaia architecture.kind=gossip architecture.kind=gossip-learning", words},
	{"run plan.yaml --set network.default.reorder=", "network.default.reorder=true network.default.reorder=false",
		words},
	{"run plan.yaml --set data.samples=", "data.samples=40000 data.samples=1500", words},
	{"run plan.yaml --set data.split.kind=",
		"data.split.kind=iid data.split.kind=classes data.split.kind=column data.split.kind=file " +
			"data.split.kind=shards " +
			"data.split.kind=dirichlet data.split.kind=drawn", words},
	{"run plan.yaml --set record=", "record=summary record=models record=events", words},
	{"run plan.yaml --set st", "stop.", keys},
	{"run plan.yaml --set model.layers.x.", "", words},
	{"run plan.yaml --set 'a b", "", words},
	{"run missing.yaml --set train.b", "train.batch=", keys},
	{"submit plan.yaml --set tr", "train.", keys},
	{"plan new --set nodes.", "nodes.server. nodes.worker.", keys},
	{"plan new --architecture gossip --set architecture.ch", "architecture.choose.", keys},
	{"plan new --data csv --set data.sep", "data.separator=", keys},
}

func TestLinesAreCompletedByWhatIsMeant(t *testing.T) {
	enter(t, small)
	for _, record := range []string{"results/first", "results/second", "other"} {
		write(t, record+"/summary.json", "{}")
		write(t, record+"/runs/0000/run.json", "{}")
		write(t, record+"/runs/0001/run.json", "{}")
	}
	write(t, "nothing/x", "")
	for _, x := range completed {
		line := strings.Fields(x.line)
		for i := range line {
			line[i] = strings.Trim(line[i], "'")
		}
		got, directive := ways(t, line...)
		if strings.Join(got, " ") != x.want || directive != x.directive {
			t.Errorf("%s: got %q %s, want %q %s", x.line, got, directive, x.want, x.directive)
		}
	}
}

func TestCompletionIsQuick(t *testing.T) {
	enter(t, small)
	best := time.Hour
	for range 5 {
		began := time.Now()
		ways(t, "run", "plan.yaml", "--set", "nodes.near.")
		best = min(best, time.Since(began))
	}
	if best > 100*time.Millisecond {
		t.Errorf("a completion took %v, at best", best)
	}
}

func TestScriptsOfEveryShellCompleteTheProgramByItsName(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errs bytes.Buffer
		code := cli.Program{Name: "mine", Catalog: catalog.Default()}.Run(context.Background(),
			[]string{"completion", shell}, &out, &errs)
		expectCode(t, cli.ExitDone, code, errs.String())
		if strings.Contains(out.String(), "gradwire") || !strings.Contains(out.String(), "mine") {
			t.Errorf("the script for %s is not for mine", shell)
		}
		path, err := exec.LookPath(shell)
		if shell == "powershell" || err != nil {
			continue
		}
		check := exec.Command(path, "-n") //nolint:gosec // a shell
		check.Stdin = &out
		if told, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, told)
		}
	}
}

// helps is the help of every command, as a program of some name tells it.
func helps(t *testing.T, name string) map[string]string {
	t.Helper()
	all := map[string]string{}
	run := func(path []string) string {
		var out, errs bytes.Buffer
		code := cli.Program{Name: name, Catalog: catalog.Default()}.Run(context.Background(), append(path, "--help"),
			&out, &errs)
		expectCode(t, cli.ExitDone, code, errs.String())
		return out.String()
	}
	var visit func(path []string)
	visit = func(path []string) {
		text := run(slices.Clone(path))
		all[strings.Join(path, " ")] = text
		_, below, found := strings.Cut(text, "Available Commands:\n")
		if !found {
			return
		}
		below, _, _ = strings.Cut(below, "\n\n")
		for _, line := range strings.Split(below, "\n") {
			visit(append(slices.Clone(path), strings.Fields(line)[0]))
		}
	}
	visit(nil)
	return all
}

func TestEveryCommandSaysWhatItDoesWithExamples(t *testing.T) {
	all := helps(t, "gradwire")
	if len(all) < 40 {
		t.Errorf("%d commands were found", len(all))
	}
	for path, text := range all {
		long, usage, _ := strings.Cut(text, "\n\nUsage:\n")
		if len(strings.Fields(long)) < 4 {
			t.Errorf("%s: says of itself only %q", path, long)
		}
		_, examples, ok := strings.Cut(usage, "Examples:\n")
		if !ok || !strings.Contains(examples, strings.TrimSpace("gradwire "+path)) {
			t.Errorf("%s: no example of it in its help:\n%s", path, text)
		}
	}
}

func TestAProgramOfAnotherNameCallsItselfByIt(t *testing.T) {
	lower := regexp.MustCompile(`\bgradwire\b`)
	for path, text := range helps(t, "mine") {
		if found := lower.FindString(text); found != "" || !strings.Contains(text, "  mine") {
			t.Errorf("mine %s --help:\n%s", path, text)
		}
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"GRADWIRE_DATA", "XDG_CACHE_HOME", "HOME", "GRADWIRE_IDENTITY", "GRADWIRE_JOIN"} {
		t.Setenv(name, "")
	}
	for _, line := range []string{
		"rum", "run", "run --nothing", "report", "list model", "data get", "data get no", "data list", "data check",
		"data check mnist", "nodes", "runs --insecure",
		"plan new", "plan new --data no", "identity init ca", "plan schema --out x",
	} {
		var out, errs bytes.Buffer
		cli.Program{Name: "mine", Catalog: catalog.Default()}.Run(context.Background(), strings.Fields(line), &out,
			&errs)
		if text := out.String() + errs.String(); lower.MatchString(text) || text == "" {
			t.Errorf("mine %s: %s", line, text)
		}
	}
}

func TestAProgramIsCalledLikeItsFile(t *testing.T) {
	var out, errs bytes.Buffer
	code := cli.Program{Catalog: catalog.Default()}.Run(context.Background(), []string{"--help"}, &out, &errs)
	expectCode(t, cli.ExitDone, code, errs.String())
	if want := "cli.test run PLAN"; !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in\n%s", want, out.String())
	}
}

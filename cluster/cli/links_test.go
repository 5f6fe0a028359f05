package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/report"
)

const linksExample = "../../examples/links/plan.yaml"

func TestLinksShowsEveryEdgeOfItsExample(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := gradwire(t, "links", linksExample, "--out", dir)
	expectCode(t, cli.ExitDone, code, errs)
	expectFile(t, "testdata/links.txt", strings.ReplaceAll(out, dir, "DIR"))
	for _, name := range []string{"links-links.png", "links-links.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinksTellsAsJSONWhatSeedSizeAndSettingsMakeOfAnEdge(t *testing.T) {
	ask := func(more ...string) map[string]report.ProbeSummary {
		code, out, errs := gradwire(t, append([]string{"links", linksExample, "--out", t.TempDir(), "--format", "json"},
			more...)...)
		expectCode(t, cli.ExitDone, code, errs)
		var told struct{ Links []report.ProbeSummary }
		if err := json.Unmarshal([]byte(out), &told); err != nil {
			t.Fatal(err)
		}
		edges := map[string]report.ProbeSummary{}
		for _, l := range told.Links {
			edges[l.From+" "+l.To] = l
		}
		return edges
	}
	first, again, other := ask(), ask(), ask("--seed", "2")
	const walk, slow = "kyiv riga", "bern lyon"
	if len(first) != 12 || first[walk] != again[walk] || first[walk] == other[walk] {
		t.Errorf("%d edges; %+v, again %+v, with another seed %+v", len(first), first[walk], again[walk], other[walk])
	}
	if got := first[slow].Down; got != 0.25 {
		t.Errorf("down for %v of the time, want a quarter", got)
	}
	// 1 Mbit/s carries 10 kB in 80 ms, after which come the 10 ms of the link.
	large := ask("--size", "10kB", "--time", "30s", "--samples", "30")
	if got := float64(large[slow].Took.Max); got != 0.090 || large[slow].Sent != 30 || large[slow].PerMinute != 60 {
		t.Errorf("%+v", large[slow])
	}
	changed := ask("--set", "network.links.kyiv->riga.delay=7ms")
	if float64(changed[walk].Delay.Max) != 0.007 {
		t.Errorf("%+v", changed[walk])
	}
}

func TestLinksShowsThePointOfASweepThatIsAskedFor(t *testing.T) {
	enter(t, small+"sweep:\n  network.links.server-far.delay: [50ms, 70ms]\n")
	for point, want := range map[string]string{"1": "50.0", "2": "70.0"} {
		code, out, errs := gradwire(t, "links", "plan.yaml", "--point", point)
		expectCode(t, cli.ExitDone, code, errs)
		if !strings.Contains(out, "point "+point+" of 2, network.links.server-far.delay = ") ||
			!strings.Contains(out, want) {
			t.Errorf("point %s:\n%s", point, out)
		}
	}
}

func TestLinksSumsManyEdgesUp(t *testing.T) {
	enter(t, strings.NewReplacer("parameter-server", "all-reduce", "evaluate", "detect: 1s\nevaluate").Replace(
		edit(t, edit(t, small, small[strings.Index(small, "nodes:"):strings.Index(small, "network:")],
			"nodes: [{name: n, count: 40}]\n"),
			small[strings.Index(small, "  links:"):strings.Index(small,
				"evaluate:")], "  default: {delay: {kind: log-normal, median: 5ms, sigma: 0.5}}\n")))
	code, out, errs := gradwire(t, "links", "plan.yaml", "--samples", "20")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.Contains(out, "probed are 1000 of the edges, evenly chosen") || !strings.Contains(out, "all 1000") ||
		strings.Count(out, " → ") != 10 {
		t.Error(out)
	}
}

func TestInterruptedLinksWritesNothing(t *testing.T) {
	enter(t, small)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	if code := asGradwire(catalog.Default()).Run(ctx, []string{"links", "plan.yaml"}, &out,
		&errs); code != cli.ExitFailed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("code %d, %s", code, errs.String())
	}
	if _, err := os.Stat("small-links.png"); err == nil {
		t.Error("a picture was left")
	}
}

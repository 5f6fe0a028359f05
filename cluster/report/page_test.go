package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/plotter"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/record"
)

// writeRecord leaves a record of a made-up sweep in a folder of this name. Change, if not
// nil, sees each run before it is saved.
func writeRecord(t testing.TB, name, plan string, labels []string, seeds int, change func(*record.Run, *record.Data)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	f, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SavePlan("name: " + plan + "\n"); err != nil {
		t.Fatal(err)
	}
	s, traces := sample(labels, seeds, 0.94)
	for i, r := range s.Runs {
		d := record.Data{Curve: traces[i].Curve, Links: []record.Link{
			{From: "server", To: "near", Messages: 50, Bytes: 5e6, DelayAsked: 0.001, DelayAchieved: 0.001},
			{From: "near", To: "server", Messages: 50, Bytes: 5e6, DelayAsked: 0.001, DelayAchieved: 0.5, Lost: 3},
		}, Updates: []record.Update{
			{Node: "near", Updates: 12, Staleness: record.Staleness{Counts: []record.Count{{Value: 0, Count: 10}, {Value: 3, Count: 2}}}},
			{Node: "far", Updates: 4, Staleness: record.Staleness{Counts: []record.Count{{Value: 30, Count: 4}}}, Waiting: []record.Waiting{
				{Cause: "parameters", Count: 8, Total: 1.2, Buckets: []record.Bucket{{Low: 0.1, High: 0.2, Count: 8, Total: 1.2}}},
			}},
		}}
		r.Duration = d.Curve[len(d.Curve)-1].Time
		r.BestAccuracy = r.FinalAccuracy
		for k := range d.Curve {
			d.Curve[k].Accuracy = min(d.Curve[k].Accuracy, 1)
		}
		if change != nil {
			change(&r, &d)
		}
		if err := f.SaveRun(r.Number, r, d, record.Models{Judged: []float32{1, 2, float32(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Write(record.Overview{Plan: plan, Target: 0.94, RunsPlanned: len(s.Runs), Build: record.Build{Commit: "abc", Kernel: "avx512"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// makePage makes a page of records and returns its text and what was written.
func makePage(t testing.TB, dirs ...string) (string, *Output) {
	t.Helper()
	sources, err := ReadSources(dirs)
	if err != nil {
		t.Fatal(err)
	}
	o, err := WritePage(filepath.Join(t.TempDir(), "page.html"), sources)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.Page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), o
}

func TestPageHasEveryPartAndNeedsNoNetwork(t *testing.T) {
	text, o := makePage(t, writeRecord(t, "first", "some plan", []string{"iid", "by class"}, 3, nil))
	for _, want := range []string{
		"<title>Gradwire: some plan</title>", "first: 6 runs of 2 points, plan some plan, target 94 %.",
		"<h3>Accuracy over epochs</h3>", "<h3>Accuracy over time</h3>", "<h3>Accuracy over bytes sent</h3>", "<h3>Time to the target</h3>",
		"<h3>Epochs to the target</h3>", "<h3>Staleness of updates</h3>", "<h3>Waiting</h3>", "<h3>Topology and delays</h3>",
		"<td>0.001</td><td>0.5</td><td>3</td>", "name: some plan\n", ">avx512<",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if o.Figures != 8 {
		t.Errorf("%d figures, want 8", o.Figures)
	}
	for class, want := range map[string]int{`class="wide"`: 8, `class="narrow"`: 8, `role="img"`: 16, "<figcaption>": 8} {
		if n := strings.Count(text, class); n != want {
			t.Errorf("%d × %s, want %d", n, class, want)
		}
	}
	images, err := filepath.Glob(filepath.Join(o.Folder, "*.png"))
	if err != nil || len(images) != 8 {
		t.Errorf("images: %q, %v", images, err)
	}
	for _, path := range images {
		if _, err := png.Decode(bytes.NewReader(readImage(t, path))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		texts(t, readImage(t, vector(path)))
	}
	needsNothing(t, text)
}

// needsNothing checks that a page has no script and asks for nothing.
func needsNothing(t *testing.T, text string) {
	t.Helper()
	for _, outside := range []string{"http:", "https:", "//", "src=", "<script", "<link", "<iframe", "url(", "@import"} {
		if strings.Contains(text, outside) {
			t.Errorf("%q is in the page", outside)
		}
	}
	if !strings.Contains(text, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
		t.Error("the page does not forbid what it does not need")
	}
}

func TestPageEscapesAllThatARecordSays(t *testing.T) {
	hostile := func(where string) string {
		return fmt.Sprintf(`<script>alert("%s")</script>"'><img src=x onerror=alert(1)>&lt;`, where)
	}
	labels := []string{hostile("label"), "]]></svg></pre><!--"}
	dir := writeRecord(t, "first", hostile("plan"), labels, 1, func(r *record.Run, d *record.Data) {
		r.Point[0].Key, r.Digest = hostile("key"), hostile("digest")
		r.Outcome, r.Incidents = record.Degraded, []record.Incident{{At: 1, Node: hostile("where"), What: hostile("incident")}}
		d.Links[0].From, d.Links[1].To = hostile("node"), hostile("node")
		d.Updates[0].Node = hostile("worker")
	})
	path := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(path, []byte(hostile("plan.yaml")+"</pre></details>"), 0o666); err != nil {
		t.Fatal(err)
	}
	text, _ := makePage(t, dir)
	elements := regexp.MustCompile(`<!?/?([A-Za-z!-][A-Za-z0-9!-]*)`)
	accepted := strings.Fields("doctype html head meta title style body header h1 p nav ul li a main section details summary h2 div figure h3 svg g path text " +
		"figcaption table caption thead tr th tbody td pre rect circle")
	for _, found := range elements.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(accepted, found[1]) {
			t.Errorf("the page has an element %q", found[0])
		}
	}
	for _, attribute := range []string{" onerror=alert(1)>", "\"><img", "'><img"} {
		if strings.Contains(text, attribute) {
			t.Errorf("%q is in the page", attribute)
		}
	}
	for _, where := range []string{"plan", "digest", "node", "worker", "plan.yaml", "label", "where", "incident"} {
		if !strings.Contains(text, "alert(&#34;"+where+"&#34;)") {
			t.Errorf("what is written as %s is not in the page as text", where)
		}
	}
	if strings.Count(text, "</svg>") != strings.Count(text, "<svg") || strings.Count(text, "</pre>") != strings.Count(text, "<pre") {
		t.Error("the record has closed elements of the page")
	}
}

func TestPageOfSeveralRecordsShowsThemTogetherAndByThemselves(t *testing.T) {
	if testing.Short() {
		t.Skip("draws three of every figure")
	}
	one := writeRecord(t, "one", "p", []string{"a", "b"}, 2, nil)
	two := writeRecord(t, "two", "p", []string{"a"}, 2, nil)
	text, o := makePage(t, one, two)
	for _, want := range []string{"Accuracy over time, all records", "Accuracy over time, one", "Accuracy over time, two", "Topology and delays, one", "Build, two"} {
		if !strings.Contains(text, ">"+want+"<") {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Index(text, "over time, all records<") > strings.Index(text, "over time, one<") || strings.Index(text, "over time, two<") > strings.Index(text, "over bytes sent, all") {
		t.Error("figures of a kind are not beside each other")
	}
	if strings.Count(text, "<caption>Means and their 95 % intervals, all records</caption>") != 1 || strings.Count(text, "<caption>Means") != 1 {
		t.Error("the records do not share a table")
	}
	for _, folder := range []string{"0-all", "1-one", "2-two"} {
		if _, err := os.Stat(filepath.Join(o.Folder, folder, "accuracy-time.svg")); err != nil {
			t.Error(err)
		}
	}
	if _, err := ReadSources([]string{one, filepath.Join(two, "..", "..", "..", filepath.Base(filepath.Dir(filepath.Dir(one))), filepath.Base(filepath.Dir(one)), "one")}); err == nil {
		t.Error("a record named twice was accepted")
	}
}

func TestRecordsOfTheSameFolderNameAreToldApart(t *testing.T) {
	names, err := sourceNames([]string{"/x/a/out", "/x/b/out", "/x/b/other", "/y/b/out"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/out", "x/b/out", "other", "y/b/out"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRecordsOfOtherTargetsHaveTablesOfTheirOwn(t *testing.T) {
	sources, err := ReadSources([]string{writeRecord(t, "one", "p", []string{"a"}, 2, nil), writeRecord(t, "two", "p", []string{"a"}, 2, nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		second *float64
		want   int
	}{{pointer(0.94), 1}, {pointer(0.5), 2}, {nil, 2}} {
		sources[1].Summary.Target, sources[1].Summary.Groups = c.second, record.GroupRuns(sources[1].Summary.Runs, c.second)
		b := &builder{sources: sources, all: join(sources)}
		part := &section{}
		b.comparison(part)
		if len(part.Tables) != c.want {
			t.Errorf("%d tables, want %d", len(part.Tables), c.want)
		}
	}
}

func TestPageOfEqualRecordsHasEqualBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("draws two pages")
	}
	dir := writeRecord(t, "first", "p", []string{"a", "b"}, 2, nil)
	first, one := makePage(t, dir)
	second, two := makePage(t, dir)
	if first != second {
		t.Error("the pages differ")
	}
	for _, table := range one.Tables {
		if !bytes.Equal(readImage(t, filepath.Join(one.Folder, table)), readImage(t, filepath.Join(two.Folder, table))) {
			t.Errorf("%s differs", table)
		}
	}
}

func TestTablesOfAPageHoldTheRecordsFigures(t *testing.T) {
	dir := writeRecord(t, "first", "p", []string{"a, b", "c"}, 3, nil)
	sources, err := ReadSources([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{sources: sources, output: &Output{Folder: t.TempDir()}}
	if err := b.writeTables(); err != nil {
		t.Fatal(err)
	}
	o := b.output
	s, err := record.ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows := readTable(t, filepath.Join(o.Folder, "runs.csv"))
	if len(rows) != len(s.Runs) {
		t.Fatalf("%d runs in the table, want %d", len(rows), len(s.Runs))
	}
	for i, row := range rows {
		r := s.Runs[i]
		want := map[string]string{
			"record": "first", "run": strconv.Itoa(i), "point": r.Point.String(), "seed": strconv.FormatUint(r.Seed, 10),
			"final_accuracy": r.FinalAccuracy.String(), "bytes": strconv.FormatInt(r.Bytes, 10),
		}
		for key, value := range want {
			if row[key] != value {
				t.Errorf("run %d: %s is %q, want %q", i, key, row[key], value)
			}
		}
	}
	groups := readTable(t, filepath.Join(o.Folder, "groups.csv"))
	if len(groups) != 2 || groups[0]["final_accuracy"] != s.Groups[0].FinalAccuracy.Mean.String() || groups[1]["reached"] != strconv.Itoa(s.Groups[1].Reached) {
		t.Errorf("groups: %v", groups)
	}
	workers := readTable(t, filepath.Join(o.Folder, "workers.csv"))
	if len(workers) != 6 || workers[0]["count"] != "36" || workers[0]["mean"] != "0.5" || workers[0]["p99"] != "3" || workers[2]["p50"] != "0.15" {
		t.Errorf("workers: %v", workers)
	}
	if links := readTable(t, filepath.Join(o.Folder, "links.csv")); len(links) != 4 || links[1]["delay_achieved_s"] != "0.5" {
		t.Errorf("links: %v", links)
	}
}

func readTable(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(readImage(t, path))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, key := range all[0] {
			row[key] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func TestPageOfManyRunsIsSmallHoweverManyEventsThereAre(t *testing.T) {
	if testing.Short() {
		t.Skip("draws 240 runs")
	}
	dir := writeRecord(t, "many", "p", shares(), 20, nil)
	// A file of a terabyte without any block on the disk: whoever read it would not end.
	events := filepath.Join(dir, "runs", "0000", "events.jsonl")
	if err := os.WriteFile(events, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(events, 1<<40); err != nil {
		t.Logf("no such large file here: %v", err)
	}
	text, _ := makePage(t, dir)
	if len(text) > 5<<20 {
		t.Errorf("a page of 240 runs has %d bytes", len(text))
	}
}

func TestQuantilesAgreeWithSortedValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		var values []float64
		w := newWorkloads(1)
		u := record.Update{Node: "n"}
		for range 1 + rng.IntN(3) {
			for range 1 + rng.IntN(5) {
				c := record.Count{Value: uint64(rng.IntN(6)), Count: uint64(rng.IntN(9))}
				u.Staleness.Counts = append(u.Staleness.Counts, c)
				for range c.Count {
					values = append(values, float64(c.Value))
				}
			}
		}
		w.add(0, 1, []record.Update{u})
		c := w.sorted()[0].staleness
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		if got, want := c.mean(), sum/float64(len(values)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("mean %g, want %g", got, want)
		}
		for _, share := range []float64{0.01, 0.25, 0.5, 0.75, 0.99, 1} {
			rank := int(math.Ceil(share*float64(len(values)) - 1e-9))
			if got, want := c.quantile(share), values[max(rank, 1)-1]; got != want {
				t.Fatalf("quantile %g of %v is %g, want %g", share, values, got, want)
			}
		}
	}
}

// U3: a constant wait has that length at every quantile, and its mean is in the box.
func TestQuantilesOfAConstantWaitAreThatWait(t *testing.T) {
	c := record.NewCollector(record.Config{Nodes: []string{"n"}, Roles: []string{"worker"}})
	for range 100 {
		c.Observe(0, 0, actors.Event{Kind: actors.Waited, Cause: "parameters", Duration: 200 * time.Millisecond})
	}
	d, err := c.Close(0)
	if err != nil {
		t.Fatal(err)
	}
	if b := d.Updates[0].Waiting[0].Buckets[0]; b.High-b.Low > 0.01*b.Low {
		t.Errorf("a bucket from %g to %g", b.Low, b.High)
	}
	w := newWorkloads(1)
	w.add(0, 100, d.Updates)
	waits := w.sorted()[0].waiting
	for _, share := range []float64{0.01, 0.25, 0.5, 0.75, 0.99} {
		if got := waits.quantile(share); math.Abs(got-0.2) > 1e-12 {
			t.Errorf("quantile %g is %g, want 0.2", share, got)
		}
	}
	if mean := waits.mean(); mean < waits.quantile(0.25)-1e-12 || mean > waits.quantile(0.75)+1e-12 {
		t.Errorf("the mean %g is not in the box", mean)
	}
}

// F3: where there is no server, no staleness was measured.
func TestStalenessIsNotShownWhereThereIsNoServer(t *testing.T) {
	for models, want := range map[int]string{1: "0", 3: nothing} {
		dir := writeRecord(t, "first", "p", []string{"a"}, 1, func(_ *record.Run, d *record.Data) {
			for i := range d.Curve {
				d.Curve[i].Models = models
			}
			for i := range d.Updates {
				d.Updates[i].Staleness = record.Staleness{Counts: []record.Count{{Value: 0, Count: 4}}}
			}
		})
		sources, err := ReadSources([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		table := workTable(sources[0])
		if got := table.Rows[0][3]; got != want || strings.Contains(table.Note, "no version") != (models > 1) {
			t.Errorf("%d models: staleness %q, note %q", models, got, table.Note)
		}
	}
}

func TestWorkersBeyondTheLimitAreCountedTogether(t *testing.T) {
	w := newWorkloads(1)
	var updates []record.Update
	for i := range maxWorkers + 1 {
		updates = append(updates, record.Update{Node: fmt.Sprint(i), Updates: 2, Staleness: record.Staleness{Counts: []record.Count{{Value: 1, Count: 2}}}})
	}
	w.add(0, 10, updates)
	all := w.sorted()
	if len(all) != 1 || all[0].node != record.Everyone || all[0].updates != 2*(maxWorkers+1) || all[0].staleness.count() != 2*(maxWorkers+1) {
		t.Errorf("%d workloads, the first %+v", len(all), all[0])
	}
}

func TestThinnedLinesLookTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		whole := make(plotter.XYs, 400)
		y := 0.0
		for i := range whole {
			y += rng.NormFloat64() * 0.01
			whole[i] = plotter.XY{X: 1e6 * float64(i), Y: y + math.Sin(float64(i)/60)}
		}
		kept := thin(whole)
		left, right, low, high := plotter.XYRange(whole)
		if len(kept) > len(whole)*9/10 || kept[0] != whole[0] || kept[len(kept)-1] != whole[399] {
			t.Fatalf("%d of %d points are kept", len(kept), len(whole))
		}
		next := 1
		for _, p := range whole {
			for p.X > kept[next].X {
				next++
			}
			a, b := kept[next-1], kept[next]
			ax, ay := (a.X-p.X)/(right-left), (a.Y-p.Y)/(high-low)
			bx, by := (b.X-p.X)/(right-left), (b.Y-p.Y)/(high-low)
			if distance := math.Abs(ax*by-ay*bx) / math.Hypot(bx-ax, by-ay); distance > thinness*(1+1e-9) {
				t.Fatalf("at %g the line is off by %g", p.X, distance)
			}
		}
	}
	straight := make(plotter.XYs, 400)
	for i := range straight {
		straight[i] = plotter.XY{X: float64(i), Y: float64(2 * i)}
	}
	if kept := thin(straight); len(kept) != 2 {
		t.Errorf("a straight line keeps %d points", len(kept))
	}
}

func FuzzPageBearsAnyRecord(f *testing.F) {
	summary := `{"plan": "p", "target": 0.5, "runs": [{"run": 0, "point": {"k": "a"}, "seed": 1, "clock": "virtual"}]}`
	run := `{"run": 0, "point": {"k": "a"}, "seed": 1, "clock": "virtual", "data": {"curve": [%s], "links": [%s], "updates": [%s]}}`
	evaluation := `{"evaluation": 1, "time_s": %g, "epoch": %g, "accuracy": %s, "bytes": 9223372036854775807}`
	for _, v := range []float64{0, 5e-324, 1e-300, 1, 1e12} {
		curve := fmt.Sprintf(evaluation, 0.0, 0.0, "null") + "," + fmt.Sprintf(evaluation, v, v, "1")
		link := fmt.Sprintf(`{"from": "a", "to": "b", "messages": 9223372036854775807, "delay_asked_s": %g, "delay_achieved_s": %g}`, v, v)
		worker := fmt.Sprintf(`{"node": "a", "updates": 18446744073709551615, "staleness": {"counts": [{"value": 18446744073709551615, "count": 18446744073709551615}]},
			"waiting": [{"buckets": [{"low_s": %g, "high_s": 1e12, "count": 1, "total_s": 1.7e308}, {"low_s": 0, "high_s": 0, "count": 1, "total_s": 1.7e308}]}]}`, v)
		f.Add(summary, fmt.Sprintf(run, curve, link+","+link, worker))
	}
	f.Add(summary, fmt.Sprintf(run, "", "", ""))
	f.Add(`{"runs": []}`, "")
	f.Add(`{"plan": "p"`, "{")
	f.Fuzz(func(t *testing.T, summary, run string) {
		if testing.Short() {
			t.Skip("draws a page for each seed")
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"plan.yaml": "name: p", "summary.json": summary, "runs/0000/run.json": run} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		sources, err := ReadSources([]string{dir})
		if err != nil {
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("an error that names no file: %v", err)
			}
			return
		}
		if _, err := WritePage(filepath.Join(dir, "page.html"), sources); err != nil {
			t.Error(err)
		}
	})
}

package page

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

func TestLinksAreShownOfEachPoint(t *testing.T) {
	s, traces := reporttest.Sample([]string{"1", "8"}, 1, 0.94)
	for i, messages := range []int64{47, 5} {
		traces[i].Links = []record.Link{{From: "a", To: "b", Messages: messages, DelayAsked: 0.01}}
	}
	table := linkTable(&Source{Data: figure.Data{Summary: s, Traces: traces}}, "Links")
	if len(table.Rows) != 2 || table.Rows[0][0] != "1" || table.Rows[0][3] != "47" || table.Rows[1][0] != "8" ||
		table.Rows[1][3] != "5" {
		t.Errorf("%q", table.Rows)
	}
	if strings.Contains(table.Note, "counted together") {
		t.Errorf("links that are counted one by one have the note %q", table.Note)
	}
}

func TestLinksThatAreCountedBySenderSayThatTheyAre(t *testing.T) {
	s, traces := reporttest.Sample([]string{"1"}, 1, 0.94)
	traces[0].Links = []record.Link{{From: "a", To: record.Everyone, Messages: 70_000, DelayAsked: 0.01, Lost: 4}}
	table := linkTable(&Source{Data: figure.Data{Summary: s, Traces: traces}}, "Links")
	want := [][]string{{"1", "a", "*", "70000", "0", "0.01", "0", "4"}}
	const note = "counted together, as one to *"
	if diff := cmp.Diff(want, table.Rows); diff != "" || !strings.Contains(table.Note, note) {
		t.Errorf("%s, with the note %q", diff, table.Note)
	}
}

func TestWhatActorsMeasureIsShownOfEachRunAsItWasLast(t *testing.T) {
	s, traces := reporttest.Sample([]string{"1"}, 1, 0.94)
	traces[0].Measured = []record.Measurement{
		{Time: 1, Node: "b", Name: "bytes", Value: 5}, {Time: 1, Node: "a", Name: "bytes", Value: 3},
		{Time: 2, Node: "b", Name: "bytes", Value: 8}, {Time: 2, Node: "a", Name: "at first", Value: 0.25},
	}
	table := measuredTable(&Source{Data: figure.Data{Summary: s, Traces: traces}})
	want := [][]string{{"1", "0", "at first", "1", "0.25", "0.25"}, {"1", "0", "bytes", "2", "5.5", "11"}}
	if diff := cmp.Diff(want, table.Rows); diff != "" {
		t.Error(diff)
	}
}

// makePage makes a page of records and returns its text and what was written.
func makePage(t testing.TB, dirs ...string) (string, *Output) {
	t.Helper()
	sources, err := Read(dirs)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Write(filepath.Join(t.TempDir(), "page.html"), sources)
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
	text, o := makePage(t, reporttest.WriteRecord(t, "first", "some plan", []string{"iid", "by class"}, 3, nil))
	for _, want := range []string{
		"<title>Gradwire: some plan</title>", "first: 6 runs of 2 points, plan some plan, target 94 %.",
		"<h3>Accuracy over epochs</h3>", "<h3>Accuracy over time</h3>", "<h3>Accuracy over bytes sent</h3>",
		"<h3>Time to the target</h3>",
		"<h3>Epochs to the target</h3>", "<h3>Staleness of updates</h3>", "<h3>Waiting</h3>",
		"<h3>Topology and delays</h3>",
		"<td>0.001</td><td>0.5</td><td>3</td>", "name: some plan\n", ">avx512<",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if o.Figures != 8 {
		t.Errorf("%d figures, want 8", o.Figures)
	}
	for class, want := range map[string]int{`class="wide"`: 8, `class="narrow"`: 8, `role="img"`: 16,
		"<figcaption>": 8} {
		if n := strings.Count(text, class); n != want {
			t.Errorf("%d × %s, want %d", n, class, want)
		}
	}
	images, err := filepath.Glob(filepath.Join(o.Folder, "*.png"))
	if err != nil || len(images) != 8 {
		t.Errorf("images: %q, %v", images, err)
	}
	for _, path := range images {
		if _, err := png.Decode(bytes.NewReader(reporttest.ReadFile(t, path))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		reporttest.Texts(t, reporttest.ReadFile(t, reporttest.Vector(path)))
	}
	needsNothing(t, text)
}

// needsNothing checks that a page has no script and asks for nothing.
func needsNothing(t *testing.T, text string) {
	t.Helper()
	for _, outside := range []string{"http:", "https:", "//", "src=", "<script", "<link", "<iframe", "url(",
		"@import"} {
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
	dir := reporttest.WriteRecord(t, "first", hostile("plan"), labels, 1, func(r *record.Run, d *record.Data) {
		r.Point[0].Key, r.Digest = hostile("key"), hostile("digest")
		r.Outcome, r.Incidents = record.Degraded, []record.Incident{{At: 1, Node: hostile("where"),
			What: hostile("incident")}}
		d.Links[0].From, d.Links[1].To = hostile("node"), hostile("node")
		d.Updates[0].Node = hostile("worker")
	})
	path := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(path, []byte(hostile("plan.yaml")+"</pre></details>"), 0o666); err != nil {
		t.Fatal(err)
	}
	text, _ := makePage(t, dir)
	elements := regexp.MustCompile(`<!?/?([A-Za-z!-][A-Za-z0-9!-]*)`)
	accepted := strings.Fields("doctype html head meta title style body header h1 p nav ul li a main section " +
		"details summary h2 div figure h3 svg g path text " +
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
	if strings.Count(text, "</svg>") != strings.Count(text, "<svg") ||
		strings.Count(text, "</pre>") != strings.Count(text, "<pre") {
		t.Error("the record has closed elements of the page")
	}
}

func TestPageOfSeveralRecordsShowsThemTogetherAndByThemselves(t *testing.T) {
	if testing.Short() {
		t.Skip("draws three of every figure")
	}
	one := reporttest.WriteRecord(t, "one", "p", []string{"a", "b"}, 2, nil)
	two := reporttest.WriteRecord(t, "two", "p", []string{"a"}, 2, nil)
	text, o := makePage(t, one, two)
	for _, want := range []string{"Accuracy over time, all records", "Accuracy over time, one",
		"Accuracy over time, two", "Topology and delays, one", "Build, two"} {
		if !strings.Contains(text, ">"+want+"<") {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Index(text, "over time, all records<") > strings.Index(text, "over time, one<") ||
		strings.Index(text, "over time, two<") > strings.Index(text, "over bytes sent, all") {
		t.Error("figures of a kind are not beside each other")
	}
	if strings.Count(text, "<caption>Medians, and means of goodput, messages and MB, all records</caption>") != 1 ||
		strings.Count(text, "<caption>Medians") != 1 {
		t.Error("the records do not share a table")
	}
	for _, folder := range []string{"0-all", "1-one", "2-two"} {
		if _, err := os.Stat(filepath.Join(o.Folder, folder, "accuracy-time.svg")); err != nil {
			t.Error(err)
		}
	}
	if _, err := Read([]string{one, filepath.Join(two, "..", "..", "..", filepath.Base(filepath.Dir(filepath.Dir(one))),
		filepath.Base(filepath.Dir(one)), "one")}); err == nil {
		t.Error("a record named twice was accepted")
	}
}

// The page of two records with equal points says how much the times changed, and whether the order
// changed, in the words of the labels.
func TestPageOfTwoRecordsSaysWhatChanged(t *testing.T) {
	labels := []string{"{kind: gossip, every: 2}", "{kind: gossip, every: 4}", "{kind: local, every: 4}"}
	slower := func(factor float64, which string) func(*record.Run, *record.Data) {
		return func(r *record.Run, d *record.Data) {
			if r.TimeToTarget == nil || !strings.Contains(r.Point.String(), which) {
				return
			}
			*r.TimeToTarget *= factor
			r.Bracket.TimeAfter, r.Bracket.TimeBefore = r.Bracket.TimeAfter*factor, r.Bracket.TimeBefore*factor
			for i := range d.Curve {
				d.Curve[i].Time *= factor
			}
			r.Duration *= factor
		}
	}
	sources, err := Read([]string{reporttest.WriteRecord(t, "one", "one", labels, 6, slower(1, "")),
		reporttest.WriteRecord(t, "two", "two", labels, 6, slower(20, "every: 2"))})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(Paired(sources), "\n")
	for _, want := range []string{"The order of split changes with record beyond doubt", "two ÷ one: 20 [",
		"] with gossip, every 2; 1 ["} {
		if !strings.Contains(said, want) {
			t.Errorf("%q lacks %q", said, want)
		}
	}
	for _, row := range pairOf(sources).table().Rows {
		if strings.Contains(row[0], "{") {
			t.Errorf("a row is called %q", row[0])
		}
	}
}

// Times have a ratio only if they are times to one target, of the same judged models. A note says if
// the records have no seeds in common.
func TestRatiosAreOfTimesThatCanBeCompared(t *testing.T) {
	target := func(r *record.Run, _ *record.Data) { r.Target = new(0.5) }
	of := func(r *record.Run, d *record.Data) {
		r.Of = record.Any
		for i := range d.Curve {
			d.Curve[i].Models = 4
		}
	}
	several := func(r *record.Run, d *record.Data) { of(r, d); r.Of = record.Mean }
	seed := func(r *record.Run, _ *record.Data) { r.Seed += 100 }
	for _, c := range []struct {
		name       string
		a, b       func(*record.Run, *record.Data)
		ratio      bool
		want, lack string
	}{
		{"equal", nil, nil, true, "two ÷ one: 1", "No seeds"},
		{"targets", nil, target, false, "one runs to 94 %, two to 50 %", "÷"},
		{"models", several, of, false, "one judges the mean of the nodes, two the best node", "÷"},
		{"seeds", nil, seed, true, "No seeds in common: the ratio of the medians", "runs of equal seeds"},
	} {
		sources, err := Read([]string{reporttest.WriteRecord(t, "one", "p", []string{"a"}, 3, c.a),
			reporttest.WriteRecord(t, "two", "p", []string{"a"}, 3, c.b)})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(Paired(sources), "\n")
		if !strings.Contains(said, c.want) || strings.Contains(said, c.lack) ||
			strings.Contains(said, "two ÷ one: ") != c.ratio {
			t.Errorf("%s: %q", c.name, said)
		}
		if note := pairOf(sources).table().Note; strings.Contains(note, "equal seeds") != (c.name == "equal") {
			t.Errorf("%s: the table notes %q", c.name, note)
		}
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
	sources, err := Read([]string{reporttest.WriteRecord(t, "one", "p", []string{"a"}, 2, nil),
		reporttest.WriteRecord(t, "two", "p", []string{"a"}, 2, nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		second *float64
		want   int
	}{{new(0.94), 1}, {new(0.5), 2}, {nil, 2}} {
		sources[1].Summary.Target, sources[1].Summary.Groups = c.second,
			record.GroupRuns(sources[1].Summary.Runs, c.second)
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
	dir := reporttest.WriteRecord(t, "first", "p", []string{"a", "b"}, 2, nil)
	first, one := makePage(t, dir)
	second, two := makePage(t, dir)
	if first != second {
		t.Error("the pages differ")
	}
	for _, table := range one.Tables {
		if !bytes.Equal(reporttest.ReadFile(t, filepath.Join(one.Folder, table)),
			reporttest.ReadFile(t, filepath.Join(two.Folder, table))) {
			t.Errorf("%s differs", table)
		}
	}
}

func TestTablesOfAPageHoldTheRecordsFigures(t *testing.T) {
	late := record.Incident{At: 1.5, Node: "coordinator", What: "evaluated late", Harm: record.ToTimes}
	dir := reporttest.WriteRecord(t, "first", "p", []string{"a, b", "c"}, 3, func(r *record.Run, _ *record.Data) {
		r.Outcome, r.Incidents = record.Degraded, []record.Incident{late}
	})
	sources, err := Read([]string{dir})
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
			"record": "first", "run": strconv.Itoa(i), "point": r.Point.String(),
			"seed":           strconv.FormatUint(r.Seed, 10),
			"final_accuracy": r.FinalAccuracy.String(), "bytes": strconv.FormatInt(r.Bytes, 10),
		}
		for key, value := range want {
			if row[key] != value {
				t.Errorf("run %d: %s is %q, want %q", i, key, row[key], value)
			}
		}
	}
	incidents := readTable(t, filepath.Join(o.Folder, "incidents.csv"))
	if len(incidents) != len(s.Runs) || incidents[0]["what"] != late.What || incidents[0]["harm"] != "times" {
		t.Errorf("incidents: %v", incidents)
	}
	groups := readTable(t, filepath.Join(o.Folder, "groups.csv"))
	if len(groups) != 2 || groups[0]["final_accuracy"] != s.Groups[0].FinalAccuracy.Mean.String() ||
		groups[1]["reached"] != strconv.Itoa(s.Groups[1].Reached) {
		t.Errorf("groups: %v", groups)
	}
	workers := readTable(t, filepath.Join(o.Folder, "workers.csv"))
	if len(workers) != 6 || workers[0]["count"] != "36" || workers[0]["mean"] != "0.5" || workers[0]["p99"] != "3" ||
		workers[2]["p50"] != "0.15" {
		t.Errorf("workers: %v", workers)
	}
	if links := readTable(t, filepath.Join(o.Folder, "links.csv")); len(links) != 4 ||
		links[1]["delay_achieved_s"] != "0.5" {
		t.Errorf("links: %v", links)
	}
}

func readTable(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(reporttest.ReadFile(t, path))).ReadAll()
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
	dir := reporttest.WriteRecord(t, "many", "p", reporttest.Shares(), 20, nil)
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

// F3: where there is no server, no staleness was measured.
func TestStalenessIsNotShownWhereThereIsNoServer(t *testing.T) {
	for models, want := range map[int]string{1: "0", 3: report.NoValue} {
		dir := reporttest.WriteRecord(t, "first", "p", []string{"a"}, 1, func(_ *record.Run, d *record.Data) {
			for i := range d.Curve {
				d.Curve[i].Models = models
			}
			for i := range d.Updates {
				d.Updates[i].Staleness = record.Staleness{Counts: []record.Count{{Value: 0, Count: 4}}}
			}
		})
		sources, err := Read([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		table := workTable(sources[0])
		if got := table.Rows[0][3]; got != want || strings.Contains(table.Note, "no version") != (models > 1) {
			t.Errorf("%d models: staleness %q, note %q", models, got, table.Note)
		}
	}
}

func FuzzPageBearsAnyRecord(f *testing.F) {
	summary := `{"plan": "p", "target": 0.5, "runs": [{"run": 0, "point": {"k": "a"}, "seed": 1, "clock": "virtual"}]}`
	run := `{"run": 0, "point": {"k": "a"}, "seed": 1, "clock": "virtual", "data": {"curve": [%s], "links": [%s], ` +
		`"updates": [%s]}}`
	evaluation := `{"evaluation": 1, "time_s": %g, "epoch": %g, "accuracy": %s, "bytes": 9223372036854775807}`
	for _, v := range []float64{0, 5e-324, 1e-300, 1, 1e12} {
		curve := fmt.Sprintf(evaluation, 0.0, 0.0, "null") + "," + fmt.Sprintf(evaluation, v, v, "1")
		link := fmt.Sprintf(`{"from": "a", "to": "b", "messages": 9223372036854775807, "delay_asked_s": %g, `+
			`"delay_achieved_s": %g}`, v, v)
		worker := fmt.Sprintf(`{"node": "a", "updates": 18446744073709551615, "staleness": {"counts": [
			{"value": 18446744073709551615, "count": 18446744073709551615}]},
			"waiting": [{"buckets": [{"low_s": %g, "high_s": 1e12, "count": 1, "total_s": 1.7e308},
			{"low_s": 0, "high_s": 0, "count": 1, "total_s": 1.7e308}]}]}`, v)
		f.Add(summary, fmt.Sprintf(run, curve, link+","+link, worker))
	}
	f.Add(summary, fmt.Sprintf(run, "", "", ""))
	second := `"run": 0, "point": {"k": "a"}, "seed": 1, "clock": "virtual", "outcome": "degraded",
		"of": "all", "models": 3, "reached": true,
		"time_to_target_s": 1, "epochs_to_target": 5e-324, "crossings_s": {"any": 0},
		"incidents": [{"at_s": 1e12, "node": "n", "what": "w"}]`
	f.Add(`{"version": 2, "plan": "p", "target": 0.5, "runs": [{`+second+`}]}`, `{"version": 2, `+second+`,
		"data": {"curve": [{"evaluation": 1, "time_s": 1, "accuracy": 0.5, "models": 3, "average_model": null,
			"mean": 0.5, "all": 0, "any": 1}],
		"links": [], "updates": []}}`)
	f.Add(`{"runs": []}`, "")
	f.Add(`{"plan": "p"`, "{")
	f.Fuzz(func(t *testing.T, summary, run string) {
		if testing.Short() {
			t.Skip("draws a page for each seed")
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"plan.yaml": "name: p", "summary.json": summary,
			"runs/0000/run.json": run} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		sources, err := Read([]string{dir})
		if err != nil {
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("an error that names no file: %v", err)
			}
			return
		}
		if _, err := Write(filepath.Join(dir, "page.html"), sources); err != nil {
			t.Error(err)
		}
	})
}

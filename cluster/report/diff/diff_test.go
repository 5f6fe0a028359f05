package diff

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

// pair writes a record twice, the second time changed.
func pair(t *testing.T, change func(*record.Run, *record.Data)) (a, b string) {
	t.Helper()
	labels := []string{"x", "y"}
	return reporttest.WriteRecord(t, "a", "p", labels, 2, nil), reporttest.WriteRecord(t, "b", "p", labels, 2, change)
}

func compare(t *testing.T, a, b string) *Comparison {
	t.Helper()
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func number2(dir string) string { return filepath.Join(dir, "runs", "0002") }

func TestEqualRecordsAndRunsDoNotDiffer(t *testing.T) {
	// How long the machine took is not of the run.
	a, b := pair(t, func(r *record.Run, _ *record.Data) { r.Wall = 77 })
	if c := compare(t, a, b); !c.Equal || c.Compared != 4 || c.Kind != "record" {
		t.Errorf("records: %+v", c)
	}
	c := compare(t, number2(a), number2(b))
	if !c.Equal || c.Kind != "run" || !slices.Contains(c.What, "a model of 3 parameters") {
		t.Errorf("runs: %+v", c)
	}
	var text strings.Builder
	if err := c.Write(&text); err != nil || !strings.Contains(text.String(), "\nequal: summary, ") {
		t.Errorf("%v, written:\n%s", err, text.String())
	}
}

// changes are what is changed in one of two runs, and the difference that is found.
var changes = []struct {
	name        string
	change      func(*record.Run, *record.Data)
	what, where string
	a, b        string // the values in JSON; empty for any
	note        string
}{
	{name: "steps", change: func(r *record.Run, _ *record.Data) { r.Steps++ }, what: "steps", a: "360", b: "361"},
	{name: "digest", change: func(r *record.Run, _ *record.Data) { r.Digest = "ff" }, what: "digest", a: `""`,
		b: `"ff"`},
	{name: "clock", change: func(r *record.Run, _ *record.Data) { r.Clock = "real" }, what: "clock", a: `"virtual"`,
		b: `"real"`},
	{
		name: "accuracy", change: func(_ *record.Run, d *record.Data) {
			d.Curve[7].Accuracy, d.Curve[8].Accuracy = 0.5, 0.25
		},
		what: "curve", where: `evaluation 8 at 42.00000000000001 s, accuracy`, b: "0.5", note: "2 of ",
	},
	{
		name: "shorter", change: func(_ *record.Run, d *record.Data) { d.Curve = d.Curve[:3] },
		what: "curve", where: `evaluation 4 at 18.000000000000004 s`, b: "null",
	},
	{
		name: "link", change: func(_ *record.Run, d *record.Data) { d.Links[1].Lost = 4 },
		what: "links", where: `from "near" to "server", lost`, a: "3", b: "4", note: "1 of 2 differ",
	},
	{
		name: "worker", change: func(_ *record.Run, d *record.Data) { d.Updates[0].Samples = 5 },
		what: "updates", where: `worker "near", samples`, a: "0", b: "5",
	},
	{
		name: "models", change: func(_ *record.Run, d *record.Data) {
			d.Models = []record.ModelVerdict{{Number: 1, Node: "n"}}
		},
		what: "models", where: `evaluation 1 of "n"`, a: "null",
	},
	{name: "outcome", change: func(r *record.Run, _ *record.Data) { r.Outcome = record.Degraded }, what: "outcome",
		a: `"done"`, b: `"degraded"`},
	{
		name: "measured", change: func(_ *record.Run, d *record.Data) {
			d.Measured = []record.Measurement{{Time: 2, Node: "n", Name: "x"}}
		},
		what: "measured", where: `"x" of "n" at 2 s`, a: "null",
	},
}

func TestEveryDifferenceOfTwoRunsIsFoundWhereItIs(t *testing.T) {
	for _, d := range changes {
		a, b := pair(t, func(r *record.Run, data *record.Data) {
			if r.Number == 2 {
				d.change(r, data)
			}
		})
		for kind, c := range map[string]*Comparison{"run": compare(t, number2(a), number2(b)),
			"record": compare(t, a, b)} {
			if c.Equal || len(c.Runs) != 1 || len(c.Runs[0].Differences) != 1 {
				t.Errorf("%s, %s: %+v", d.name, kind, c)
				continue
			}
			got := c.Runs[0].Differences[0]
			if got.What != d.what || got.Where != d.where || d.a != "" && d.a != null(got.A) ||
				d.b != "" && d.b != null(got.B) || !strings.Contains(got.Note, d.note) {
				t.Errorf("%s, %s: %s, %+v", d.name, kind, got, got)
			}
			var text strings.Builder
			if err := c.Write(&text); err != nil || !strings.Contains(text.String(), "first difference: ") {
				t.Errorf("%s, %s: %v, written:\n%s", d.name, kind, err, text.String())
			}
			if _, err := json.Marshal(c); err != nil {
				t.Errorf("%s, %s: %v", d.name, kind, err)
			}
		}
	}
}

// The text has a row for each entry that differs of a mapping or a list, and no JSON. Mappings of one
// side stand in words.
func TestTheTextShowsTheEntriesThatDiffer(t *testing.T) {
	of := map[record.Of]float64{record.All: 9.25, record.Any: 3, record.Mean: 7.125, record.AverageModel: 6}
	a, b := pair(t, func(r *record.Run, d *record.Data) {
		r.Crossings = of
		r.Incidents = []record.Incident{{At: 2, Node: "n1", What: "lost"}}
		d.Curve = d.Curve[:len(d.Curve)-1]
	})
	c := compare(t, number2(a), number2(b))
	other := reporttest.WriteRecord(t, "c", "p", []string{"x", "y"}, 2, func(r *record.Run, d *record.Data) {
		r.Crossings = map[record.Of]float64{record.All: 9.5, record.Any: 3, record.Mean: 7.125, record.AverageModel: 6}
	})
	for _, one := range []struct {
		c    *Comparison
		want []string
	}{
		{c, []string{"crossings_s: all|–|9.25", "crossings_s: any|–|3", "incidents: 1|–|at_s 2, ", "accuracy "}},
		{compare(t, number2(b), number2(other)), []string{"crossings_s: all|9.25|9.5\n"}},
	} {
		var b strings.Builder
		if err := one.c.Write(&b); err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(" {2,}").ReplaceAllString(b.String(), "|")
		for _, want := range one.want {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		if strings.ContainsAny(text, "{}[]") {
			t.Errorf("there is JSON in\n%s", text)
		}
	}
}

func null(value json.RawMessage) string {
	if value == nil {
		return "null"
	}
	return string(value)
}

func TestRunsOfOnlyOneRecordAreNamed(t *testing.T) {
	a := reporttest.WriteRecord(t, "a", "p", []string{"x", "y"}, 2, nil)
	b := reporttest.WriteRecord(t, "b", "q", []string{"y", "z"}, 1, nil)
	c := compare(t, a, b)
	if c.Equal || c.Plan == nil || c.Plan.Where != "line 1" || len(c.OnlyA) != 3 || len(c.OnlyB) != 1 ||
		c.Compared != 1 {
		t.Errorf("%+v", c)
	}
	if want := "run 1 (data.split=z, seed 1)"; len(c.OnlyB) == 1 && c.OnlyB[0] != want {
		t.Errorf("only B has %q, want %q", c.OnlyB[0], want)
	}
}

// events gives the run 2 of a record events.
func events(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(number2(dir), "events.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEventsAreComparedLineByLine(t *testing.T) {
	a, b := pair(t, nil)
	same := strings.Repeat("{\"time_s\":1,\"node\":\"n\"}\n", 5000)
	events(t, a, same+"{\"time_s\":2,\"step\":3}\n{}\n")
	events(t, b, same+"{\"time_s\":2,\"step\":4}\n")
	c := compare(t, number2(a), number2(b))
	if c.Equal || len(c.Runs) != 1 || len(c.Runs[0].Differences) != 1 {
		t.Fatalf("%+v", c)
	}
	d := c.Runs[0].Differences[0]
	if d.What != "events" || d.Where != "line 5001" || d.Note != "step 3 | 4" {
		t.Errorf("%+v", d)
	}
	events(t, b, same+"{\"time_s\":2,\"step\":3}\n")
	if d := compare(t, number2(a), number2(b)).Runs[0].Differences[0]; d.Where != "line 5002" || string(d.A) != "{}" ||
		d.B != nil {
		t.Errorf("%+v", d)
	}
	events(t, a, same+"\x1b[31mno JSON")
	var text strings.Builder
	c = compare(t, number2(a), number2(b))
	if err := c.Write(&text); err != nil || strings.Contains(text.String(), "\x1b") ||
		!strings.Contains(text.String(), "[31mno JSON") {
		t.Errorf("%v, written: %q", err, text.String())
	}
	if err := os.Remove(events(t, b, "")); err != nil {
		t.Fatal(err)
	}
	if c := compare(t, number2(a), number2(b)); c.Equal || c.Runs[0].Differences[0].Note != "only one of them has it" {
		t.Errorf("events of one only: %+v", c)
	}
}

func TestEventsOfGiganticLinesAreAnErrorWithTheirLine(t *testing.T) {
	a, b := pair(t, nil)
	events(t, a, "{}\n")
	path := events(t, b, "{}\n")
	if err := os.Truncate(path, 1<<36); err != nil {
		t.Skipf("no such large file here: %v", err)
	}
	if _, err := Compare(number2(a), number2(b)); err == nil ||
		!strings.HasPrefix(err.Error(), path+":2: this line has more than") {
		t.Errorf("got %v", err)
	}
}

func TestModelsThatDifferAreFoundByTensor(t *testing.T) {
	a, b := pair(t, nil)
	path := filepath.Join(number2(b), "model.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(f, nil, nil, []float32{1, 2.5, 2}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c := compare(t, a, b)
	if c.Equal || len(c.Runs) != 1 {
		t.Fatalf("%+v", c)
	}
	if got, want := c.Runs[0].Differences[0].String(), `model, "params", element 1: 2 | 2.5`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := os.Truncate(path, 20); err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(a, b); err == nil || !strings.Contains(err.Error(),
		path+" (B): model B: the header ends after") {
		t.Errorf("a model that is cut off: %v", err)
	}
}

func TestOnlyLikeIsComparedWithLike(t *testing.T) {
	a, b := pair(t, nil)
	for _, c := range []struct{ a, b, want string }{
		{a, number2(b), "two runs or two records are accepted"},
		{a, filepath.Join(b, "none"), "none is no folder of a record: no such file"},
		{a, t.TempDir(), "no plan.yaml"},
		{filepath.Join(a, "runs", "0099"), number2(b), filepath.Join("runs", "0099")},
	} {
		if _, err := Compare(c.a, c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: got %v", c.a, c.b, err)
		}
	}
}

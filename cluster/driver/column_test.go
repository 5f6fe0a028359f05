package driver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
)

const sited = `
name: sited
seed: 3
data: {set: csv, file: sites.csv, test-file: test.csv, split: {kind: column, column: site}}
model: {kind: mlp, layers: [1, 2]}
train: {batch: 10, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: all-reduce}
nodes: [{name: fra, compute: {step: 5ms}}, {name: lon, compute: {step: 5ms}}]
evaluate: {every: 5 steps, of: average-model}
stop: {steps: 10}
`

// A table that is split by a column trains as the same samples do that are given to the workers by
// their classes: here a site and a class are the same.
func TestATableIsSplitByAColumn(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"sites.csv", "test.csv"} {
		var text strings.Builder
		text.WriteString("x,site,label\n")
		for i := range 40 {
			fmt.Fprintf(&text, "%d,%s,%d\n", i*i%17, []string{"fra", "lon"}[i%2], i%2)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(set ...string) *driver.Plan {
		p, err := driver.Parse(filepath.Join(dir, "sited.yaml"), []byte(sited), set...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	want := digests(run(t, parse("data.ignore=[site]",
		"data.split={kind: classes, workers: {fra: {0: 100%}, lon: {1: 100%}}}"), driver.Options{}))
	for _, split := range []string{"{kind: column, column: site}", "{kind: column, column: 2}",
		"{kind: column, column: site, workers: {lon: [lon], fra: [fra]}}"} {
		r := run(t, parse("data.split="+split), driver.Options{})
		if got := digests(r); !slices.Equal(sortedDigests(got), sortedDigests(want)) {
			t.Errorf("%s: digests %v, want %v", split, got, want)
		}
	}
	for split, want := range map[string]string{
		"{kind: column, column: town}": `there is no column "town"; accepted are names of a header`,
		"{kind: column, column: site, workers: {rom: [lon], fra: [fra]}}": `unknown worker "rom"; there are ` +
			`["fra" "lon"]`,
		"{kind: column, column: site, workers: {lon: [rom, lon], fra: [fra]}}": "no training sample's site is " +
			"rom, which worker lon is to see",
		"{kind: column}": "column",
	} {
		_, err := try(t, parse("data.split="+split), driver.Options{})
		expectInput(t, err, want)
	}
	_, err := driver.Run(context.Background(), load(t, described93, "data.split={kind: column, column: site}"),
		driver.Options{Out: filepath.Join(dir, "out")})
	expectInput(t, err, "data set synthetic-traffic has no columns to split by; csv has")
}

func TestErrorsAboutColumnsNameTheirSettings(t *testing.T) {
	once := rare(t, t.TempDir(), "once.csv", 1)
	for set, want := range map[string]string{
		"data.label=z":      `data.label: ` + once + `:1: there is no column "z"`,
		"data.words=[x, z]": `data.words: ` + once + `:1: there is no column "z"`,
		"data.ignore=[4]":   `data.ignore: ` + once + `:2: the line before: there is no column "4"`,
		"data.ignore=[x]":   ``,
	} {
		p, err := driver.Parse("unequal.yaml", fmt.Appendf(nil, unequal, once, once), set, "model.layers=[1, 2]")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = try(t, p, driver.Options{}); want != "" {
			expectInput(t, err, want)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// sortedDigests are the digests, whatever the points are called.
func sortedDigests(digests map[string]string) (all []string) {
	for _, d := range digests {
		all = append(all, d)
	}
	slices.Sort(all)
	return all
}

// A file for each worker is the same as one table that is split by a column: the same samples are
// held out, and inputs are filled, scaled and encoded alike.
func TestAFileForEachWorkerIsATableSplitByAColumn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "x,colour,label\n"
	var one strings.Builder
	parts := map[string]string{}
	one.WriteString("x,colour,label,site\n")
	for site, colours := range []string{"red blue", "green blue red"} {
		name := []string{"fra", "lon"}[site]
		parts[name] = head
		for i := range 30 + 17*site {
			of := strings.Fields(colours)
			line := fmt.Sprintf("%d,%s,%d", i*i%17-5*site, of[i%len(of)], (i*i%17)/9)
			if i%11 == 3 {
				line = "," + strings.SplitN(line, ",", 2)[1]
			}
			parts[name] += line + "\n"
			one.WriteString(line + "," + name + "\n")
		}
	}
	table, fra, lon := write("one.csv", one.String()), write("a.csv", parts["fra"]), write("b.csv", parts["lon"])
	const rest = "label: label, words: [colour], missing: mean, test: 25%"
	model := "model={kind: mlp, layers: [4, 2]}"
	files := "data={set: csv, file: {lon: " + lon + ", fra: " + fra + "}, " + rest
	want := run(t, load(t, sited, "data={set: csv, file: "+table+", split: {kind: column, column: site}, "+rest+"}",
		model), driver.Options{})
	for _, split := range []string{"}", ", split: {kind: file}}"} {
		got := run(t, load(t, sited, files+split, model), driver.Options{})
		if !slices.Equal(sortedDigests(digests(got)), sortedDigests(digests(want))) {
			t.Errorf("%s: digests %v, of one table %v", split, digests(got), digests(want))
		}
	}
	dealt := load(t, sited, files+", split: {kind: iid}}", model)
	pooled := load(t, sited, "data={set: csv, file: "+table+", ignore: [site], "+rest+"}", model)
	if got, want := run(t, dealt, driver.Options{}), run(t, pooled, driver.Options{}); !slices.Equal(
		sortedDigests(digests(got)), sortedDigests(digests(want))) {
		t.Errorf("dealt out: digests %v, of one table %v", digests(got), digests(want))
	}
	live := run(t, load(t, sited, files+"}", model), driver.Options{Clock: driver.Real})
	for _, of := range []*driver.Report{want, live} {
		if of.Runs[0].Outcome != record.Done {
			t.Errorf("ended as %v", of.Runs[0].Outcome)
		}
		p := predict(t, of, driver.OtherFile{Path: lon})
		if len(p.Predictions) != 47 || len(p.Unknown) != 0 {
			t.Errorf("%d predictions, unknown %v", len(p.Predictions), p.Unknown)
		}
	}
	wrongFiles(t, files, fra, lon, write, parts["lon"])
}

// wrongFiles asks for files that are no parts of one table.
func wrongFiles(t *testing.T, files, fra, lon string, write func(name, text string) string, text string) {
	t.Helper()
	lines := strings.SplitAfter(text, "\n")
	for content, want := range map[string]string{
		strings.Replace(text, "colour", "tint", 1): `:1: column 2 is named "tint"; the first file names it "colour"`,
		strings.ReplaceAll(text, ",label", ""):     ":1: 2 columns; the first file has 3",
		lines[0] + lines[1] + "x,red,1\n":          `:3: column 1 (x): "x" is not a number`,
		lines[0]:                                   "no samples",
	} {
		path := write("wrong.csv", content)
		_, err := try(t, load(t, sited, strings.Replace(files, lon, path, 1)+"}"), driver.Options{})
		expectInput(t, err, want)
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%v does not name %s", err, path)
		}
	}
	for file, want := range map[string]string{
		"{fra: " + fra + "}": `worker "lon" has no file; there are files for fra`,
		"{fra: " + fra + ", lon: " + lon + ", par: " + lon + "}": `there is a file for "par", who is no worker; ` +
			"there are fra, lon",
		"{}":                                   "found a map; accepted are a path, or one for each worker",
		"[" + fra + "]":                        "found a list; accepted are a path, or one for each worker",
		"{fra: " + fra + ", lon: nowhere.csv}": "data.file.lon: the file of samples cannot be read: open nowhere.csv",
	} {
		p, err := driver.Parse("sited.yaml", []byte(sited), "data={set: csv, file: "+file+"}")
		if err == nil {
			_, err = try(t, p, driver.Options{})
		}
		expectInput(t, err, want)
	}
	_, err := try(t, load(t, sited, "data={set: csv, file: "+fra+", split: {kind: file}}"), driver.Options{})
	expectInput(t, err, "data.split: split file: the data set is not of several files")
}

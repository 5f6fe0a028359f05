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

// sortedDigests are the digests, whatever the points are called.
func sortedDigests(digests map[string]string) (all []string) {
	for _, d := range digests {
		all = append(all, d)
	}
	slices.Sort(all)
	return all
}

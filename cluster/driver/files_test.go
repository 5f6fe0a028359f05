package driver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report/diff"
	"github.com/gradwire/gradwire/cluster/shelf"
)

const tabled = `
name: tabled
data: {set: csv, file: table.csv, header: absent}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.01}}
architecture: {kind: all-reduce}
nodes: [{name: w, count: 2, compute: {step: 5ms}}]
evaluate: {every: 5 steps}
stop: {steps: 10}
`

func TestFilesOfSamplesAreInTheRecordAndACutOneIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "table.csv")
	table(t, file)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parse := func() *driver.Plan {
		p, err := driver.Parse(filepath.Join(dir, "tabled.yaml"), []byte(tabled))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := run(t, parse(), driver.Options{})
	sum := sha256.Sum256(whole)
	want := record.DataFile{Name: "table.csv", Size: int64(len(whole)), SHA256: hex.EncodeToString(sum[:])}
	if !reflect.DeepEqual(first.Data, []record.DataFile{want}) {
		t.Errorf("the record has %+v, read was %+v", first.Data, want)
	}

	lines := strings.SplitAfter(string(whole), "\n")
	if err := os.WriteFile(file, []byte(strings.Join(lines[:len(lines)/2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := driver.Replay(context.Background(), runFolder(first.Dir, 0), driver.Options{})
	if err != nil || again.Equal || len(again.OtherData) != 1 || !strings.Contains(again.OtherData[0],
		"table.csv had") {
		t.Errorf("replayed with half of the file: %+v, %v", again, err)
	}
	second := run(t, parse(), driver.Options{})
	c, err := diff.Compare(first.Dir, second.Dir)
	if err != nil || !slices.ContainsFunc(c.Notes, func(s string) bool {
		return strings.Contains(s, want.SHA256) && strings.Contains(s, second.Data[0].SHA256)
	}) {
		t.Errorf("notes %q, %v", c.Notes, err)
	}
	_, err = driver.Run(context.Background(), parse(), driver.Options{Out: first.Dir, Continue: true})
	expectInput(t, err, "was made with other samples: the data differ: table.csv had")
}

func TestPublishedFileThatIsCutAtALineEndIsRefused(t *testing.T) {
	dir := t.TempDir()
	line := strings.Repeat("0,", 57) + "1\n"
	if err := os.WriteFile(filepath.Join(dir, "spambase.data"), []byte(line+strings.Replace(line, "1\n", "0\n", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	l, err := catalog.Default().Loader("spambase")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = shelf.Load(l, []string{dir}, false); err == nil || !strings.Contains(err.Error(),
		"spambase.data: the file is cut short: 232 bytes of content; the published file has 702942") {
		t.Errorf("error %v", err)
	}
}

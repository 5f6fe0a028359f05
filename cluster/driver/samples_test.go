package driver_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/turns"
)

// table writes a table of samples, of which the workers of a run have more than go into one
// message.
func table(t *testing.T, path string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for range 4000 {
		class := random.IntN(5)
		for range 93 {
			fmt.Fprintf(&b, "%.3f,", random.NormFloat64()+float64(class))
		}
		fmt.Fprintln(&b, class)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSamplesAreSentToProcessesThatDoNotHaveThem(t *testing.T) {
	turns.Take(t, 1, 3)
	t.Parallel()
	c := newCluster(t)
	data := t.TempDir()
	table(t, filepath.Join(data, "table.csv"))
	defer c.serve("a", func(n *driver.NodeConfig) { n.Data = data })()
	defer c.serve("b")()
	client := c.client(identity.Operator)
	c.gather(client, 2)
	const set = "data={set: csv, file: table.csv, header: absent, delivery: sent, split: {kind: classes}}"
	sent := strings.Replace(set, "classes}", "shards, per-worker: 5}", 1)
	const rate, twice = "train.optimizer.rate=0.4", "stop={steps: 24}"
	submit := func(set ...string) (string, error) {
		return client.Submit(t.Context(), load(t, alternating, set...),
			driver.SubmitOptions{Place: []string{"server=a", "worker=b"}})
	}
	id, err := submit(sent, rate, twice)
	if err != nil {
		t.Fatal(err)
	}
	summary, dir := c.end(client, id)
	plan, err := driver.Parse(filepath.Join(data, "turns.yaml"), []byte(alternating), sent, rate, twice,
		"data.file="+filepath.Join(data, "table.csv"))
	if err != nil {
		t.Fatal(err)
	}
	virtual := run(t, plan, driver.Options{})
	if got, want := summary.Runs[0].FinalAccuracy, virtual.Runs[0].FinalAccuracy; got != want || got < 0.5 {
		t.Errorf("accuracy %v, in virtual time %v", got, want)
	}
	const model = "runs/0000/model.safetensors"
	if !bytes.Equal(read(t, dir, model), read(t, virtual.Dir, model)) {
		t.Error("the models differ")
	}

	const own = "data={set: csv, file: {worker: table.csv}, header: absent, delivery: sent}"
	const weights = "train.class-weights=balanced"
	if id, err = submit(own, rate, twice, weights); err != nil {
		t.Fatal(err)
	}
	_, dir = c.end(client, id)
	here := strings.Replace(own, "table.csv", filepath.Join(data, "table.csv"), 1)
	virtual = run(t, load(t, alternating, here, rate, twice, weights), driver.Options{})
	if !slices.Equal(paramsOf(t, dir), paramsOf(t, virtual.Dir)) {
		t.Error("the parameters differ where the table is the worker's and classes have weights")
	}

	_, err = submit(sent, "data.delivery=local")
	expectInput(t, err,
		"process b: small.yaml:7:9: data.file: the file of samples cannot be read: openat table.csv: no such file or "+
			"directory; node b reads the files of a plan only from its data folder, ")
	_, err = submit("data={set: csv, file: nowhere.csv, header: absent, delivery: sent}")
	expectInput(t, err, "process a: --set data={")
	_, err = submit("data.delivery=post")
	expectInput(t, err, `unknown delivery "post" (accepted: local, sent)`)
}

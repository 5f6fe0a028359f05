package report_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report/diff"
	"github.com/gradwire/gradwire/cluster/report/page"
)

const quick = `
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes: [{name: server, role: server}, {name: worker, role: worker, count: 2, compute: {step: 5ms}}]
network: {default: {delay: 10ms}}
stop: {epochs: 2}
`

// runs makes two records, of two seeds, in a folder.
func runs(dir string) (a, b string, err error) {
	a, b = filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for seed, out := range map[string]string{"seed=1": a, "seed=2": b} {
		p, err := driver.Parse("quick.yaml", []byte(quick), seed)
		if err != nil {
			return "", "", err
		}
		if _, err := driver.Run(context.Background(), p, driver.Options{Out: out}); err != nil {
			return "", "", err
		}
	}
	return a, b, nil
}

// From records to a page, and to what differs.
func Example() {
	dir, err := os.MkdirTemp("", "gradwire-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	a, b, err := runs(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	summary, err := record.ReadSummary(a)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(summary.Runs), "run, complete:", summary.Complete)

	sources, err := page.Read([]string{a, b})
	if err != nil {
		fmt.Println(err)
		return
	}
	path := filepath.Join(dir, "page.html")
	if _, err := page.Write(path, sources); err != nil {
		fmt.Println(err)
		return
	}
	info, err := os.Stat(path)
	fmt.Println("a page:", info.Size() > 10_000, err)

	difference, err := diff.Compare(a, b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("equal:", difference.Equal)
	// Output:
	// 1 run, complete: true
	// a page: true <nil>
	// equal: false
}

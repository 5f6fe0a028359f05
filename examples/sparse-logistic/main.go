// Command sparse-logistic is gradwire with sparse logistic regression on a parameter server: the
// application of the OSDI 2014 paper, with its filters. Its actors are clients of tables, see
// actors/ps/table. It has every command of gradwire; without a command it runs its plan twice, over
// a9a and over a generated set of 10 million possible keys, and prints what each filter costs and
// saves: medians over the repeats.
//
//	sparse-logistic [--data DIR] [--seed N] [--repeats N]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	_ "embed"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
)

//go:embed plan.yaml
var plan []byte

func main() {
	own := func(flag string) bool { return strings.HasPrefix(os.Args[1], flag) }
	if len(os.Args) > 1 && !slices.ContainsFunc([]string{"--data", "--seed", "--repeats"}, own) {
		cli.Main(withRegression())
	}
	data := flag.String("data", os.Getenv("GRADWIRE_DATA"), "folder of data sets")
	seed := flag.Uint64("seed", 1, "seed of the first repeat")
	repeats := flag.Int("repeats", 1, "runs of each filter, with consecutive seeds")
	flag.Parse()
	seeds := []string{fmt.Sprintf("seed=%d", *seed), fmt.Sprintf("repeats=%d", *repeats)}
	if err := compare(os.Stdout, *data, seeds...); err != nil {
		log.Fatal(err)
	}
}

// census are the assignments that make the plan one over a9a, or over a set of its size and sort.
func census(data string) (title string, set []string) {
	set = []string{"model.layers=[123, 2]", "architecture.keys=123", "train.batch=1000", "stop.epochs=10",
		"evaluate.every=2 epochs", "train.optimizer.rate.first=0.5"}
	if _, err := os.Stat(filepath.Join(data, "a9a")); data != "" && err == nil {
		return "a9a: 123 keys", append(set, "data={set: a9a}")
	}
	return "a generated set of 123 keys, as a9a is not there (see --data)",
		append(set, "data={set: clicks, samples: 20000, inputs: 123, occur: 14}")
}

// compare runs the plan over both sets with assignments, and writes a table for each.
func compare(to io.Writer, data string, seeds ...string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	title, set := census(data)
	if err := show(ctx, to, title, data, append(set, seeds...)...); err != nil {
		return err
	}
	return show(ctx, to, "a generated set of 10 million possible keys", data, seeds...)
}

// show runs the plan with assignments and writes the table of what the filters cost and save.
func show(ctx context.Context, to io.Writer, title, data string, set ...string) error {
	p, err := driver.Parse("plan.yaml", plan, set...)
	if err != nil {
		return err
	}
	out, err := os.MkdirTemp("", "sparse-logistic-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(out) }()
	report, err := driver.Run(ctx, p, driver.Options{Catalog: withRegression(), Data: data,
		Out: filepath.Join(out, "record")})
	if err != nil {
		return err
	}
	fmt.Fprintf(to, "%s\n\n", title)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "filter\tobjective\tweights\taccuracy\ttime, s\tkB\tkB saved by it")
	repeats := slices.IndexFunc(report.Runs, func(r record.Run) bool {
		return r.Point[0].Value != report.Runs[0].Point[0].Value
	})
	for from := 0; from < len(report.Runs); from += repeats {
		runs, traces := report.Runs[from:from+repeats], report.Traces[from:from+repeats]
		run := func(of func(r *record.Run) float64) float64 {
			return median(repeats, func(i int) float64 { return of(&runs[i]) })
		}
		measured := func(name string) float64 {
			return median(repeats, func(i int) float64 { return last(traces[i].Measured, name) })
		}
		fmt.Fprintf(w, "%s\t%.5f\t%.0f\t%.1f %%\t%.2f\t%.0f\t%s\n", runs[0].Point[0].Value, measured(objective),
			measured(nonzero), run(func(r *record.Run) float64 { return 100 * float64(r.FinalAccuracy) }),
			run(func(r *record.Run) float64 { return r.Duration }),
			run(func(r *record.Run) float64 { return float64(r.Bytes) / 1000 }), savings(measured))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// median returns the median of n values.
func median(n int, value func(i int) float64) float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = value(i)
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// last is the latest value of a measurement, summed over the nodes that report it.
func last(all []record.Measurement, name string) (sum float64) {
	latest := map[string]float64{}
	for _, m := range all {
		if m.Name == name {
			sum += float64(m.Value) - latest[m.Node]
			latest[m.Node] = float64(m.Value)
		}
	}
	return sum
}

// savings lists the bytes that the filters report to have saved.
func savings(measured func(name string) float64) string {
	var list []string
	for _, name := range []string{byCaching, byKKT, bySignificance, bySkip} {
		if bytes := measured(name); bytes > 0 {
			_, by, _ := strings.Cut(name, " by ")
			list = append(list, fmt.Sprintf("%.0f %s", bytes/1000, strings.TrimPrefix(by, "the ")))
		}
	}
	return strings.Join(list, ", ")
}

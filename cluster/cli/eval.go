package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report/text"
)

func evalCommand(c *catalog.Catalog, con *console) *cobra.Command {
	o := driver.Options{Catalog: c}
	cmd := &cobra.Command{
		Use:   "eval DIR/runs/NNNN",
		Short: "Judge a saved model class by class",
		Long: `Judge the model that a recorded run has ended with: its accuracy, which classes it takes
for which, the precision and the recall of each class, by the samples that the run was
tested on; and its accuracy by the samples that each worker trained on. Samples are cut
and scaled as the record says. Nothing is written.`,
		Example: `  gradwire eval results/first/runs/0003
  gradwire eval results/first/runs/0003 --data ~/datasets --format json`,
		Args: exactly(1, "the folder of one run"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Data = cmp.Or(o.Data, os.Getenv("GRADWIRE_DATA"))
			e, err := driver.Evaluate(args[0], o)
			if err != nil {
				return err
			}
			return con.print(e, func(out io.Writer) error { return writeEvaluated(out, e) })
		},
	}
	cmd.Flags().StringVar(&o.Data, "data", "", folderUsage)
	return cmd
}

// writeEvaluated prints the figures as tables.
func writeEvaluated(out io.Writer, e *driver.Evaluated) error {
	at := ""
	if len(e.Point) > 0 {
		at = e.Point.String() + ", "
	}
	fmt.Fprintf(out, "run %d (%sseed %d): %s of %d test samples are right\n", e.Run, at, e.Seed,
		percent(e.Test.Accuracy), e.Test.Samples)
	if e.Test.Undecided > 0 {
		fmt.Fprintf(out, "for %d of them the model yields NaN\n", e.Test.Undecided)
	}
	var classes, workers strings.Builder
	classes.WriteString("\nclass\tsamples\tprecision\trecall")
	for _, class := range e.Classes {
		fmt.Fprintf(&classes, "\tas %s", class)
	}
	classes.WriteString("\n")
	for i, class := range e.Test.PerClass {
		fmt.Fprintf(&classes, "%s\t%d\t%s\t%s", class.Class, class.Samples, percent(class.Precision),
			percent(class.Recall))
		for _, n := range e.Test.Confusion[i] {
			fmt.Fprintf(&classes, "\t%d", n)
		}
		classes.WriteString("\n")
	}
	workers.WriteString("\nworker\tsamples\taccuracy\n")
	for _, w := range e.Workers {
		fmt.Fprintf(&workers, "%s\t%d\t%s\n", w.Worker, w.Samples, percent(w.Accuracy))
	}
	err := errors.Join(text.Rows(asScreen(out), classes.String()), text.Rows(asScreen(out), workers.String()))
	for _, other := range e.OtherData {
		fmt.Fprintln(out, other)
	}
	return err
}

// percent spells a share; "-" where there is none.
func percent(share record.Float) string {
	if math.IsNaN(float64(share)) {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(share))
}

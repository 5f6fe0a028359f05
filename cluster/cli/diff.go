package cli

import (
	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/report/diff"
)

func diffCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Say where two recorded runs, or two records, differ",
		Long: `Compare two runs or two records: A and B are either both folders of a run, such as
results/first/runs/0003, or both whole records, such as results/first. Of records, the
plans are compared, and the runs of the same point and seed.

Of runs are compared: the summary with its digest, the curve, the links, what the
workers did, the parameters of the model by their bits, and the events where they
were recorded. How long the machine took is not, and that the builds differ is told
but does not count.

The exit code is 0 if all is equal, 1 if something differs, 2 for bad input.`,
		Example: `  gradwire diff results/first results/second
  gradwire diff results/first/runs/0000 results/second/runs/0000 --format json`,
		Args: exactly(2, "two runs or two records"),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := diff.Compare(args[0], args[1])
			if err != nil {
				return &driver.InputError{Err: err}
			}
			if err := con.print(d, d.Write); err != nil || d.Equal {
				return err
			}
			return errDiffers
		},
	}
}

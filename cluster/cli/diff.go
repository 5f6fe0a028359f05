package cli

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/report/diff"
)

func diffCommand(out io.Writer) *cobra.Command {
	var format string
	cmd := &cobra.Command{
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(cmd, format); err != nil {
				return err
			}
			d, err := diff.Compare(args[0], args[1])
			if err != nil {
				return &driver.InputError{Err: err}
			}
			if format == "json" {
				err = printJSON(out, d)
			} else {
				err = d.Write(out)
			}
			if err == nil && !d.Equal {
				err = errDiffers
			}
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func checkFormat(cmd *cobra.Command, format string) error {
	if words := []string{"text", "json"}; !slices.Contains(words, format) {
		return usage(cmd, unknown(format, "a value of --format", words))
	}
	return nil
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

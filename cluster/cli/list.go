package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
)

func listCommand(c *catalog.Catalog, out io.Writer) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "list",
		Short:   "List what a plan or a driver can name, with settings and defaults",
		Example: "  gradwire list models\n  gradwire list links",
	})
	cmd.AddCommand(
		lister(out, "models", c.Models.All()),
		lister(out, "layers", c.Layers.All()),
		lister(out, "datasets", c.Datasets.All()),
		lister(out, "splits", c.Splits.All()),
		lister(out, "optimizers", c.Optimizers.All()),
		lister(out, "schedules", c.Schedules.All()),
		lister(out, "architectures", c.Architectures.All()),
		lister(out, "links", c.Delays.All()),
		lister(out, "topologies", c.Topologies.All()),
		lister(out, "actors", c.Actors.All()),
	)
	return cmd
}

// lister lists the kinds of one sort.
func lister[T any](out io.Writer, what string, kinds []catalog.Kind[T]) *cobra.Command {
	short := "List " + what
	switch what {
	case "links":
		short = "List the delay models of links"
	case "actors":
		short = "List the kinds of actors that drivers can spawn"
	}
	return &cobra.Command{
		Use: what, Short: short, Example: "  gradwire list " + what, Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
			for _, k := range kinds {
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", k.Name, k.Doc, k.Settings())
			}
			return w.Flush()
		},
	}
}

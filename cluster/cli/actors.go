package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
)

func actorsCommand(out io.Writer) *cobra.Command {
	f := &clusterFlags{}
	cmd := &cobra.Command{
		Use: "actors", Short: "List the actors of a cluster that belong to no run",
		Long: `List the actors that driver programs have spawned and that belong to no run. mailbox says how
many messages wait; handled and lost count the messages of drivers. Where a node does not answer, the
actors of the others are printed and the exit code is 1.`,
		Example: "  gradwire actors --join 10.0.0.1:7946 --identity operator/", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.connect(cmd, func(ctx context.Context, c *driver.Client) error {
				actors, err := c.Actors(ctx)
				if told := f.tell(out, actors, func(w io.Writer) { tellActors(w, actors) }); told != nil {
					return told
				}
				return err
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

// tellActors writes a table with a row for each actor.
func tellActors(w io.Writer, actors []driver.Actor) {
	_, _ = fmt.Fprintln(w, "actor\tkind\tnode\tcores\tmailbox\trestarts\thandled\tlost\tup for\tlast failure")
	for _, a := range actors {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%v\t%s\n",
			a.Name, a.Kind, a.Node, a.Cores, a.Mailbox, a.Restarts, a.Handled, a.Lost,
			time.Since(a.Since).Round(time.Second), orDash(a.Failure))
	}
}

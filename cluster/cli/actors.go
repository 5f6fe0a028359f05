package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
)

func actorsCommand(con *console) *cobra.Command {
	f := &clusterFlags{}
	return f.command(&cobra.Command{
		Use: "actors", Short: "List the actors of a cluster that belong to no run",
		Long: `List the actors that driver programs have spawned and that belong to no run. mailbox says how
many messages wait; handled and lost count the messages of drivers. Where a node does not answer, the
actors of the others are printed and the exit code is 1.`,
		Example: "  gradwire actors --join 10.0.0.1:7946 --identity operator/", Args: noArguments,
	}, func(ctx context.Context, c *driver.Client, _ []string) error {
		actors, err := c.Actors(ctx)
		return errors.Join(con.table(actors, func(w io.Writer) { writeActors(w, actors) }), err)
	})
}

// writeActors writes a table with a row for each actor.
func writeActors(w io.Writer, actors []driver.Actor) {
	fmt.Fprintln(w, "actor\tkind\tnode\tcores\tmailbox\trestarts\thandled\tlost\tup for\tlast failure")
	for _, a := range actors {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%v\t%s\n",
			a.Name, a.Kind, a.Node, a.Cores, a.Mailbox, a.Restarts, a.Handled, a.Lost,
			time.Since(a.Since).Round(time.Second), orDash(a.Failure))
	}
}

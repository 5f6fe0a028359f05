package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
)

func clusterCommand(con *console) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "cluster",
		Short: "Repair a cluster's registry",
		Long: `Repair a cluster's registry, which records the owners of names and submissions. The registry grants
claims only while a majority of its voters is up. 'gradwire nodes' shows the voters, and says when
the majority is missing.`,
		Example: "  gradwire nodes\n  gradwire cluster recover --from c",
	})
	cmd.AddCommand(recoverCommand(con))
	return cmd
}

func recoverCommand(con *console) *cobra.Command {
	f, from := &clusterFlags{}, ""
	cmd := f.command(&cobra.Command{
		Use:   "recover --from NODE",
		Short: "Start a new registry from one node's log, after a majority is lost for good",
		Long: `Start a new registry from one node's log. Use this command only if a majority of the voters is lost
for good; 'gradwire nodes' names the voters. If the lost nodes can return, restart them instead:
then nothing is lost.

The node keeps all entries of its log, and grants names and submissions again at once. The new
registry supersedes the old one: when a node of the old registry hears from the new one, it keeps a
copy of its log, and joins the new registry without a vote. The command lists the entries that may
not have been committed, and the claims of nodes that the node cannot reach. It cannot list entries
that never reached the node. Recover from one node only: if two nodes recover, one of the new
registries wins when they meet, and the entries of the other are lost.

The node refuses while the registry has a quorum, and while a node with a longer log is reachable.
The exit code is 75 while the voters may still elect a leader. Only an operator may recover.`,
		Example: "  gradwire nodes\n  gradwire cluster recover --from c --join 10.0.0.3:7946 --identity operator/",
		Args:    noArguments,
	}, func(ctx context.Context, c *driver.Client, _ []string) error {
		r, err := c.Recover(ctx, from)
		if err != nil {
			return err
		}
		return con.print(r, func(w io.Writer) error { return writeRecovery(w, r) })
	})
	cmd.Flags().StringVar(&from, "from", "", "the node whose log the new registry keeps")
	connected := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if from == "" {
			return usage(cmd, errors.New("no node is given, as --from does"))
		}
		return connected(cmd, args)
	}
	return cmd
}

// writeRecovery writes a recovery: first the result, then the entries and claims that are uncertain.
func writeRecovery(out io.Writer, r *driver.Recovery) error {
	var w strings.Builder
	if r.Already {
		fmt.Fprintf(&w, "node %s has recovered before: nothing was changed\n", r.Node)
	}
	fmt.Fprintf(&w, "registry %s, started by node %s, supersedes registry %s\n", r.Registry, r.Node, r.Superseded)
	fmt.Fprintf(&w, "kept: all entries of the node's log, up to entry %d; a copy of the old log is in %s on node %s\n",
		r.Last, r.Copy, r.Node)
	if len(r.Dropped) > 0 {
		fmt.Fprintf(&w, "dropped: %s; each joins again when it hears from the new registry\n",
			strings.Join(r.Dropped, ", "))
	}
	fmt.Fprintln(&w, "\nuncertain:")
	if r.Behind > 0 {
		fmt.Fprintf(&w, "  the old registry committed at least %d later entries, which are lost\n", r.Behind)
	} else {
		fmt.Fprintf(&w, "  the lost voters may have committed later entries; node %s knows of none\n", r.Node)
	}
	for _, u := range r.Unproven {
		fmt.Fprintf(&w, "  entry %d is kept, but may not have been committed: %s\n", u.Index, u.Command)
	}
	if r.Unlisted > 0 {
		fmt.Fprintf(&w, "  %d more entries are kept, but may not have been committed\n", r.Unlisted)
	}
	for _, v := range r.Claims {
		fmt.Fprintf(&w, "  the %s %s stays with node %s, which node %s cannot reach and which may have released it\n",
			v.Kind, v.Name, v.Owner, r.Node)
	}
	_, err := io.WriteString(out, w.String())
	return err
}

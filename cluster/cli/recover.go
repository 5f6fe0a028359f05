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
		Long: `Repair a cluster's registry, which records the owners of names and submissions. A registry decides only while a
majority of its voters is there; 'gradwire nodes' says so and names them.`,
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
		Long: `Start a new registry from one node's log. Use it if a majority of the voters is lost for good;
'gradwire nodes' names the voters. Otherwise start the lost nodes again: then nothing is lost.

The node keeps all that its log has, and grants names and submissions again at once. The new
registry supersedes the former one: a node of the former one that hears of it keeps a copy of its
log, and joins the new one without a vote. The command lists what the node cannot prove: entries that
may not have been decided, and claims of nodes that it does not reach. It cannot list decisions that
never reached the node. Recover from one node only: of two new registries one wins when they meet,
and the decisions of the other are dropped.

The node refuses while the registry has a quorum, and if a node with a longer log is reachable. The
exit code is 75 while the voters may still elect a leader. Only an operator may recover.`,
		Example: "  gradwire nodes\n  gradwire cluster recover --from c --join 10.0.0.3:7946 --identity operator/",
		Args:    noArguments,
	}, func(ctx context.Context, c *driver.Client, _ []string) error {
		r, err := c.Recover(ctx, from)
		if err != nil {
			return err
		}
		return con.print(r, func(w io.Writer) error { return writeRecovery(w, r) })
	})
	cmd.Flags().StringVar(&from, "from", "", "the node whose log is kept")
	connected := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if from == "" {
			return usage(cmd, errors.New("no node is given, as --from does"))
		}
		return connected(cmd, args)
	}
	return cmd
}

// writeRecovery writes a recovery, the answer first.
func writeRecovery(out io.Writer, r *driver.Recovery) error {
	var w strings.Builder
	if r.Already {
		fmt.Fprintf(&w, "node %s has recovered before: nothing was changed\n", r.Node)
	}
	fmt.Fprintf(&w, "registry %s, started by node %s, supersedes registry %s\n", r.Registry, r.Node, r.Superseded)
	fmt.Fprintf(&w, "kept: all entries of its log, up to %d; the log itself is in %s on node %s\n",
		r.Last, r.Copy, r.Node)
	if len(r.Dropped) > 0 {
		fmt.Fprintf(&w, "dropped: %s; each joins again when it hears of the new registry\n",
			strings.Join(r.Dropped, ", "))
	}
	fmt.Fprintln(&w, "\nNode "+r.Node+" cannot prove:")
	if r.Behind > 0 {
		fmt.Fprintf(&w, "  at least %d later entries were decided, and are lost\n", r.Behind)
	} else {
		fmt.Fprintln(&w, "  whether the lost voters decided anything after its last entry; it knows of nothing")
	}
	for _, u := range r.Unproven {
		fmt.Fprintf(&w, "  whether entry %d was decided, which is kept: %s\n", u.Index, u.Command)
	}
	if r.Unlisted > 0 {
		fmt.Fprintf(&w, "  whether %d more entries were decided, which are kept\n", r.Unlisted)
	}
	for _, v := range r.Claims {
		fmt.Fprintf(&w, "  whether the %s %s still belongs to node %s, which it does not reach; the claim is kept\n",
			v.Kind, v.Name, v.Owner)
	}
	_, err := io.WriteString(out, w.String())
	return err
}

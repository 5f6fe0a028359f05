package cli

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
)

func identityCommand(con *console) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "identity",
		Short: "Make a cluster's authority, and certificates",
		Example: `  gradwire identity init ca/
  gradwire identity issue ca/ --node a
  gradwire identity issue ca/ --operator`,
	})
	cmd.AddCommand(initCommand(con), issueCommand(con))
	return cmd
}

func initCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use:   "init FOLDER",
		Short: "Make the authority of a new cluster",
		Long: `Make the authority of a new cluster in a folder: ca.pem, ca.key and gossip.key. Who can read
ca.key can let anybody into the cluster; keep it where no node runs.`,
		Example: "  gradwire identity init ca/",
		Args:    exactly(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCreatableFolder(args[0]); err != nil {
				return usage(cmd, fmt.Errorf("FOLDER %s: %w; accepted is a folder that can be made", args[0], err))
			}
			if err := identity.Init(args[0]); err != nil {
				return &driver.InputError{Err: err}
			}
			return con.say(facts{"authority": args[0]},
				"authority in %s; issue certificates with: %s identity issue %s --node NAME\n",
				args[0], cmd.Root().Name(), args[0])
		},
	}
}

// issueFlags are the flags of gradwire identity issue.
type issueFlags struct {
	node, operator, client string
	out                    string
	lifetime               time.Duration
	again                  bool
}

func issueCommand(con *console) *cobra.Command {
	f := &issueFlags{}
	cmd := &cobra.Command{
		Use:   "issue AUTHORITY",
		Short: "Issue a certificate to a node, an operator or a client",
		Long: `Issue a certificate. Nodes host what is submitted; operators submit, stop and read; clients
submit and read. The folder that is made belongs to one machine or person alone. To replace a
certificate before it expires, issue another one into a new folder, put its files in the place of the
old ones, and send SIGHUP to the node.`,
		Example: `  gradwire identity issue ca/ --node a                 # into a/
  gradwire identity issue ca/ --operator               # into operator/
  gradwire identity issue ca/ --operator=ann --out op/`,
		Args: exactly(1, "the folder of an authority"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFolder(args[0]); err != nil {
				return usage(cmd, fmt.Errorf("AUTHORITY %s: %w; accepted is a folder that 'gradwire identity init' "+
					"made", args[0], err))
			}
			s, err := f.subject(cmd)
			if err != nil {
				return err
			}
			dir := cmp.Or(f.out, s.Name)
			if err := identity.Issue(args[0], dir, s); err != nil {
				return &driver.InputError{Err: err}
			}
			about := facts{"identity": dir, "name": s.Name, "role": s.Role}
			return con.say(about, "identity of %s %s in %s\n", s.Role, s.Name, dir)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "", "for a node of this name")
	flags.StringVar(&f.operator, "operator", "", "for an operator, called operator if no name is given")
	flags.StringVar(&f.client, "client", "", "for a client, called client if no name is given")
	flags.Lookup("operator").NoOptDefVal, flags.Lookup("client").NoOptDefVal = "operator", "client"
	flags.StringVar(&f.out, "out", "", "folder to make (default: the name)")
	flags.DurationVar(&f.lifetime, "lifetime", identity.DefaultLifetime, "how long the certificate is valid")
	flags.BoolVar(&f.again, "again", false,
		"even if the name has one that is valid for more than 30 days; both hold then")
	return cmd
}

func (f *issueFlags) subject(cmd *cobra.Command) (identity.Subject, error) {
	var subjects []identity.Subject
	for _, s := range []identity.Subject{
		{Name: f.node, Role: identity.Node}, {Name: f.operator, Role: identity.Operator},
		{Name: f.client, Role: identity.Client},
	} {
		if s.Name != "" {
			s.Lifetime, s.Again = f.lifetime, f.again
			subjects = append(subjects, s)
		}
	}
	if len(subjects) != 1 {
		return identity.Subject{}, usage(cmd, errors.New("one of --node NAME, --operator and --client is needed"))
	}
	return subjects[0], nil
}

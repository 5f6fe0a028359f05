package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
)

const setUsage = "set a key of the plan (repeated)"

func planCommand(c *catalog.Catalog, out io.Writer) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "plan",
		Short: "Check, show or begin a plan, or describe plans to an editor",
		Long:  `Check or show a plan, begin a new one, or describe all plans to an editor. Nothing is run.`,
		Example: `  gradwire plan check PLAN
  gradwire plan show PLAN --set train.batch=64
  gradwire plan new --out PLAN
  gradwire plan schema --out plan.schema.json`,
	})
	cmd.AddCommand(checkCommand(c, out), showCommand(c, out), newCommand(c, out), schemaCommand(c, out))
	return cmd
}

func checkCommand(c *catalog.Catalog, out io.Writer) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a plan, if anything",
		Long: `Read a plan, resolve every name at every point of its sweep, and say what is wrong, with file,
line and column. Data is not read. Say about what a run takes: an estimate from what its steps and
messages take in runs of known shapes, good to a factor of three or so.`,
		Example: "  gradwire plan check examples/quickstart.yaml",
		Args:    onePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.load(cmd, args[0])
			if err != nil {
				return err
			}
			e, err := p.Estimate(c)
			if err != nil {
				return err
			}
			if warning := e.Warning(); warning != "" {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+warning)
			}
			_, err = fmt.Fprintf(out, "%s is in order\n%s\n", args[0], e)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, setUsage)
	return cmd
}

func showCommand(c *catalog.Catalog, out io.Writer) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show a plan with every default spelled out",
		Long: `Show a plan with every default spelled out, and which node has which role. What has other
defaults at other points of a sweep stays as it was written.`,
		Example: "  gradwire plan show examples/quickstart.yaml --set stop.epochs=2",
		Args:    onePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.load(cmd, args[0])
			if err != nil {
				return err
			}
			casts, err := p.Casts(c)
			if err != nil {
				return err
			}
			text, err := p.Resolved(c)
			if err != nil {
				return err
			}
			for i := len(casts) - 1; i >= 0; i-- {
				text = "# " + casts[i] + "\n" + text
			}
			_, err = fmt.Fprint(out, text)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, setUsage)
	return cmd
}

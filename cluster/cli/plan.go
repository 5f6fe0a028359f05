package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

const setUsage = "set a key of the plan (repeated)"

func planCommand(c *catalog.Catalog, con *console) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "plan",
		Short: "Check, show or begin a plan, or describe plans to an editor",
		Long:  `Check or show a plan, begin a new one, or describe all plans to an editor. No run is recorded.`,
		Example: `  gradwire plan check PLAN
  gradwire plan show PLAN --set train.batch=64
  gradwire plan new --out PLAN
  gradwire plan schema --out plan.schema.json`,
	})
	cmd.AddCommand(checkCommand(c, con), showCommand(c, con), newCommand(c, con), schemaCommand(c, con))
	return cmd
}

func checkCommand(c *catalog.Catalog, con *console) *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a plan, if anything",
		Long: `Read a plan, resolve every name at every point of its sweep, and report each error with file, line
and column. If the data set is here, read it, and refuse what a run would refuse because of it. Then
estimate the cost: of one run by formula, good to a factor of about three; and, if the data set is
here, of all runs together (time on this machine, bytes sent, memory) by playing a short prefix of
each point and extrapolating it. Name the values that the network decides for settings that are
auto, and warn of a value that costs more than twice as much as another. List the faults that the
seed draws for the first repeat. Warn of events after stop.time, of times of another clock, of
delays whose random walk has no bound, of a unit that differs between the points of a sweep, of one
learning rate for several architectures, of a schedule of the rate that is longer than the run, of a
rate of 0, of intervals in epochs or samples that rounding to whole steps changes by more than a
tenth, of a batch that is larger than a worker's samples, of an interval between evaluations that is
longer than the run, of a target of 100 %, and of a first node that is the server, and trains
nothing, because no node has that role.`,
		Example: "  gradwire plan check examples/quickstart.yaml",
		Args:    onePlan,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.check(cmd, c, con, args[0]) },
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, setUsage)
	cmd.Flags().StringVar(&f.data, "data", "", dataUsage)
	return cmd
}

// checkFlags are the flags of gradwire plan check.
type checkFlags struct {
	planFlags
	data string
}

// check prints a plan's automatic choices, its cost and warnings.
func (f *checkFlags) check(cmd *cobra.Command, c *catalog.Catalog, con *console, path string) error {
	p, err := f.load(cmd, con, path)
	if err != nil {
		return err
	}
	e, err := p.Examine(c)
	if err != nil {
		return err
	}
	o := driver.Options{Data: f.data}
	if err := e.Try(cmd.Context(), o); err != nil {
		return err
	}
	warning := e.Estimate.Warning()
	if warning != "" {
		fmt.Fprintln(con.notes(), "warning: "+warning)
	}
	notes := slices.Concat(e.Notes, e.Rounded(o))
	for _, note := range notes {
		fmt.Fprintln(con.notes(), "warning: "+note)
	}
	takes, chosen := e.Estimate.String()+"\n", ""
	for _, w := range e.Weighed {
		if w.Warning != "" {
			fmt.Fprintln(con.notes(), "warning: "+w.Warning)
		}
		if w.Auto {
			chosen += w.String() + "\n"
		}
	}
	for _, line := range e.Drawn {
		chosen += line + "\n"
	}
	about := facts{
		"plan": path, "memory_bytes": e.Estimate.Memory,
		"max_core_seconds_per_virtual_second": e.Estimate.Second.Seconds(),
		"warning":                             warning, "notes": notes, "choices": e.Weighed, "faults": e.Drawn,
	}
	if all := con.forecast(cmd.Context(), e, o); all != nil {
		for _, note := range all.Notes {
			fmt.Fprintln(con.notes(), "warning: "+note)
		}
		takes += all.String() + "\n"
		about["forecast"] = all
	}
	return con.say(about, "%s is in order\n%s%s", path, takes, chosen)
}

// forecast approximates the cost of all runs of a plan. If the cost is unknown, it prints why and
// returns nil.
func (con *console) forecast(ctx context.Context, e *driver.Examined, o driver.Options) *driver.Forecast {
	all, err := e.Forecast(ctx, o)
	if err != nil && ctx.Err() == nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintln(con.notes(), "note: what all runs take is unknown: "+why)
	}
	if err != nil {
		return nil
	}
	return all
}

func showCommand(c *catalog.Catalog, con *console) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show a plan with every default spelled out",
		Long: `Show a plan with every default spelled out, which node has which role, and what an
architecture chooses by the network where a setting is auto. Comments list the faults that the seed
draws for the first repeat. What has other defaults at other points of a sweep stays as it was
written. As JSON it is a plan too.`,
		Example: "  gradwire plan show examples/quickstart.yaml --set stop.epochs=2",
		Args:    onePlan,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.load(cmd, con, args[0])
			if err != nil {
				return err
			}
			comments, err := p.Casts(c)
			if err != nil {
				return err
			}
			chosen, err := p.Chosen(c)
			if err != nil {
				return err
			}
			drawn, err := p.Drawn(c)
			if err != nil {
				return err
			}
			comments = slices.Concat(comments, chosen, drawn)
			text, err := p.Resolved(c)
			if err != nil {
				return err
			}
			for i := len(comments) - 1; i >= 0; i-- {
				text = "# " + comments[i] + "\n" + text
			}
			return con.plan(text)
		},
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, setUsage)
	return cmd
}

// plan prints a plan: as it is written, or its values as JSON, which is YAML too.
func (con *console) plan(text string) error {
	root, err := syntax.Parse("plan", []byte(text))
	if err != nil {
		return err
	}
	values, err := root.JSON()
	if err != nil {
		return err
	}
	return con.say(json.RawMessage(values), "%s", text)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/drill"
	"github.com/gradwire/gradwire/cluster/drill/programme"
	"github.com/gradwire/gradwire/cluster/driver"
)

func drillCommand(c *catalog.Catalog, con *console) *cobra.Command {
	f, o, many := &planFlags{}, drill.Options{Catalog: c}, programme.Options{Catalog: c}
	cmd := &cobra.Command{
		Use:   "drill [PLAN]",
		Short: "Run a plan with its faults and without, and say what each cost",
		Long: `Run a plan with its faults and without them, in virtual time, and say what each fault cost. In seconds
from its beginning: when the coordinator noticed it, when all nodes that it struck served again (made a
step, or took part in an update), and when the accuracy had regained that of before. Until the next
fault, against the undisturbed run: samples fewer that were processed, updates fewer that models took
in, pushes lost more, repeats more that were sent (messages that nobody had acknowledged, by sessions, and
pushes that nobody had answered, by workers whose servers had changed), and MB more that were put on
links. Faults are those of the plan's faults:, drawn by its seed, and of its schedule:. The run with
faults is made twice, once in two parts, the second of which goes on where the first was saved, and
once with steps that only count. Check the invariants that 'gradwire list invariants' lists.

Lost are the pushes of workers to a parameter server that no model took in, unless they were still
under way when the run ended. A push is lost when its worker, or a server without replicas, goes; if
one of them has gone already, when it is sent. A push to several shards counts once for each. What a
server had taken in before it crashed is no lost push: goodput says how many samples went with it.
There is a dash without a parameter server, and with delivery: as-is.

With a sweep, drill every point that has faults, and print a block of tables for each; --where
selects points, as in report. The folder has drill.json, which for a sweep is a list of the points,
and a plot for each point. Ctrl-C stops cleanly, and leaves nothing behind.

With --seeds and without PLAN, drill plans that are drawn at random, one for each seed: all kinds of
architectures, over links that lose, repeat and reorder messages, with nodes that crash, leave, join,
are preempted, pause, slow down and are cut off. A plan in which an invariant breaks is shrunk, and
printed with the command that repeats it.

The exit code is 0 if every invariant held at every point, 1 if one broke or the drill was interrupted, 2 for bad
input.`,
		Example: `  gradwire drill examples/faults.yaml
  gradwire drill PLAN --seed 7 --out results/drill
  gradwire drill PLAN --set faults.crash.mtbf=30s
  gradwire drill --seeds 1000
  gradwire drill --seeds 1000000 --time 2m`,
		Args: drillArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if many.Seeds > 0 {
				return drillSeeds(cmd, con, many)
			}
			p, err := f.load(cmd, con, args[0])
			if err != nil {
				return err
			}
			return drillPlan(cmd, con, p, o)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, setUsage)
	flags.StringVar(&f.seed, "seed", "", "seed of the run and its faults (default: the plan's)")
	flags.StringVar(&o.Out, "out", "", "folder of the record (default: a new one in results/)")
	flags.StringVar(&o.Data, "data", "", dataUsage)
	flags.StringArrayVar(&o.Where, "where", nil, "keep the points with these values, as in data.split=iid (repeated)")
	flags.Uint64Var(&many.Seeds, "seeds", 0, "how many random plans are drilled, in place of PLAN")
	flags.Uint64Var(&many.From, "from", 1, "with --seeds: the first seed")
	flags.DurationVar(&many.Time, "time", 0, "with --seeds: begin no other plan after this time (default: no bound)")
	return cmd
}

// drillArgs wants a plan, or --seeds with at least one, and no flag that goes with the other.
func drillArgs(cmd *cobra.Command, args []string) error {
	flags, others, why := cmd.Flags(), []string{"from", "time"}, "goes with --seeds, which is not given"
	wanted := onePlan
	if seeds := flags.Lookup("seeds"); seeds.Changed {
		if seeds.Value.String() == "0" {
			return usage(cmd, errors.New("--seeds 0: at least 1 is accepted"))
		}
		others, why = []string{
			"set",
			"seed",
			"out",
			"data",
			"where",
		}, "goes with PLAN, in place of which --seeds is given"
		wanted = exactly(0, "no plan with --seeds")
	}
	for _, name := range others {
		if flags.Changed(name) {
			return usage(cmd, fmt.Errorf("--%s %s", name, why))
		}
	}
	return wanted(cmd, args)
}

// drillPlan drills one plan.
func drillPlan(cmd *cobra.Command, con *console, p *driver.Plan, o drill.Options) error {
	show := display.New(con.notes())
	o.Progress = show.Progress
	r, err := drill.Run(cmd.Context(), p, o)
	show.Close()
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: nothing was written")
	}
	if err != nil {
		return err
	}
	if con.json() {
		fmt.Fprintf(con.notes(), "record in %s\n", r.Dir)
	}
	if err := con.print(r, func(out io.Writer) error { return r.Write(display.Screen(out)) }); err != nil {
		return err
	}
	return r.Err()
}

// drillSeeds drills random plans.
func drillSeeds(cmd *cobra.Command, con *console, o programme.Options) error {
	if o.Time < 0 {
		return usage(cmd, fmt.Errorf("--time %v; accepted is 0, for no bound, and more", o.Time))
	}
	show := display.New(con.notes())
	o.Progress = show.Plans
	r, err := programme.Run(cmd.Context(), o)
	show.Close()
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return err
	}
	if err := con.print(r, func(out io.Writer) error { return r.Write(display.Screen(out)) }); err != nil {
		return err
	}
	if err := r.Err(); err != nil || !interrupted {
		return err
	}
	return fmt.Errorf("interrupted after %d plans", r.Seeds)
}

// invariantsCommand lists what a drill checks.
func invariantsCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use: "invariants", Short: "List the invariants that a drill checks",
		Long: "List the invariants that drill checks: what holds in every run, whatever faults it has. A plan " +
			"without what\nan invariant is about does not watch it.",
		Example: "  gradwire list invariants", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			type invariant struct {
				Name  string `json:"name"`
				About string `json:"about"`
			}
			var all []invariant
			for _, i := range drill.Invariants() {
				all = append(all, invariant{i.Name, i.Doc})
			}
			return con.table(all, func(w io.Writer) {
				for _, i := range all {
					fmt.Fprintf(w, "%s\t%s\n", i.Name, i.About)
				}
			})
		},
	}
}

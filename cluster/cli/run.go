package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// runFlags are the flags of gradwire run.
type runFlags struct {
	set     []string
	seed    string
	repeats int
	jobs    int
	out     string
	resume  string
	data    string
	clock   string
	format  string
	strict  bool
}

func runCommand(c *catalog.Catalog, out, errs io.Writer) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run PLAN",
		Short: "Run a plan",
		Long: `Run every point and repeat of a plan and leave a record: plan.yaml, summary.json,
curve.csv, links.csv, updates.csv, where there are any models.csv, selections.csv and
measured.csv, plots as PNG and SVG, and for each run its model.

Ctrl-C stops cleanly: runs that have finished are kept, and --continue makes the rest.
A run that could not go on, because training diverged or an actor failed, is recorded as failed, and
the others are made. One that lost state or had nodes that stood still is degraded. The record and the
table say at which instant, at which node and why.

The exit code is 0 if all is done, 1 if a run failed or was interrupted, 2 for bad input, 3 if all ran
to their end but a run is degraded.`,
		Example: `  gradwire run examples/quickstart.yaml
  gradwire run PLAN --data ~/datasets --out results/first
  gradwire run PLAN --set train.batch=64 --set network.links.server-slow.delay=200ms
  gradwire run PLAN --continue results/first
  gradwire run PLAN --clock real --repeats 1`,
		Args: exactly(1, "one plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, c, args[0], out, errs)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "set a key of the plan, as in nodes.slow.compute.step=10ms (repeated)")
	flags.StringVar(&f.seed, "seed", "", "seed of the first repeat (default: the plan's)")
	flags.IntVar(&f.repeats, "repeats", 0, "repeats of every point (default: the plan's)")
	flags.IntVar(&f.jobs, "jobs", 0, "runs side by side in virtual time (default: cores)")
	flags.StringVar(&f.out, "out", "", "folder of the record (default: a new one in results/)")
	flags.StringVar(&f.resume, "continue", "", "folder of a record: run what is missing in it")
	flags.StringVar(&f.data, "data", "", dataUsage)
	flags.StringVar(&f.clock, "clock", string(driver.Virtual), "virtual or real")
	flags.StringVar(&f.format, "format", "text", "of what is printed at the end: text or json")
	flags.BoolVar(&f.strict, "strict", false, "check every message on its way; slow, same results")
	return cmd
}

// options checks the flags and turns them into a plan and options.
func (f *runFlags) options(cmd *cobra.Command, c *catalog.Catalog, path string) (*driver.Plan, driver.Options, error) {
	o := driver.Options{
		Catalog: c, Data: f.data, Out: f.out, Jobs: f.jobs, Clock: driver.Clock(f.clock), Strict: f.strict,
	}
	set := f.set
	if f.seed != "" {
		if err := checkSeed(cmd, f.seed); err != nil {
			return nil, o, err
		}
		set = append(set, "seed="+f.seed)
	}
	if cmd.Flags().Changed("repeats") {
		set = append(set, "repeats="+strconv.Itoa(f.repeats))
	}
	clocks := []string{string(driver.Virtual), string(driver.Real)}
	switch {
	case !slices.Contains(clocks, f.clock):
		return nil, o, usage(cmd, unknown(f.clock, "a value of --clock", clocks))
	case cmd.Flags().Changed("jobs") && f.jobs < 1:
		return nil, o, usage(cmd, fmt.Errorf("--jobs %d; accepted is 1 and more", f.jobs))
	case checkFormat(cmd, f.format) != nil:
		return nil, o, checkFormat(cmd, f.format)
	case f.resume != "" && f.out != "":
		return nil, o, usage(cmd, errors.New("--continue and --out exclude each other: --continue names the folder"))
	case f.resume != "":
		o.Out, o.Continue = f.resume, true
	}
	p, err := driver.Load(path, set...)
	return p, o, err
}

func (f *runFlags) run(cmd *cobra.Command, c *catalog.Catalog, path string, out, errs io.Writer) error {
	p, o, err := f.options(cmd, c, path)
	if err != nil {
		return err
	}
	show := newDisplay(errs)
	o.Progress = show.progress
	r, err := driver.Run(cmd.Context(), p, o)
	show.close()
	if r == nil {
		return err
	}
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: %d of %d runs are finished and kept; go on with --continue %s",
			len(r.Runs), r.RunsPlanned, r.Dir)
	}
	err = errors.Join(tellReport(out, errs, f.format, r.Dir, r.Summary, r.Traces), err)
	if err == nil && degraded(r.Summary) {
		return errDegraded
	}
	return err
}

// degraded reports whether a run of a record is.
func degraded(s record.Summary) bool {
	return slices.ContainsFunc(s.Runs, func(r record.Run) bool { return r.Outcome == record.Degraded })
}

// tellReport prints the summary of a record and draws its plots. As JSON, out gets the summary
// alone, and errs the record's folder.
func tellReport(out, errs io.Writer, format, dir string, summary record.Summary, traces []record.Trace) error {
	plots, err := figure.Write(dir, &figure.Data{Summary: summary, Traces: traces})
	if err != nil {
		return err
	}
	if format == "json" {
		_, _ = fmt.Fprintf(errs, "record in %s\n", dir)
		return printJSON(out, summary)
	}
	if err := text.Table(asScreen(out), summary); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nrecord in %s\n", dir)
	for _, plot := range plots {
		_, _ = fmt.Fprintf(out, "plot   in %s, .svg\n", plot)
	}
	return err
}

// checkSeed says what is wrong with a seed.
func checkSeed(cmd *cobra.Command, seed string) error {
	if _, err := strconv.ParseUint(seed, 10, 64); err != nil {
		return usage(cmd, fmt.Errorf("--seed %q is not a whole number from 0 to 18446744073709551615", seed))
	}
	return nil
}

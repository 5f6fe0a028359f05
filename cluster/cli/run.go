package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report/page"
	"github.com/gradwire/gradwire/cluster/report/text"
	"github.com/gradwire/gradwire/cluster/store"
)

// planFlags are the flags that change a plan.
type planFlags struct {
	set     []string
	seed    string
	repeats int
}

func (f *planFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "set a key of the plan, as in nodes.slow.compute.step=10ms (repeated)")
	flags.StringVar(&f.seed, "seed", "", "seed of the first repeat (default: the plan's)")
	flags.IntVar(&f.repeats, "repeats", 0, "repeats of every point (default: the plan's)")
}

// maxRepeats is the largest value that plans accept as repeats.
const maxRepeats = 10_000

// load reads a plan and changes it.
func (f *planFlags) load(cmd *cobra.Command, con *console, path string) (*driver.Plan, error) {
	set := f.set
	if f.seed != "" {
		if _, err := strconv.ParseUint(f.seed, 10, 64); err != nil {
			return nil, usage(cmd,
				fmt.Errorf("--seed %q is not a whole number from 0 to 18446744073709551615", f.seed))
		}
		set = append(set, "seed="+f.seed)
	}
	if cmd.Flags().Changed("repeats") {
		if f.repeats < 1 || f.repeats > maxRepeats {
			return nil, usage(cmd, fmt.Errorf("--repeats %d; accepted is 1 to %d", f.repeats, maxRepeats))
		}
		set = append(set, "repeats="+strconv.Itoa(f.repeats))
	}
	return con.examples.Read(path, cmd.InOrStdin(), set)
}

// runFlags are the flags of gradwire run.
type runFlags struct {
	planFlags
	driver.Options
	resume string
}

func runCommand(c *catalog.Catalog, con *console) *cobra.Command {
	f := &runFlags{Options: driver.Options{Catalog: c}}
	cmd := &cobra.Command{
		Use:   "run [PLAN]",
		Short: "Run a plan",
		Long: `Run every point and repeat of a plan and leave a record: plan.yaml, summary.json,
curve.csv, links.csv, updates.csv, where there are any models.csv, selections.csv and
measured.csv, plots as PNG and SVG, and for each run its model. The page index.html in it
shows who reached the target first, the figures and the tables; it is one file that needs
no network.

Ctrl-C and SIGTERM stop within a second: finished runs are kept, and --continue makes the rest, of the plan in
the record if none is given. It refuses a record with a damaged run or a damaged summary.json, and says which
file to delete so that it can be made again. An interrupted run in virtual time is repeated, with the same
result; --from-checkpoint resumes it from its newest checkpoint, if the plan has checkpoint: {every: 5m}. An
interrupted run in real time is always resumed, and is degraded then. A record in a store, s3://BUCKET/PATH, is
uploaded before the first run and whenever a run finishes or a checkpoint is written. Credentials and endpoint
come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL, or ~/.aws/credentials. A run that
could not go on, because training diverged or an actor failed, is recorded as failed, and the others are made.
One that lost state, stalled or made no progress is degraded; the record says when, where and why.

With --count, runs send the plan's messages and train nothing: they compute no gradient, evaluate no
model and have no target. Links, messages, bytes and times equal those of a training run of the same
length. The record marks such runs as counted. A plan is refused if its messages depend on trained
values (gaia, in-network, moved), or if it tunes anything but a rate.

The exit code is 0 if all is done, 1 if a run failed or was interrupted, 2 for bad input, 3 if all ran
to their end but a run is degraded.`,
		Example: `  gradwire run examples/quickstart.yaml
  gradwire run PLAN --data ~/datasets --out results/first
  gradwire run PLAN --set train.batch=64 --set network.links.server-slow.delay=200ms
  gradwire run PLAN --count --out results/counted
  gradwire run --continue results/first
  gradwire run PLAN --out s3://bucket/first
  gradwire run PLAN --clock real --repeats 1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.resume != "" && len(args) == 0 {
				return nil
			}
			return onePlan(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return f.run(cmd, args[0], con)
			}
			plan, remove, err := con.download(cmd.Context(), planIn(f.resume), nil)
			if err != nil {
				return err
			}
			defer remove()
			if _, err := os.Stat(plan); errors.Is(err, fs.ErrNotExist) {
				return f.noRecord()
			}
			return f.run(cmd, plan, con)
		},
	}
	con.addExplain(cmd)
	f.add(cmd)
	return cmd
}

// add adds the flags.
func (f *runFlags) add(cmd *cobra.Command) {
	f.planFlags.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.Jobs, "jobs", 0, "runs side by side in virtual time (default: cores)")
	flags.StringVar(&f.Out, "out", "", "folder of the record, or s3://BUCKET/PATH (default: a new one in results/)")
	flags.StringVar(&f.resume, "continue", "", "folder or address of a record whose missing runs to make")
	flags.BoolVar(&f.FromCheckpoint, "from-checkpoint", false,
		"with --continue: resume an interrupted run in virtual time from its newest checkpoint instead of repeating it")
	flags.StringVar(&f.Data, "data", "", dataUsage)
	flags.StringVar((*string)(&f.Clock), "clock", string(driver.Virtual), "virtual or real")
	flags.BoolVar(&f.Count, "count", false, "send the plan's messages and train nothing: links, bytes and times")
	flags.BoolVar(&f.Strict, "strict", false, "check every message on its way; slow, same results")
}

// planIn is the plan of a record.
func planIn(dir string) string {
	if strings.Contains(dir, "://") {
		return strings.TrimSuffix(dir, "/") + "/" + record.PlanName
	}
	return filepath.Join(dir, record.PlanName)
}

// noRecord returns the error for --continue with a folder that has no record.
func (f *runFlags) noRecord() error {
	return &driver.InputError{
		Err: fmt.Errorf("--continue %s: there is no record in this folder; run the plan again with --out %s", f.resume,
			f.resume),
	}
}

// complete checks the flags and completes the options.
func (f *runFlags) complete(cmd *cobra.Command) error {
	clocks := []string{string(driver.Virtual), string(driver.Real)}
	switch {
	case !slices.Contains(clocks, string(f.Clock)):
		return usage(cmd, unknown(string(f.Clock), "a value of --clock", clocks))
	case cmd.Flags().Changed("jobs") && f.Jobs < 1:
		return usage(cmd, fmt.Errorf("--jobs %d; accepted is 1 and more", f.Jobs))
	case f.resume != "" && f.Out != "":
		return usage(cmd, errors.New("--continue and --out exclude each other: --continue names the folder"))
	case f.FromCheckpoint && f.resume == "":
		return usage(cmd, errors.New("--from-checkpoint goes with --continue, which names the record"))
	case f.Count && f.Clock != driver.Virtual:
		return usage(cmd, errors.New("--count takes place in virtual time, and excludes --clock real"))
	case f.resume != "":
		f.Out, f.Continue = f.resume, true
	}
	return nil
}

func (f *runFlags) run(cmd *cobra.Command, path string, con *console) error {
	if err := f.complete(cmd); err != nil {
		return err
	}
	p, err := f.load(cmd, con, path)
	if err != nil {
		return err
	}
	if err := con.about(p, f.Catalog); err != nil {
		return err
	}
	show := display.New(con.notes())
	f.Progress = show.Progress
	f.Opened = func(dir string) { con.record.Store(&dir) }
	f.Finish = func(r *driver.Report) error {
		show.Close()
		if cmd.Context().Err() != nil {
			return nil
		}
		return showReport(con, r.Dir, r.Record, r.Summary, r.Traces)
	}
	r, err := driver.Run(cmd.Context(), p, f.Options)
	show.Close()
	err = withFlags(err)
	switch {
	case r == nil && errors.Is(err, context.Canceled) && f.resume == "":
		return errors.New("interrupted before the first run: there is no record to continue; run the plan again")
	case r == nil && errors.Is(err, context.Canceled):
		return fmt.Errorf(
			"interrupted before the next run: the record is unchanged; go on with --continue %s",
			f.resume,
		)
	case r == nil:
		return err
	}
	if errors.Is(err, context.Canceled) {
		stopped := fmt.Errorf("interrupted: %d of %d runs are finished and kept; go on with --continue %s", len(r.Runs),
			r.RunsPlanned, r.Record)
		if unsent := (*store.UnsentError)(nil); errors.As(err, &unsent) {
			return errors.Join(stopped, withFlags(unsent))
		}
		return stopped
	}
	if err == nil && degraded(r.Summary) {
		return errDegraded
	}
	return err
}

// withFlags adds to a run's error the flags that avoid it or that continue the run.
func withFlags(err error) error {
	var unsent *store.UnsentError
	switch {
	case errors.As(err, &unsent):
		return fmt.Errorf("%w; the same command with --continue uploads them", err)
	case errors.Is(err, store.ErrHoldsRecord):
		return fmt.Errorf("%w; --continue goes on with it, or name another path", err)
	case errors.Is(err, record.ErrExists):
		return fmt.Errorf("%w; --out names another one, --continue goes on with the record in it", err)
	}
	return err
}

// about prints the notes on a plan before it is carried out.
func (con *console) about(p *driver.Plan, c *catalog.Catalog) error {
	notes, err := p.Notes(c)
	for _, note := range notes {
		fmt.Fprintln(con.notes(), "note: "+note)
	}
	return err
}

// degraded reports whether a run of a record is.
func degraded(s record.Summary) bool {
	return slices.ContainsFunc(s.Runs, func(r record.Run) bool { return r.Outcome == record.Degraded })
}

// showReport prints the headline and the table of a record, and makes its page and plots. As JSON the
// summary stands alone, and a note says where the page is. Of a record that stays in a store, dir is a
// working folder, and the address is printed instead.
func showReport(con *console, dir, stays string, summary record.Summary, traces []record.Trace) error {
	plan, err := os.ReadFile(filepath.Join(dir, record.PlanName))
	if err != nil {
		return err
	}
	o, err := page.WriteIn(dir, page.Of(dir, string(plan), summary, traces))
	if err != nil {
		return err
	}
	where := "Open " + o.Page
	if stays != dir {
		where = fmt.Sprintf("The record is in %s; 'gradwire report %s' shows it", stays, stays)
	}
	if con.json() {
		fmt.Fprintln(con.notes(), where)
	}
	return con.print(summary, func(out io.Writer) error {
		screen := display.Screen(out)
		err := errors.Join(text.Headline(screen, summary), text.Table(screen, summary))
		fmt.Fprintln(out)
		if con.explain {
			err = errors.Join(err, text.Explain(screen, summary))
		}
		fmt.Fprintln(out, where)
		return err
	})
}

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/client"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/store"
)

// clusterFlags say which cluster a command is about, and who asks.
type clusterFlags struct {
	join     string
	identity string
	insecure bool
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.join, "join", "",
		"addresses of nodes of the cluster, with commas between them (default: $GRADWIRE_JOIN)")
	flags.StringVar(&f.identity, "identity", "",
		"folder of an operator's or client's identity (default: $GRADWIRE_IDENTITY)")
	flags.BoolVar(&f.insecure, "insecure", false, "the cluster has no certificates; on loopback addresses only")
}

// connect calls do with a client of the cluster.
func (f *clusterFlags) connect(cmd *cobra.Command, do func(ctx context.Context, c *driver.Client) error) error {
	id, err := loadIdentity(f.identity, f.insecure, usersIdentity)
	if err != nil {
		return err
	}
	c, err := driver.Connect(cmd.Context(), seeds(f.join), id)
	if err != nil && f.join == "" && os.Getenv("GRADWIRE_JOIN") != "" {
		return fmt.Errorf("%w (asked: %s, from GRADWIRE_JOIN)", err, os.Getenv("GRADWIRE_JOIN"))
	}
	if err != nil {
		return err
	}
	return do(cmd.Context(), c)
}

// command completes a command that is run with a client of the cluster.
func (f *clusterFlags) command(
	cmd *cobra.Command, run func(ctx context.Context, c *driver.Client, args []string) error,
) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.connect(cmd, func(ctx context.Context, c *driver.Client) error { return run(ctx, c, args) })
	}
	f.add(cmd)
	return cmd
}

func nodesCommand(con *console) *cobra.Command {
	f, pairwise := &clusterFlags{}, false
	cmd := f.command(&cobra.Command{
		Use: "nodes", Short: "List the nodes of a cluster", Args: noArguments,
		Long: `List the nodes of a cluster as the node that is asked sees them, with the time that a
heartbeat takes from it to each and back; with --round-trips, from each node to each. A node that
has been silent for 1.5 s is suspended. One that has been silent for the node timeout of the node
that is asked (--node-timeout) is absent, and others take its place. A node that leaves hands over
its work, and no run starts on it. The column registry shows a node's part in the registry of names
and submissions: it leads, votes, or learns the result of votes; 'in memory' means that the node
cannot write its log. Without a majority of the voters, nodes refuse new names and submissions. If
the majority is lost for good, use 'gradwire cluster recover'.`,
		Example: "  gradwire nodes --join 10.0.0.1:7946 --identity operator/\n  gradwire nodes --round-trips",
	}, func(ctx context.Context, c *driver.Client, _ []string) error {
		if pairwise {
			trips, err := c.RoundTrips(ctx)
			return errors.Join(con.table(trips, func(w io.Writer) { writeTrips(w, trips) }), err)
		}
		nodes, err := c.Nodes(ctx)
		if err != nil {
			return err
		}
		return con.table(nodes, func(w io.Writer) {
			writeNodes(w, nodes)
			for _, n := range nodes {
				for _, why := range n.Refused {
					fmt.Fprintf(w, "\nnot let in: %s\n", why)
				}
				if n.WithoutQuorum != "" {
					fmt.Fprintf(w, "\nnode %s refuses new names and submissions: %s\n", n.Name, n.WithoutQuorum)
				}
				if n.OtherRegistry != "" {
					fmt.Fprintf(w, "\nnodes %s and %s are in two registries, which may both grant the same name\n",
						n.Name, n.OtherRegistry)
				}
			}
			if text := client.DifferentBuilds(client.Builds(nodes)); text != "" {
				fmt.Fprintln(w, "\n"+text)
			}
		})
	})
	cmd.Flags().BoolVar(&pairwise, "round-trips", false, "from each node to each: its rows to its columns")
	return cmd
}

// writeNodes writes a table with a row for each node.
func writeNodes(w io.Writer, nodes []driver.Node) {
	fmt.Fprintln(w, "node\taddress\tstate\tround trip\tnode timeout\tregistry\tcores\trole\tlabels\tup for\t"+
		"certificate")
	for _, n := range nodes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%v\t%s\n",
			n.Name, n.Address, state(&n), trip(n.RoundTrip), timeout(n.Timeout), orDash(n.Vote), n.Cores,
			orDash(n.Role), orDash(pairs(n.Labels)), time.Since(n.Started).Round(time.Second), certificate(n.Expires))
	}
}

// state returns the state of a node, and whether the node is about to leave.
func state(n *driver.Node) string {
	if n.Leaves {
		return n.State + ", leaves"
	}
	return n.State
}

// timeout formats a node timeout in seconds; 0 means that it is unknown.
func timeout(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	return fmt.Sprintf("%g s", seconds)
}

// certificate says until when one holds, and warns of its end.
func certificate(expires time.Time) string {
	left := time.Until(expires)
	switch {
	case expires.IsZero():
		return "–"
	case left <= identity.Soon:
		return fmt.Sprintf("EXPIRES %s, in %v", expires.Format(time.DateTime), left.Round(time.Second))
	}
	return "until " + expires.Format(time.DateOnly)
}

// trip writes a round trip, in seconds, in milliseconds.
func trip(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g ms", 1e3*seconds)
}

// writeTrips writes a table with a row and a column for each node.
func writeTrips(w io.Writer, trips map[string]map[string]float64) {
	nodes := slices.Sorted(maps.Keys(trips))
	fmt.Fprintln(w, "from\\to\t"+strings.Join(nodes, "\t"))
	for _, from := range nodes {
		row := []string{from}
		for _, to := range nodes {
			row = append(row, trip(trips[from][to]))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
}

func orDash(s string) string { return cmp.Or(s, "–") }

func pairs(m map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, k+"="+m[k])
	}
	return strings.Join(all, " ")
}

func submissionsCommand(con *console) *cobra.Command {
	f := &clusterFlags{}
	return f.command(&cobra.Command{
		Use: "submissions", Aliases: []string{"runs"}, Short: "List what was submitted to a cluster",
		Example: "  gradwire submissions", Args: noArguments,
	}, func(ctx context.Context, c *driver.Client, _ []string) error { return f.list(ctx, c, con) })
}

// list prints all submissions.
func (f *clusterFlags) list(ctx context.Context, c *driver.Client, con *console) error {
	all, err := c.Submissions(ctx)
	return errors.Join(con.table(all, func(w io.Writer) { writeSubmissions(w, all) }), err)
}

// writeSubmissions writes a table with a row for each submission.
func writeSubmissions(w io.Writer, all []driver.Submission) {
	fmt.Fprintln(w, "submission\tplan\tstate\truns\tdone\tnode\tby\tsubmitted")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%.0f %%\t%s\t%s\t%s\n", s.ID, s.Plan, s.State, s.Done, s.Total,
			100*s.Share, where(&s), s.By, s.Submitted.Format(time.DateTime))
	}
}

// where is the process that keeps a submission, and since when it is away.
func where(s *driver.Submission) string {
	if s.Away.IsZero() {
		return s.Process
	}
	return fmt.Sprintf("%s (away since %s)", s.Process, s.Away.Format(time.DateTime))
}

func statusCommand(con *console) *cobra.Command {
	f := &clusterFlags{}
	return f.command(&cobra.Command{
		Use: "status [SUBMISSION]", Short: "Say how far a submission is, or all are",
		Long: `Say how far a submission is. Without one, list all as 'gradwire submissions' does. The exit code
is 1 if it is lost: its node is away, and no other node goes on with it.`,
		Example: "  gradwire status 1a2b3c4d\n  gradwire status", Args: atMostOne("submission"),
	}, func(ctx context.Context, c *driver.Client, args []string) error {
		if len(args) == 0 {
			return f.list(ctx, c, con)
		}
		s, err := c.Status(ctx, args[0])
		if err != nil {
			return err
		}
		if err := con.table(s, func(w io.Writer) { writeStatus(w, &s) }); err != nil || s.State != driver.Lost {
			return err
		}
		return fmt.Errorf("submission %s is lost: %s", s.ID, s.Error)
	})
}

func writeStatus(w io.Writer, s *driver.Submission) {
	fmt.Fprintf(w, "submission\t%s\nplan\t%s\nstate\t%s\n", s.ID, s.Plan, s.State)
	fmt.Fprintf(w, "runs\t%d of %d, %.0f %%\nnode\t%s\nsubmitted\t%s by %s\n",
		s.Done, s.Total, 100*s.Share, s.Process, s.Submitted.Format(time.DateTime), s.By)
	if len(s.Continues) > 0 {
		fmt.Fprintf(w, "continues\t%s\n", strings.Join(s.Continues, ", "))
	}
	if !s.Away.IsZero() {
		fmt.Fprintf(w, "away\t%s is since %s (%s); this is what others know\n",
			s.Process, s.Away.Format(time.DateTime), s.Why)
	}
	if len(s.Holders) > 0 {
		fmt.Fprintf(w, "held by\t%s\n", strings.Join(s.Holders, ", "))
		fmt.Fprintf(w, "copies\t%s\n", copies(s))
	} else if len(s.Lacking) > 0 {
		fmt.Fprintf(w, "copies\t1: %s\n", strings.Join(s.Lacking, ", "))
	}
	switch {
	case s.Copy:
		fmt.Fprintf(w, "record\ta copy at %s; the process that made it is away or has lost it\n", s.Process)
	case s.Lost:
		fmt.Fprintf(w, "record\tgone from %s at %s, and no process that answers has a copy\n", s.Folder, s.Process)
	}
	if s.Error != "" {
		fmt.Fprintf(w, "because\t%s\n", s.Error)
	}
	if text := client.DifferentBuilds(s.Builds); text != "" {
		fmt.Fprintf(w, "note\t%s\n", text)
	}
	if s.Insecure {
		fmt.Fprintln(w, "insecure\tthe cluster has no certificates")
	}
	if len(s.Placement) > 0 {
		fmt.Fprintf(w, "placed\t%s\n", pairs(s.Placement))
	}
}

// copies says how many up-to-date copies of a submission there are, and why there are not more.
func copies(s *driver.Submission) string {
	text := fmt.Sprintf("%d of %d", len(s.Holders)-len(s.Lacking), len(s.Holders))
	return strings.Join(append([]string{text}, s.Lacking...), ", ")
}

func logsCommand(con *console) *cobra.Command {
	f, follow := &clusterFlags{}, false
	cmd := f.command(&cobra.Command{
		Use: "logs SUBMISSION", Short: "Show the log of a submission", Example: "  gradwire logs -f 1a2b3c4d",
		Args: oneSubmission,
	}, func(ctx context.Context, c *driver.Client, args []string) error {
		e := json.NewEncoder(con.out)
		return c.Logs(ctx, args[0], follow, func(line string) {
			if con.json() {
				at, what, _ := strings.Cut(line, " ")
				_ = e.Encode(map[string]string{"at": at, "what": what})
				return
			}
			fmt.Fprintln(con.out, line)
		})
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the submission has ended")
	return cmd
}

func stopCommand(con *console) *cobra.Command {
	f := &clusterFlags{}
	return f.command(&cobra.Command{
		Use: "stop SUBMISSION", Short: "End a submission; the runs that are finished are kept",
		Example: "  gradwire stop 1a2b3c4d", Args: oneSubmission,
	}, func(ctx context.Context, c *driver.Client, args []string) error {
		if err := c.Stop(ctx, args[0]); err != nil {
			return err
		}
		s, err := c.Watch(ctx, args[0], func(driver.Submission) {})
		if err == nil {
			err = con.say(s, "%s is %s with %d of %d runs\n", s.ID, s.State, s.Done, s.Total)
		}
		return err
	})
}

func removeCommand(con *console) *cobra.Command {
	f := &clusterFlags{}
	return f.command(&cobra.Command{
		Use: "remove SUBMISSION...", Short: "Remove submissions that have ended, with their records",
		Example: "  gradwire remove 1a2b3c4d 5e6f7a8b",
		Long: `Remove submissions that have ended from the nodes that keep them, with their records and logs.
What was not fetched is lost. Nothing is removed otherwise.`,
		Args: some("one submission at least"),
	}, func(ctx context.Context, c *driver.Client, args []string) error {
		var errs []error
		for _, id := range args {
			whole, err := c.Remove(ctx, id)
			if err == nil {
				err = con.say(facts{"removed": whole}, "%s is removed\n", whole)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func fetchCommand(con *console) *cobra.Command {
	f, dir := &clusterFlags{}, ""
	cmd := f.command(&cobra.Command{
		Use: "fetch SUBMISSION", Short: "Copy the record of a submission from the node that keeps it",
		Long: `Copy the record of a submission from the node that keeps it, or a record out of a store:
instead of a submission, s3://BUCKET/PATH is accepted, for which no node has to be there.`,
		Example: `  gradwire fetch 1a2b3c4d --out results/first
  gradwire fetch s3://bucket/records/a/quickstart-1a2b3c4d --out results/first`, Args: oneSubmission,
	}, func(ctx context.Context, c *driver.Client, args []string) error {
		s, err := c.Status(ctx, args[0])
		if err != nil {
			return err
		}
		return con.writeRecord(ctx, cmp.Or(dir, defaultDir(&s)),
			func(to string) error { return copyRecord(ctx, c, con, s.ID, to) },
			func(to, stays string) error { return showFetched(con, &s, to, stays) })
	})
	fromCluster := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if store.IsStored(args[0]) {
			return con.fetchStored(cmd.Context(), args[0], dir)
		}
		return fromCluster(cmd, args)
	}
	cmd.Flags().StringVar(&dir, "out", "", "folder of the copy, or s3://BUCKET/PATH (default: a new one in results/)")
	return cmd
}

// copyRecord copies the record of a submission into a folder. If the folder has this record already,
// as when the node works in the same folder, copyRecord says so and copies nothing.
func copyRecord(ctx context.Context, c *driver.Client, con *console, id, dir string) error {
	taken := client.Vacant(dir) != nil
	err := c.Fetch(ctx, id, dir)
	switch {
	case errors.Is(err, record.ErrExists):
		return fmt.Errorf("%w, and its files are not the record of submission %s; name another folder, as in\n"+
			"  gradwire fetch %s --out %s", err, id, id, dir+"-2")
	case err == nil && taken:
		fmt.Fprintf(con.notes(), "the record is already in %s: nothing was copied\n", dir)
	}
	return err
}

// showFetched is showRecord of a record that was fetched, which has no summary if its process could
// not write one.
func showFetched(con *console, s *driver.Submission, dir, stays string) error {
	err := showRecord(con, dir, stays)
	if errors.Is(err, fs.ErrNotExist) && s.Error != "" {
		return fmt.Errorf("submission %s %s: %s\nWhat there is of its record, which has no summary, is in %s",
			s.ID, s.State, s.Error, stays)
	}
	return err
}

// showRecord prints the summary of the record in a folder and draws its plots.
func showRecord(con *console, dir, stays string) error {
	summary, err := record.ReadSummary(dir)
	if err != nil {
		return err
	}
	folder, err := record.Open(dir)
	if err != nil {
		return err
	}
	traces, err := folder.Traces(summary.Runs)
	if err != nil {
		return err
	}
	return showReport(con, dir, stays, summary, traces)
}

// defaultDir is the folder of the copy of a record.
func defaultDir(s *driver.Submission) string { return filepath.Join("results", s.Plan+"-"+s.ID) }

// submitFlags are the flags of gradwire submit.
type submitFlags struct {
	planFlags
	clusterFlags
	place  []string
	out    string
	former string
	detach bool
}

func submitCommand(con *console) *cobra.Command {
	f := &submitFlags{}
	cmd := &cobra.Command{
		Use:   "submit [PLAN]",
		Short: "Run a plan on a cluster",
		Long: `Submit a plan to a cluster, estimate what its runs take, show how far it is, and copy its record when
it has ended. The estimate is of time, messages and memory in real time; this command makes it, from
the data set in the default folder. The submission belongs to the cluster: it goes on if this command
ends, for whatever reason, and, where three processes hold it, if the one that carries it out dies;
status, logs and fetch find it, and stop ends it. A node of the plan lives on the process of its name,
else on one with its role, else on the process without a role that has the fewest nodes per core;
--place puts it elsewhere.
With --continue, instead of a plan, a submission that ended early makes its missing runs, with the
same plan and places. A run with a checkpoint goes on from it.
The exit code is 0 if all is done, 1 if a run failed or the submission was stopped, 2 for bad input,
3 if all ran to their end but a run is degraded, and 75 if the cluster cannot take it now but perhaps
later.`,
		Example: `  gradwire submit examples/quickstart.yaml --join 10.0.0.1:7946 --identity operator/
  gradwire submit PLAN --place server=a --place worker=zone:eu
  gradwire submit PLAN --detach
  gradwire submit --continue SUBMISSION`,
		Args: func(cmd *cobra.Command, args []string) error { return f.arguments()(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args, con) },
	}
	f.planFlags.add(cmd)
	f.clusterFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.place, "place", nil,
		"where nodes live: NODE, group or role=PROCESS or =LABEL:VALUE (repeated)")
	flags.StringVar(&f.out, "out", "",
		"folder of the copy of the record, or s3://BUCKET/PATH (default: a new one in results/)")
	flags.StringVar(&f.former, "continue", "", "go on with this submission, which has ended before its runs had")
	flags.BoolVar(&f.detach, "detach", false, "print the submission's id and return")
	return cmd
}

// arguments are those that the command takes.
func (f *submitFlags) arguments() cobra.PositionalArgs {
	if f.former == "" {
		return onePlan
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(cmd, fmt.Errorf("plan %q with --continue, which leaves the plan as it was", args[0]))
		}
		return nil
	}
}

func (f *submitFlags) run(cmd *cobra.Command, args []string, con *console) (err error) {
	for _, other := range []string{"set", "seed", "repeats", "place"} {
		if f.former != "" && cmd.Flags().Changed(other) {
			return usage(cmd, fmt.Errorf("--%s with --continue, which leaves plan and places as they were", other))
		}
	}
	var p *driver.Plan
	if f.former == "" {
		if p, err = f.load(cmd, con, args[0]); err != nil {
			return err
		}
		_ = con.about(p, nil) // the cluster's processes say what is wrong with it, by their own catalog
	}
	if f.out != "" && !f.detach {
		if err := con.vacant(cmd.Context(), f.out); err != nil {
			return err
		}
	}
	return f.connect(cmd, func(ctx context.Context, c *driver.Client) error {
		note := func(text string) { fmt.Fprintln(con.notes(), text) }
		id := ""
		if p == nil {
			id, err = c.Continue(ctx, f.former, note)
		} else {
			id, err = c.Submit(ctx, p, driver.SubmitOptions{Place: f.place, Note: note})
		}
		if err != nil {
			return err
		}
		if f.detach {
			defer con.forecastRealTime(ctx, p)
			return con.table(map[string]string{"submission": id}, func(w io.Writer) { fmt.Fprintln(w, id) })
		}
		fmt.Fprintf(con.notes(), "submission %s\n", id)
		con.forecastRealTime(ctx, p)
		return f.follow(ctx, c, id, con)
	})
}

// forecastRealTime prints the cost of all runs of a submitted plan, unless they are short. It needs the
// plan's data on this machine, and prints nothing if only the cluster's catalog knows the plan's names.
// The plan is nil if the submission continues another one, whose plan only the cluster has.
func (con *console) forecastRealTime(ctx context.Context, p *driver.Plan) {
	if p == nil || con.quiet {
		return
	}
	e, err := p.Examine(nil)
	if err != nil { // the cluster's catalog may know more names
		return
	}
	all := con.forecast(ctx, e, driver.Options{Clock: driver.Real, Jobs: 1})
	if all != nil && !all.Short() {
		fmt.Fprintln(con.notes(), all)
	}
}

// showQueue says what a submission waits for, as far as that can be found out.
func showQueue(ctx context.Context, c *driver.Client, s *driver.Submission, errs io.Writer) {
	all, _ := c.Submissions(ctx)
	var before []string
	for _, other := range all {
		if other.ID == s.ID {
			break
		}
		if other.Process == s.Process && !other.Over() {
			before = append(before, other.ID)
		}
	}
	if len(before) > 0 {
		fmt.Fprintf(errs, "waits for what was submitted to node %s before: %s\n",
			s.Process, strings.Join(before, ", "))
	}
}

// follow shows how far a submission is, and copies its record when it has ended.
func (f *submitFlags) follow(ctx context.Context, c *driver.Client, id string, con *console) error {
	var show *display.Display // begins with the first run, from which the time left is reckoned
	waits := false
	s, err := c.Watch(ctx, id, func(s driver.Submission) {
		switch {
		case s.State != driver.Waiting:
			if show == nil {
				show = display.New(con.notes())
			}
			show.Progress(driver.Progress{Done: s.Done, Total: s.Total, Share: s.Share})
		case !waits:
			waits = true
			showQueue(ctx, c, &s, con.notes())
		}
	})
	if show != nil {
		show.Close()
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("submission %s goes on without this command: %w\n"+
			"See 'gradwire status %s'; 'gradwire stop %s' ends it", id, err, id, id)
	case err != nil:
		return fmt.Errorf("submission %s can no longer be followed: %w\nSee 'gradwire status %s'", id, err, id)
	}
	dir := cmp.Or(f.out, defaultDir(&s))
	err = con.writeRecord(ctx, dir, func(to string) error {
		err := copyRecord(ctx, c, con, id, to)
		if err == nil {
			return nil
		}
		text := fmt.Sprintf("submission %s is %s, but its record cannot be copied: %v", id, s.State, err)
		if errors.As(err, new(*driver.AgainError)) {
			return fmt.Errorf("%w\n%s", err, text)
		}
		return errors.New(text) // no InputError: the plan and the command were valid
	}, func(to, stays string) error { return showFetched(con, &s, to, stays) })
	if err != nil {
		return err
	}
	if s.State == driver.Degraded {
		return errDegraded
	}
	if s.State != driver.Done {
		return fmt.Errorf("submission %s %s: %s", id, s.State, s.Error)
	}
	return nil
}

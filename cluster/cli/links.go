package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/report/text"
)

const (
	// maxProbes bounds the probes of an edge, maxAllProbes the probes of all edges together, and
	// maxProbedEdges the number of edges.
	maxProbes, maxAllProbes, maxProbedEdges = 10_000, 4_000_000, 1000
	// maxProbeTime bounds the time that is probed, and maxProbedOutages how often an edge may go
	// down in it.
	maxProbeTime, maxProbedOutages = 8760 * time.Hour, 1_000_000
	// downSteps is how many outages apart from each other a picture shows at most.
	downSteps = 2000
)

// probing are the flags of gradwire links.
type probing struct {
	planFlags
	point   int
	time    string
	samples int
	size    string
	out     string

	// What time and size say.
	until, every time.Duration
	bytes        int
}

func linksCommand(c *catalog.Catalog, con *console) *cobra.Command {
	f := &probing{}
	cmd := &cobra.Command{
		Use:   "links PLAN",
		Short: "Show what the links of a plan do over time, without training",
		Long: fmt.Sprintf(`Send probes over every edge of a plan's network, each on an otherwise idle network,
at regular intervals of virtual time, and show what becomes of them: a table, and
NAME-links.png and .svg with the delays over time and the outages. The changes of
links in the plan's schedule are carried out. The k-th probe of an edge draws what the
k-th message of a run with this seed draws.

Edges are those between neighbours of the topology, but for those between two nodes that
train where the architecture has servers. The table has a row for each of up to %d edges,
and sums more of them up; the picture has a panel for each of up to %d, and quantiles of
more. Of more than %d edges as many are probed, evenly chosen.

Of a sweep the first point is shown, or the one that --point gives.`,
			text.MaxProbedRows, figure.MaxProbedPanels, maxProbedEdges),
		Example: `  gradwire links examples/links/plan.yaml
  gradwire links PLAN --time 1h --samples 3600 --size 85kB
  gradwire links PLAN --set network.default.delay=50ms --seed 7 --format json`,
		Args: onePlan,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, c, args[0], con) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, setUsage)
	flags.StringVar(&f.seed, "seed", "", "seed of the run (default: the plan's)")
	flags.IntVar(&f.point, "point", 1, "number of the sweep's point")
	flags.StringVar(&f.time, "time", "10m", "how long probes are sent, in virtual time")
	flags.IntVar(&f.samples, "samples", 600, "probes of each edge")
	flags.StringVar(&f.size, "size", "1 kB", "size of a probe")
	flags.StringVar(&f.out, "out", ".", "folder of the picture")
	return cmd
}

// parse reads the flags.
func (f *probing) parse() error {
	until, err := unit.ParseDuration(f.time)
	if err != nil {
		return fmt.Errorf("--time: %w", err)
	}
	size, err := unit.ParseSize(f.size)
	if err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	f.until, f.bytes = time.Duration(until), int(size)
	switch {
	case f.samples < 1 || f.samples > maxProbes:
		return fmt.Errorf("--samples %d; accepted is 1 to %d", f.samples, maxProbes)
	case f.until < time.Duration(f.samples) || f.until > maxProbeTime:
		return fmt.Errorf("--time %s; accepted is 1 ns for each probe to %v", f.time, unit.Duration(maxProbeTime))
	case int64(size) > math.MaxInt32:
		return fmt.Errorf("--size %s; accepted is up to %d bytes", f.size, math.MaxInt32)
	}
	f.every = f.until / time.Duration(f.samples)
	return nil
}

func (f *probing) run(cmd *cobra.Command, c *catalog.Catalog, path string, con *console) error {
	if err := f.parse(); err != nil {
		return usage(cmd, err)
	}
	p, err := f.load(cmd, con, path)
	if err != nil {
		return err
	}
	if err := con.about(p, c); err != nil {
		return err
	}
	n, err := p.Network(c, f.point, min(maxProbedEdges, maxAllProbes/f.samples))
	if err != nil {
		return err
	}
	var all []*report.Probed
	for i := range n.Lines {
		one, err := f.send(cmd.Context(), n, i)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted: %d of %d edges are probed; nothing is written", i, len(n.Lines))
		}
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return &driver.InputError{Err: fmt.Errorf("%s has no edges to probe", path)}
	}
	return f.show(con, n, all)
}

// send probes one line of a network.
func (f *probing) send(ctx context.Context, n *driver.Network, i int) (*report.Probed, error) {
	l := &n.Lines[i]
	r := &report.Probed{
		Edge: report.Edge{From: l.From, To: l.To, Model: inWords(n.Delays[i])},
		End:  f.until.Seconds(),
	}
	if l.Leaving != nil || l.Reaching != nil {
		r.Model += "+nodes'"
	}
	if l.Config.Rate != nil {
		r.Rate = l.Config.Rate.Mean()
	}
	if n.Rates[i].Kind == syntax.Map {
		r.RateModel = inWords(n.Rates[i])
	}
	down, count := time.Duration(0), 0
	for o := range l.Outages(n.Seed, f.until) {
		if count++; count > maxProbedOutages {
			return nil, &driver.InputError{Err: fmt.Errorf(
				"the link from %s to %s goes down more than %d times in %v; give a shorter --time",
				l.From, l.To, maxProbedOutages, unit.Duration(f.until))}
		}
		o.To = min(o.To, f.until)
		down += o.To - o.From
		addSpan(r, o, f.until/downSteps)
	}
	for _, probe := range l.Probe(n.Seed, f.bytes, f.every, f.samples) {
		took := math.Inf(1)
		if !probe.Lost {
			took = probe.Took.Seconds()
		}
		r.Sent = append(r.Sent, probe.Sent.Seconds())
		r.Delay = append(r.Delay, probe.Delay.Seconds())
		r.Took = append(r.Took, took)
		r.Tries += probe.Tries
	}
	r.DownShare = down.Seconds() / r.End
	return r, context.Cause(ctx)
}

// addSpan adds an outage, to the one before it if they are so close that a picture shows no gap.
func addSpan(r *report.Probed, o link.Outage, gap time.Duration) {
	span := [2]float64{o.From.Seconds(), o.To.Seconds()}
	if last := len(r.Down) - 1; last >= 0 && span[0]-r.Down[last][1] < gap.Seconds() {
		r.Down[last][1] = span[1]
		return
	}
	r.Down = append(r.Down, span)
}

// inWords is a delay or a rate of a plan in a few words: its kind and its settings.
func inWords(n *syntax.Node) string {
	if n.Kind != syntax.Map {
		return n.Flow()
	}
	var words []string
	kind := ""
	for _, f := range n.Fields {
		switch {
		case f.Value.Text == "0s" || f.Value.Text == "false":
		case f.Key == "kind":
			kind = f.Value.Text
		case f.Key == "file":
			words = append(words, filepath.Base(f.Value.Text))
		default:
			words = append(words, f.Key+" "+f.Value.Flow())
		}
	}
	return strings.TrimSpace(kind + " " + strings.Join(words, ", "))
}

// probed is what gradwire links prints as JSON.
type probed struct {
	Plan        string                `json:"plan"`
	Point       map[string]string     `json:"point"`
	Seed        uint64                `json:"seed"`
	TimeSeconds float64               `json:"time_s"`
	EverySecond float64               `json:"every_s"`
	ProbeBytes  int                   `json:"probe_bytes"`
	Edges       int                   `json:"edges"`
	Picture     string                `json:"picture"`
	Links       []report.ProbeSummary `json:"links"`
}

// show draws what the probes met, and prints it.
func (f *probing) show(con *console, n *driver.Network, all []*report.Probed) error {
	t := probed{
		Plan: n.Plan, Point: map[string]string{}, Seed: n.Seed,
		TimeSeconds: f.until.Seconds(), EverySecond: f.every.Seconds(), ProbeBytes: f.bytes,
		Edges: n.Edges, Picture: filepath.Join(f.out, n.Plan+"-links"),
	}
	point := ""
	for _, l := range n.Labels {
		t.Point[l.Key] = l.Value
		point += fmt.Sprintf(", %s = %s", l.Key, l.Value)
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil { //nolint:gosec // as the user's umask has it
		return &driver.InputError{Err: fmt.Errorf("--out: %w", err)}
	}
	title := fmt.Sprintf("%s: delays of its links%s", n.Plan, point)
	if err := figure.Probes(t.Picture, title, all); err != nil {
		return err
	}
	t.Picture += ".png"
	for _, p := range all {
		t.Links = append(t.Links, p.Summary())
	}
	return con.print(t, func(out io.Writer) error { return f.write(out, n, all, point, t.Picture) })
}

// write prints what the probes met as a table.
func (f *probing) write(out io.Writer, n *driver.Network, all []*report.Probed, point, picture string) error {
	lead := fmt.Sprintf("%s, seed %d: %.3g probes of %v a minute over each of %d edges, for %v of virtual time\n",
		n.Plan, n.Seed, float64(time.Minute)/float64(f.every), unit.Size(f.bytes), n.Edges, unit.Duration(f.until))
	if n.Points > 1 {
		lead += fmt.Sprintf("point %d of %d%s\n", n.Point, n.Points, point)
	}
	if len(all) < n.Edges {
		lead += fmt.Sprintf("probed are %d of the edges, evenly chosen\n", len(all))
	}
	_, err := io.WriteString(out, lead)
	if err == nil {
		err = text.Probes(display.Screen(out), all)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "plot   in %s, .svg\n", picture)
	}
	return err
}

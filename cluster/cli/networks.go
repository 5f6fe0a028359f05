package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/cli/shell"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

// network is a network that was measured, as list prints it: sites, or a mobile line.
type network struct {
	Name       string      `json:"name"`
	About      string      `json:"about"`
	Sites      []string    `json:"sites,omitempty"`
	RoundTrips [][]float64 `json:"round_trips_ms,omitempty"` // between sites, in their order
	Line       *line       `json:"line,omitempty"`
}

// line is a mobile line: rates in windows of a second, in bits a second.
type line struct {
	Mean           float64 `json:"mean_bits_per_s"`
	P5             float64 `json:"p5_bits_per_s"`
	P50            float64 `json:"p50_bits_per_s"`
	P95            float64 `json:"p95_bits_per_s"`
	SilenceSeconds float64 `json:"silence_s"` // the longest
	LengthSeconds  float64 `json:"length_s"`  // of what was measured
}

// networksCommand lists the networks that were measured.
func networksCommand(con *console) *cobra.Command {
	var names []string
	for _, p := range link.Presets() {
		names = append(names, p.Name)
	}
	for _, l := range rate.Mobile() {
		names = append(names, l.Name)
	}
	const short = "List networks and mobile lines that were measured"
	return &cobra.Command{
		Use: "networks [NAME]", Short: short,
		Example: "  gradwire list networks\n  gradwire list networks " + names[0],
		Long: short + `.
With a name, show the round trips between its sites in milliseconds, of which a message takes
half, or the rates of the line. A plan says where its nodes are with
network: {preset: NAME, sites: {NODE: SITE}}, and that a node is on a mobile line with
uplink: {kind: mobile, line: NAME}, or downlink.`,
		ValidArgsFunction: shell.UpTo(1, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(names, args[0]) {
				return usage(cmd, unknown(args[0], "one of the networks", names))
			}
			return atMostOne("name")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all := measured()
			if len(args) > 0 {
				one := all[slices.Index(names, args[0])]
				return con.print(one, one.write)
			}
			return con.table(all, func(w io.Writer) {
				for _, n := range all {
					fmt.Fprintf(w, "%s\t%s\n", n.Name, n.About)
				}
			})
		},
	}
}

// measured are all networks, in the order of their lists.
func measured() (all []network) {
	for _, p := range link.Presets() {
		all = append(all, networkOf(p))
	}
	for _, l := range rate.Mobile() {
		const bits = 8
		all = append(all, network{Name: l.Name, About: l.Doc, Line: &line{
			Mean: l.Average * bits, P5: l.P5 * bits, P50: l.P50 * bits, P95: l.P95 * bits,
			SilenceSeconds: l.Silence.Seconds(), LengthSeconds: l.Length.Seconds(),
		}})
	}
	return all
}

func networkOf(p link.Preset) network {
	m := p.Matrix()
	n := network{Name: p.Name, About: p.Doc, Sites: m.Sites}
	for from := range m.Sites {
		var row []float64
		for to := range m.Sites {
			trip := m.Delay(from, to) + m.Delay(to, from)
			row = append(row, float64(trip.Microseconds())/1e3)
		}
		n.RoundTrips = append(n.RoundTrips, row)
	}
	return n
}

// write writes the figures of a line; of sites a line each, with the round trips to those before it
// and within it.
func (n network) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", n.Name, n.About)
	if l := n.Line; l != nil {
		_, err := fmt.Fprintf(w, "  in windows of a second: mean %g, 5 %% below %g, median %g, 5 %% above %g Mbit/s\n"+
			"  nothing for %g s at the longest, in %g s\n",
			l.Mean/1e6, l.P5/1e6, l.P50/1e6, l.P95/1e6, l.SilenceSeconds, l.LengthSeconds)
		return err
	}
	for from, site := range n.Sites {
		fmt.Fprintf(w, "  %s", site)
		for _, trip := range n.RoundTrips[from][:from+1] {
			fmt.Fprintf(w, "%4.0f", trip)
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "      %s\n", strings.Join(n.Sites, " "))
	return err
}

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/link"
)

// network is a preset, as list prints it.
type network struct {
	Name       string      `json:"name"`
	About      string      `json:"about"`
	Sites      []string    `json:"sites"`
	RoundTrips [][]float64 `json:"round_trips_ms"` // between sites, in their order
}

// networksCommand lists the presets of networks.
func networksCommand(con *console) *cobra.Command {
	var all []network
	var names []string
	for _, p := range link.Presets() {
		all, names = append(all, networkOf(p)), append(names, p.Name)
	}
	const short = "List networks that were measured, for a plan's network.preset"
	return &cobra.Command{
		Use: "networks [NAME]", Short: short,
		Example: "  gradwire list networks\n  gradwire list networks " + names[0],
		Long: short + `.
With a name, show the round trips between its sites in milliseconds; a message takes half of
that. A plan says where its nodes are with network: {preset: NAME, sites: {NODE: SITE}}.`,
		ValidArgsFunction: upTo(1, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(names, args[0]) {
				return usage(cmd, unknown(args[0], "one of the networks", names))
			}
			return atMostOne("name")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
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

// write writes a line for each site, with the round trips to those before it and within it.
func (n network) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", n.Name, n.About)
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

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/link"
)

// networksCommand lists the presets of networks.
func networksCommand(out io.Writer) *cobra.Command {
	var names []string
	for _, p := range link.Presets() {
		names = append(names, p.Name)
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
			switch {
			case len(args) > 1:
				return usage(cmd, fmt.Errorf("%s takes one name at most, but %d arguments were given",
					cmd.CommandPath(), len(args)))
			case len(args) == 1 && !slices.Contains(names, args[0]):
				return usage(cmd, unknown(args[0], "one of the networks", names))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return aligned(func(w io.Writer) {
				for _, p := range link.Presets() {
					switch {
					case len(args) == 0:
						fmt.Fprintf(w, "%s\t%s\n", p.Name, p.Doc)
					case args[0] == p.Name:
						fmt.Fprintf(out, "%s: %s\n", p.Name, p.Doc)
						writeMatrix(out, p.Matrix())
					}
				}
			})(out)
		},
	}
}

// writeMatrix writes a line for each site, with the round trips to those before it and within it.
func writeMatrix(w io.Writer, m *link.Matrix) {
	for from, site := range m.Sites {
		fmt.Fprintf(w, "  %s", site)
		for to := range from + 1 {
			trip := m.Delay(from, to) + m.Delay(to, from)
			fmt.Fprintf(w, "%4d", trip.Round(time.Millisecond).Milliseconds())
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "      %s\n", strings.Join(m.Sites, " "))
}

package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

func listCommand(c *catalog.Catalog, out io.Writer) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "list",
		Short: "List what a plan or a driver can name, with settings and defaults",
		Long: `List what a plan or a driver can name. With the name of one kind, say what each of its settings
means.`,
		Example: "  gradwire list models\n  gradwire list architectures gossip",
	})
	cmd.AddCommand(
		lister(out, "models", c.Models.All()),
		lister(out, "layers", c.Layers.All()),
		lister(out, "datasets", c.Datasets.All()),
		lister(out, "splits", c.Splits.All()),
		lister(out, "optimizers", c.Optimizers.All()),
		lister(out, "schedules", c.Schedules.All()),
		lister(out, "architectures", c.Architectures.All()),
		lister(out, "links", c.Delays.All()),
		networksCommand(out),
		lister(out, "topologies", c.Topologies.All()),
		lister(out, "actors", c.Actors.All()),
	)
	return cmd
}

// lister lists kinds, or the settings of one of them.
func lister[T any](out io.Writer, what string, kinds []catalog.Kind[T]) *cobra.Command {
	short := "List " + what
	switch what {
	case "links":
		short = "List the delay models of links"
	case "actors":
		short = "List the kinds of actors that drivers can spawn"
	}
	names := namesOf(kinds)
	example := "  gradwire list " + what
	if len(names) > 0 {
		example += "\n" + example + " " + names[0]
	}
	return &cobra.Command{
		Use: what + " [NAME]", Short: short, Example: example, ValidArgsFunction: upTo(1, offer(kinds)),
		Long: short + `, each with what it is and its settings: their defaults, or the words
required and optional. With a name, say what each of its settings means.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(names, args[0]) {
				return usage(cmd, unknown(args[0], "one of the "+what, names))
			}
			return atMostOne("name")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return aligned(func(w io.Writer) {
				for _, k := range kinds {
					switch {
					case len(args) == 0:
						fmt.Fprintf(w, "%s\t%s\t%s\n", k.Name, k.Doc, k.Settings())
					case args[0] == k.Name:
						fmt.Fprintf(out, "%s: %s\n", k.Name, k.Doc)
						writeKeys(w, k.Keys())
					}
				}
			})(out)
		},
	}
}

// writeKeys writes a line for each key.
func writeKeys(w io.Writer, keys []catalog.Key) {
	for _, key := range keys {
		value := "optional"
		switch {
		case key.Required:
			value = "required"
		case key.Default != nil:
			value = key.Default.Flow()
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", key.Name, value, key.Doc)
	}
}

// unknown is the error about a word that is not what is wanted, with the word that was likely meant
// and all that are accepted.
func unknown(word, wanted string, accepted []string) error {
	return fmt.Errorf("%q is not %s%s", word, wanted, syntax.Suggestion(word, accepted))
}

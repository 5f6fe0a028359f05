package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/cli/shell"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/report/text"
)

func listCommand(c *catalog.Catalog, con *console) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "list",
		Short: "List what a plan or a driver can name, with settings and defaults",
		Long: `List what a plan or a driver can name. With the name of one kind, say which
values each of its settings accepts, and what it means.`,
		Example: "  gradwire list models\n  gradwire list architectures gossip",
	})
	cmd.AddCommand(
		lister(con, "models", c.Models.All()),
		lister(con, "layers", c.Layers.All()),
		lister(con, "datasets", c.Datasets.All()),
		lister(con, "splits", c.Splits.All()),
		lister(con, "optimizers", c.Optimizers.All()),
		lister(con, "schedules", c.Schedules.All()),
		lister(con, "architectures", c.Architectures.All()),
		lister(con, "consistencies", c.Consistencies.All()),
		lister(con, "compressors", c.Compressors.All()),
		lister(con, "links", c.Delays.All()),
		lister(con, "rates", c.LinkRates.All()),
		networksCommand(con),
		lister(con, "topologies", c.Topologies.All()),
		lister(con, "actors", c.Actors.All()),
		invariantsCommand(con),
	)
	return cmd
}

// lister lists kinds, or the settings of one of them.
func lister[T any](con *console, what string, kinds []catalog.Kind[T]) *cobra.Command {
	short := "List " + what
	switch what {
	case "links":
		short = "List the delay models of links"
	case "consistencies":
		short = "List the models of consistency, which say when a worker may go on"
	case "rates":
		short = "List the processes that the rate of a link, an uplink or a downlink can be"
	case "actors":
		short = "List the kinds of actors that drivers can spawn"
	}
	names := namesOf(kinds)
	example := "  gradwire list " + what
	if len(names) > 0 {
		example += "\n" + example + " " + names[0]
	}
	return &cobra.Command{
		Use: what + " [NAME]", Short: short, Example: example, ValidArgsFunction: shell.UpTo(1, offer(kinds)),
		Long: short + `, each with what it is and its settings: their defaults, or the words
required and optional. With a name, say which values each of its settings accepts, and what it means.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(names, args[0]) {
				return usage(cmd, unknown(args[0], "one of the "+what, names))
			}
			return atMostOne("name")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var all []kind
			for _, k := range kinds {
				all = append(all, kindOf(k))
			}
			if len(args) > 0 {
				one := all[slices.Index(names, args[0])]
				return con.print(one, one.write)
			}
			return con.table(all, func(w io.Writer) {
				for i, k := range all {
					fmt.Fprintf(w, "%s\t%s\t%s\n", k.Name, k.About, kinds[i].Settings())
				}
			})
		},
	}
}

// kind is one of the things that a plan can name, as list prints it.
type kind struct {
	Name     string    `json:"name"`
	About    string    `json:"about"`
	Settings []setting `json:"settings"`
}

// setting is one of a kind's settings.
type setting struct {
	Name     string          `json:"name"`
	About    string          `json:"about"`
	Required bool            `json:"required"`
	Default  json.RawMessage `json:"default,omitempty"`
	Accepted string          `json:"accepted,omitempty"`
	Words    []string        `json:"words,omitempty"`

	shown string // its default, or the word required or optional
}

func kindOf[T any](k catalog.Kind[T]) kind {
	one := kind{Name: k.Name, About: k.Doc, Settings: []setting{}}
	for _, key := range k.Keys() {
		s := setting{
			Name: key.Name, About: key.Doc, Required: key.Required, Accepted: key.Accepted, Words: key.Words,
			shown: "optional",
		}
		switch {
		case key.Required:
			s.shown = "required"
		case key.Default != nil:
			s.shown = key.Default.Flow()
			s.Default, _ = key.Default.JSON() // no value of a node fails to be written
		}
		one.Settings = append(one.Settings, s)
	}
	return one
}

// write writes a line for each setting.
func (k kind) write(out io.Writer) error {
	out = display.Screen(out)
	if err := text.Rows(out, fmt.Sprintf("%s: %s\n", k.Name, k.About)); err != nil {
		return err
	}
	var rows strings.Builder
	for _, s := range k.Settings {
		fmt.Fprintf(&rows, "  %s\t%s\t%s\t%s\n", s.Name, s.shown, s.Accepted, s.About)
	}
	return text.Rows(out, rows.String())
}

// unknown is the error about a word that is not what is wanted, with the word that was likely meant
// and all that are accepted.
func unknown(word, wanted string, accepted []string) error {
	return fmt.Errorf("%q is not %s%s", word, wanted, syntax.Suggestion(word, accepted))
}

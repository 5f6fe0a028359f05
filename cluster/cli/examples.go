package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/cli/bundled"
	"github.com/gradwire/gradwire/cluster/cli/shell"
)

// addExamples adds what bundled plans need to a program: a command that lists them, and their names
// in the examples of other commands.
func addExamples(root *cobra.Command, e bundled.Plans, con *console) {
	if e.FS == nil {
		return
	}
	var names []string
	for _, one := range e.All() {
		names = append(names, bundled.Folder+"/"+one.Path, one.Name)
	}
	named := strings.NewReplacer(names...)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "list" {
			cmd.AddCommand(examplesCommand(e, con))
		}
		for _, sub := range append(cmd.Commands(), cmd) {
			sub.Example = named.Replace(sub.Example)
		}
	}
	root.Example = named.Replace(root.Example)
}

func examplesCommand(e bundled.Plans, con *console) *cobra.Command {
	names := e.Names()
	return &cobra.Command{
		Use: "examples [NAME]", Short: "List the plans that the program brings along",
		Long: `List the plans that the program brings along, each with what it is about and the data set that it
needs. Every command that takes a plan takes the name of one; a file of that name comes first. With a
name, show the plan.`,
		Example: `  gradwire list examples
  gradwire list examples quickstart > mine.yaml
  gradwire run quickstart`,
		ValidArgsFunction: shell.UpTo(1, shell.EachOnce(names...)),
		Args:              atMostOne("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				all := e.All()
				for i := range all {
					all[i] = all[i].Described()
					all[i].Text = ""
				}
				return con.table(all, func(w io.Writer) {
					for _, one := range all {
						fmt.Fprintf(w, "%s\t%s\t%s\n", one.Name, one.Data, one.About)
					}
				})
			}
			one, ok := e.Find(args[0])
			if !ok {
				return usage(cmd, unknown(args[0], "one of the examples", names))
			}
			return con.say(one.Described(), "%s", one.Text)
		},
	}
}

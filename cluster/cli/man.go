package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/gradwire/gradwire/cluster/driver"
)

func manCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages of all commands into a folder",
		Long: `Write the man pages of all commands, of section 1, into a folder, which is made if it is not there. Pages
of the same names are replaced. Their date is that of today, or of the variable SOURCE_DATE_EPOCH.`,
		Example: `  gradwire man ~/.local/share/man/man1
  gradwire man man/ && man man/gradwire-run.1`,
		Args: exactly(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true                       // the pages' footers have the date
			if err := os.MkdirAll(args[0], 0o777); err != nil { //nolint:gosec // as readable as other folders of the user's
				return &driver.InputError{Err: err}
			}
			header := &doc.GenManHeader{Section: "1", Source: root.Name(), Manual: strings.ToUpper(root.Name()) + " manual"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return &driver.InputError{Err: err}
			}
			_, err := fmt.Fprintf(out, "man pages in %s\n", args[0])
			return err
		},
	}
}

package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/report/page"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// pageName is what a page is called that nobody has named.
const pageName = "report.html"

func reportCommand(con *console) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Make a page, plots and tables of recorded runs",
		Long: `Make a page of HTML of one or several records, side by side: accuracy over epochs,
time and bytes, time and epochs to the target, staleness and waiting, the network
with its delays, every run, the plans and the builds. The page is one file that needs
no network. The folder FILE-files beside it has its plots as PNG and SVG and its
tables as CSV. Events are not read.`,
		Example: `  gradwire report results/first
  gradwire report results/first results/second --out both.html`,
		Args: some("the folders of one or several records, but none was given"),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			switch extension := strings.ToLower(filepath.Ext(file)); {
			case file == "" && len(dirs) == 1:
				file = filepath.Join(dirs[0], pageName)
			case file == "":
				file = pageName
			case extension != ".html" && extension != ".htm":
				return usage(cmd, fmt.Errorf("--out %q; a file that ends in .html is accepted", file))
			}
			return makeReport(con, dirs, file)
		},
	}
	con.addExplain(cmd)
	cmd.Flags().StringVar(&file, "out", "",
		"the page (default: "+pageName+" in DIR, or in the working folder if there are several)")
	return cmd
}

func makeReport(con *console, dirs []string, file string) error {
	sources, err := page.Read(dirs)
	if err != nil {
		return &driver.InputError{Err: err}
	}
	o, err := page.Write(file, sources)
	if err != nil {
		return err
	}
	about := facts{"page": o.Page, "folder": o.Folder, "figures": o.Figures, "tables": o.Tables}
	return con.print(about, func(out io.Writer) error {
		screen := display.Screen(out)
		for _, s := range sources {
			if len(sources) > 1 {
				fmt.Fprintln(out, s.Name+":")
			}
			if err := text.Headline(screen, s.Summary); err != nil {
				return err
			}
			if !con.explain {
				continue
			}
			if err := text.Explain(screen, s.Summary); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(out, "page   in %s\nplots  in %s, %d as .png and .svg\ntables in %s, %s\n",
			o.Page, o.Folder, o.Figures, o.Folder, strings.Join(o.Tables, ", "))
		return err
	})
}

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/page"
	"github.com/gradwire/gradwire/cluster/report/pivot"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// pageName is what a page is called that nobody has named.
const pageName = "report.html"

// reporting are the flags of gradwire report.
type reporting struct {
	out, table string
	view       report.View
	where      []string
	resumed    bool
}

func reportCommand(c *catalog.Catalog, con *console) *cobra.Command {
	f := &reporting{}
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Make a page, plots and tables of recorded runs",
		Long: `Make a page of HTML of one or several records, side by side: who reached the target
first, accuracy over epochs, time and bytes, staleness and waiting, the network with its
delays, every run, the plans and the builds. The page is one file that needs no network.
The folder FILE-files beside it has its plots as PNG and SVG and its tables as CSV. Of two
records, the points that both have are paired. Events are not read.

In a sweep over several keys, --by names the key of the colours and of a table's rows,
--facet the key of the panels and of a table's columns. The last part of a key is enough
where it is unambiguous. --where keeps points: KEY=VALUE[,VALUE...] or KEY!=VALUE[,VALUE...],
with commas between conditions, all of which must hold. --table prints times to the target
as a table, and makes no page.`,
		Example: `  gradwire report results/first
  gradwire report results/first results/second --out both.html
  gradwire report results/sweep --by architecture --facet data.split
  gradwire report results/sweep --where 'architecture=gossip,local,delay!=1ms' --table markdown`,
		Args: some("the folders of one or several records, but none was given"),
		RunE: func(cmd *cobra.Command, dirs []string) error { return f.run(cmd, c, con, dirs) },
	}
	con.addExplain(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "the page (default: "+pageName+
		" in DIR, or in the working folder if there are several), or the table's file (default: standard output)")
	flags.StringVar(&f.view.By, "by", "", "key of the sweep for colours and rows (default: what is compared)")
	flags.StringVar(&f.view.Facet, "facet", "", "key of the sweep for panels and columns")
	flags.StringArrayVar(&f.where, "where", nil, "keep the points with these values, as in data.split=iid (repeated)")
	flags.BoolVar(&f.resumed, "with-resumed", false, "include runs that were resumed from a checkpoint in comparisons")
	flags.StringVar(&f.table, "table", "", "print a table instead: "+strings.Join(pivot.Formats, ", "))
	return cmd
}

func (f *reporting) run(cmd *cobra.Command, c *catalog.Catalog, con *console, dirs []string) error {
	switch extension := strings.ToLower(filepath.Ext(f.out)); {
	case f.table != "" && !slices.Contains(pivot.Formats, f.table):
		return usage(cmd, unknown(f.table, "a value of --table", pivot.Formats))
	case f.table != "" && con.json():
		return usage(cmd, errors.New("--table prints text; --format json is not accepted beside it"))
	case f.table != "":
	case f.out == "" && len(dirs) == 1 && !con.stored:
		f.out = filepath.Join(dirs[0], pageName)
	case f.out == "":
		f.out = pageName
	case extension != ".html" && extension != ".htm":
		return usage(cmd, fmt.Errorf("--out %q; a file that ends in .html is accepted", f.out))
	}
	sources, err := page.Read(dirs)
	if err != nil {
		return &driver.InputError{Err: err}
	}
	for _, s := range sources {
		if f.resumed {
			s.IncludeResumed()
		}
		note, err := driver.Edited(c, s.Dir)
		if err != nil {
			return err
		}
		if note != "" {
			con.note("warning: " + note)
		}
	}
	all, err := page.Choose(sources, f.view, f.where)
	if err != nil {
		return usage(cmd, err)
	}
	if f.table != "" {
		return f.printTable(con, all)
	}
	return makeReport(con, f.out, sources)
}

// printTable writes the times to the target as a table.
func (f *reporting) printTable(con *console, all *page.Source) error {
	if resumed := report.Resumed(all.Summary); resumed != "" {
		con.note("note: " + resumed)
	}
	layout, err := all.View.Arrange(all.Summary)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := pivot.Of(all.Summary, layout).Write(&text, f.table); err != nil {
		return err
	}
	if f.out != "" {
		return record.WriteFile(f.out, text.Bytes())
	}
	_, err = con.out.Write(text.Bytes())
	return err
}

func makeReport(con *console, file string, sources []*page.Source) error {
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
		if err := text.Paragraphs(screen, page.Paired(sources)...); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "page   in %s\nplots  in %s, %d as .png and .svg\ntables in %s, %s\n",
			o.Page, o.Folder, o.Figures, o.Folder, strings.Join(o.Tables, ", "))
		return err
	})
}

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/datasets"
)

func newCommand(c *catalog.Catalog, con *console) *cobra.Command {
	s := catalog.Start{}
	var file string
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Write a plan to begin with",
		Long: fmt.Sprintf(`Write a plan to begin with: every setting of an architecture and of a data set with its
default, what it means and the words that it accepts, nodes for each role, named after it, a slow
link, and a bound. Its first line names the schema by which editors complete and check it. It can be
run as it is. What has no default is given with --set, as are other values. A file that exists is
left alone.

Architectures: %s.
Data sets: %s.`, strings.Join(namesOf(c.Architectures.All()), ", "), strings.Join(namesOf(c.Datasets.All()), ", ")),
		Example: `  gradwire plan new --architecture gossip --out plan.yaml
  gradwire plan new --data csv --set data.file=table.csv
  gradwire plan new --architecture d-psgd --data mnist --set nodes.peer.count=8`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Program = cmd.Root().Name()
			s.Load = func(l catalog.Loader) (*datasets.Source, error) {
				return shelf.Load(l, shelf.Folders(""), l.Test == 0)
			}
			if file != "" {
				s.Folder = filepath.Dir(file)
			}
			text, err := c.Start(s)
			if err != nil {
				return &driver.InputError{Err: err}
			}
			if file == "" {
				return con.plan(text)
			}
			return writeNew(con, file, text)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Architecture, "architecture", "parameter-server", "which architecture")
	flags.StringVar(&s.Data, "data", "synthetic-traffic", "which data set")
	flags.StringArrayVar(&s.Set, "set", nil, "set a key of the plan, as in nodes.worker.count=8 (repeated)")
	flags.StringVar(&file, "out", "", "file to write, which must not exist (default: standard output)")
	return cmd
}

// writeNew writes a file that is not there yet.
func writeNew(con *console, file, text string) error {
	//nolint:gosec // as readable as the user's other files
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return &driver.InputError{Err: fmt.Errorf("--out %s: this exists; the name of a new file is accepted", file)}
	}
	if err != nil {
		return &driver.InputError{Err: fmt.Errorf("--out %s: the plan cannot be written: %w", file, err)}
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = con.say(facts{"plan": file}, "plan in %s\n", file)
	}
	return err
}

func namesOf[T any](kinds []catalog.Kind[T]) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

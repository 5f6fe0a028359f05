package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/datasets/published"
)

// The flag --data, of commands that look for published sets too, and of others.
const (
	dataUsage   = "folder of data sets, looked into before $GRADWIRE_DATA and the user's cache"
	folderUsage = "folder of data sets (default: $GRADWIRE_DATA)"
)

func dataCommand(c *catalog.Catalog, con *console) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "data",
		Short: "List, get and check published data sets",
		Long: `List, get and check published data sets. Gradwire looks for them in the folder --data,
in the folder that the variable GRADWIRE_DATA names and in the user's cache, where 'gradwire data get'
puts them.`,
		Example: "  gradwire data list\n  gradwire data get fashion-mnist\n  gradwire data check",
	})
	cmd.AddCommand(dataListCommand(con), dataGetCommand(con), dataCheckCommand(c, con))
	return cmd
}

// listed is a data set as `data list` prints it.
type listed struct {
	Name     string `json:"name"`
	About    string `json:"about"`
	Samples  int    `json:"samples"`
	Tests    int    `json:"test_samples"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	Licence  string `json:"licence"`
	Page     string `json:"page"`
	Bytes    int64  `json:"bytes"`
	Found    string `json:"found"`
	Get      string `json:"get"`
}

func dataListCommand(con *console) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the published data sets, and where they are or how to get them",
		Example: "  gradwire data list\n  gradwire data list --format json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []listed
			for _, s := range published.All() {
				found, _ := whereIs(&s, shelf.Folders(data)) // empty where it is not
				all = append(all, listed{
					s.Name, s.About, s.Samples, s.Tests, s.Features, s.Classes, s.Licence, s.Page, s.Bytes(), found,
					cmd.Root().Name() + " data get " + s.Name,
				})
			}
			return con.table(all, func(w io.Writer) { writeSets(w, all) })
		},
	}
	cmd.Flags().StringVar(&data, "data", "", dataUsage)
	return cmd
}

func writeSets(w io.Writer, all []listed) {
	fmt.Fprintln(w, "name\tsamples\tfeatures\tclasses\tsize\twhat\tlicence\twhere")
	for _, l := range all {
		samples := strconv.Itoa(l.Samples)
		if l.Tests > 0 {
			samples += " + " + strconv.Itoa(l.Tests)
		}
		where := "in " + l.Found
		if l.Found == "" {
			where = "get it with '" + l.Get + "', or from " + l.Page
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n",
			l.Name, samples, l.Features, l.Classes, megabytes(l.Bytes), l.About, l.Licence, where)
	}
}

func megabytes(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB" }

// whereIs returns the first of the folders that has all files of a set, or an fs.ErrNotExist.
func whereIs(s *published.Set, folders []string) (string, error) {
	err := fmt.Errorf("data set %s: no folder of data sets is named, as --data or GRADWIRE_DATA does: %w",
		s.Name, fs.ErrNotExist)
	for i, folder := range folders {
		var e error
		for _, f := range s.Files {
			if _, e = s.Locate(folder, f.Name); e != nil {
				break
			}
		}
		if e == nil {
			return folder, nil
		}
		if i == 0 {
			err = e
		}
	}
	if len(folders) > 1 {
		err = fmt.Errorf("%w; nor is it in %s", err, strings.Join(folders[1:], " or "))
	}
	return "", err
}

// named returns the sets that are named on a command line.
func named(cmd *cobra.Command, names []string) ([]*published.Set, error) {
	var known []string
	for _, s := range published.All() {
		known = append(known, s.Name)
	}
	var sets []*published.Set
	for _, name := range names {
		s, ok := published.Find(name)
		if !ok {
			return nil, usage(cmd, unknown(name, "a published data set", known))
		}
		sets = append(sets, s)
	}
	return sets, nil
}

func dataGetCommand(con *console) *cobra.Command {
	var data string
	var from []string
	cmd := &cobra.Command{
		Use:   "get NAME...",
		Short: "Get published data sets into the user's cache",
		Long: `Get published data sets into the user's cache, where runs find them. Mirrors are tried in turn,
a download that broke off goes on at the byte where it broke, and a file is used only if its SHA-256
is the published one.`,
		Example: `  gradwire data get mnist fashion-mnist
  gradwire data get a9a --data ~/datasets --from https://mirror.example.org/a9a`,
		Args: some("names of data sets, as 'gradwire data list' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			sets, err := named(cmd, args)
			if err != nil {
				return err
			}
			if err := checkMirrors(cmd, from); err != nil {
				return err
			}
			if data == "" {
				if data, err = shelf.Cache(); err != nil {
					return &driver.InputError{Err: err}
				}
			}
			for _, s := range sets {
				if err := getSet(cmd.Context(), s, data, from, con); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "folder to put them into (default: the user's cache)")
	cmd.Flags().StringArrayVar(&from, "from", nil,
		"address to get the files from, in place of the set's mirrors (repeated)")
	return cmd
}

// checkMirrors says which of the addresses is none.
func checkMirrors(cmd *cobra.Command, from []string) error {
	for _, address := range from {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usage(cmd, fmt.Errorf(
				"--from %q; accepted is an address that begins with http:// or https://", address))
		}
	}
	return nil
}

// getSet gets one set, unless it is there.
func getSet(ctx context.Context, s *published.Set, folder string, from []string, con *console) error {
	_, err := s.Check(folder)
	if err != nil {
		show := display.New(con.notes())
		show.Quiet() // a line only of a download that takes long
		g := published.Getter{Mirrors: from, Progress: func(p published.Progress) { showDownload(show, s.Name, p) }}
		err = g.Get(ctx, s, folder)
		show.Close()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; what has arrived is kept for the next time")
	case err != nil:
		return err
	}
	return con.say(facts{"name": s.Name, "folder": folder}, "%s is in %s\n", s.Name, folder)
}

// showDownload shows how far a download is.
func showDownload(d *display.Display, set string, p published.Progress) {
	if p.Trouble != nil {
		d.Note(fmt.Sprintf("%s: %v; trying again", p.From, p.Trouble))
		return
	}
	d.Show(set+", "+p.File, fmt.Sprintf("%s, %s of %s", set, megabytes(p.Done), megabytes(p.Total)),
		float64(p.Done)/float64(p.Total), p.Done == p.Total)
}

func dataCheckCommand(c *catalog.Catalog, con *console) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Compare data sets with their published checksums, and read them",
		Long: `Compare the files of data sets with their published checksums, and read them. Without names, all
that are there are checked. The exit code is 2 if one that is named is missing or one is not as it was
published, and 1 if none is named and none is there.`,
		Example: "  gradwire data check\n  gradwire data check mnist --data ~/datasets",
		RunE: func(cmd *cobra.Command, args []string) error {
			sets, err := named(cmd, args)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				for _, s := range published.All() {
					sets = append(sets, &s)
				}
			}
			missing := 0
			var faults []error
			for _, s := range sets {
				err := checkSet(c, s, shelf.Folders(data), con)
				if len(args) == 0 && errors.Is(err, fs.ErrNotExist) {
					missing++
					get := cmd.Root().Name() + " data get " + s.Name
					err = con.say(facts{"name": s.Name, "get": get}, "%s is not there; get it with '%s'\n", s.Name, get)
				}
				faults = append(faults, err)
			}
			if err := errors.Join(faults...); err != nil {
				return &driver.InputError{Err: err}
			}
			if missing == len(sets) {
				return fmt.Errorf("nothing was checked: no published data set is in %s",
					strings.Join(shelf.Folders(data), " or "))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", "", dataUsage)
	return cmd
}

// checkSet checks one set and tells that it is in order.
func checkSet(c *catalog.Catalog, s *published.Set, folders []string, con *console) error {
	folder, err := whereIs(s, folders)
	if err != nil {
		return err
	}
	if _, err := s.Check(folder); err != nil {
		return err
	}
	loader, err := c.Loader(s.Name)
	if err != nil {
		return err
	}
	source, err := loader.Load(folder, s.Tests > 0)
	if err == nil {
		err = source.Validate()
	}
	if err != nil {
		return err
	}
	got := 0
	if source.Test != nil {
		got = source.Test.Len()
	}
	if source.Pool.Len() != s.Samples || got != s.Tests {
		return fmt.Errorf("data set %s in %s: %d and %d samples were read; %d and %d are expected",
			s.Name, folder, source.Pool.Len(), got, s.Samples, s.Tests)
	}
	about := facts{
		"name": s.Name, "folder": folder, "samples": s.Samples, "test_samples": s.Tests,
		"features": source.Pool.Inputs, "classes": len(source.Pool.Classes),
	}
	return con.say(about, "%s is in order in %s: %d + %d samples of %d inputs in %d classes\n",
		s.Name, folder, s.Samples, s.Tests, source.Pool.Inputs, len(source.Pool.Classes))
}

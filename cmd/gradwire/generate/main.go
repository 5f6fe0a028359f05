// Command generate writes the pages about gradwire's commands from the commands themselves, so that
// the program needs no library for pages: README.md, and man pages in the folder man.
//
//	generate [-check] [DIR]
//
// DIR (default: the working directory) is the folder of the command gradwire. With -check the
// command writes nothing: it names the files that differ from what it would write, and fails if any
// do.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/examples"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file differs from what would be written")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	if err := run(dir, *check); err != nil {
		fmt.Fprintf(os.Stderr, "generate: %v\n", err)
		os.Exit(1)
	}
}

// run writes the pages below dir, or, if check is set, says which of them differ.
func run(dir string, check bool) error {
	files, err := pages()
	if err != nil {
		return err
	}
	if check {
		return compare(dir, files)
	}
	if err := os.MkdirAll(filepath.Join(dir, manFolder), 0o755); err != nil { //nolint:gosec // part of the source
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil { //nolint:gosec // part of the source
			return err
		}
	}
	return nil
}

// compare says which files below dir differ from those, and which man pages are of no command.
func compare(dir string, files map[string][]byte) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		have, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // part of the source
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(have, files[name]) {
			errs = append(errs, fmt.Errorf("%s differs from the commands; run: go generate ./cmd/gradwire", name))
		}
	}
	existing, err := filepath.Glob(filepath.Join(dir, manFolder, "*"))
	if err != nil {
		return err
	}
	for _, path := range existing {
		if name := filepath.Join(manFolder, filepath.Base(path)); files[name] == nil {
			errs = append(errs, fmt.Errorf("%s is the page of no command", name))
		}
	}
	return errors.Join(errs...)
}

// manFolder is where the man pages are.
const manFolder = "man"

// pages makes all files, by name.
func pages() (map[string][]byte, error) {
	program := cli.Program{Name: "gradwire", Catalog: catalog.Default(), Examples: examples.Files}
	root := program.Commands(io.Discard, io.Discard)
	root.DisableAutoGenTag = true
	var page bytes.Buffer
	writePage(&page, root)
	files := map[string][]byte{"README.md": page.Bytes()}
	return files, addMan(files, root)
}

// addMan adds the man pages of a command and of the commands below it. The pages have no date: they
// change only when the commands do.
func addMan(files map[string][]byte, cmd *cobra.Command) error {
	if cmd.Name() == "help" {
		return nil
	}
	var page bytes.Buffer
	manual := strings.ToUpper(cmd.Root().Name()) + " manual"
	header := &doc.GenManHeader{Section: "1", Source: cmd.Root().Name(), Manual: manual, Date: &time.Time{}}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return err
	}
	date := header.Date.Format("Jan 2006")
	name := filepath.Join(manFolder, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	files[name] = bytes.Replace(page.Bytes(), []byte(`"`+date+`"`), []byte(`""`), 1)
	for _, sub := range cmd.Commands() {
		if err := addMan(files, sub); err != nil {
			return err
		}
	}
	return nil
}

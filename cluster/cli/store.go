package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/client"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/store"
)

// openStores lets every command below parent accept addresses of records as arguments: it downloads the
// records, and passes their folders to the command. Paths of flags are checked first; see checkPaths.
func openStores(parent *cobra.Command, con *console) {
	for _, cmd := range parent.Commands() {
		openStores(cmd, con)
		run := cmd.RunE
		if run == nil {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
			if err := checkPaths(cmd); err != nil {
				return err
			}
			if cmd.Name() == "fetch" { // fetch downloads the record itself
				return run(cmd, args)
			}
			args = slices.Clone(args)
			for i, arg := range args {
				local, remove, err := con.download(cmd.Context(), arg, unread(cmd.Name()))
				if err != nil {
					return err
				}
				defer remove()
				con.stored = con.stored || local != arg
				args[i] = local
			}
			return run(cmd, args)
		}
	}
}

// unread returns the filter of the files that a command does not read.
func unread(command string) func(name string) bool {
	return func(name string) bool {
		if strings.Contains(name, ".state/") { // file of a checkpoint
			return true
		}
		switch filepath.Ext(name) {
		case ".partial":
			return true
		case ".safetensors", ".jsonl":
			return command == "report"
		}
		return false
	}
}

// download calls [store.Download]. The function returned deletes the downloaded files.
func (con *console) download(ctx context.Context, text string, skip func(string) bool) (string, func(), error) {
	local, remove, err := store.Download(ctx, text, skip, con.note)
	if err != nil {
		return "", nil, err
	}
	return local, func() {
		if err := remove(); err != nil {
			con.note(err.Error())
		}
	}, nil
}

// note prints a line beside the output.
func (con *console) note(text string) { fmt.Fprintln(con.notes(), text) }

// vacant returns an error if a folder or a store does not accept a new record.
func (con *console) vacant(ctx context.Context, out string) error {
	if !store.IsRemote(out) {
		return client.Vacant(out)
	}
	u, err := con.workFolder(ctx, out)
	if err != nil {
		return err
	}
	return errors.Join(u.Writable(ctx), u.Abandon())
}

// workFolder opens a working folder for a new record in a store.
func (con *console) workFolder(ctx context.Context, out string) (*store.Uploader, error) {
	at, err := store.Parse(out)
	if err != nil {
		return nil, &driver.InputError{Err: err}
	}
	return store.OpenWorkFolder(ctx, at, store.MustBeEmpty, con.note)
}

// writeRecord calls write for a folder, or for a working folder that it uploads to a store. Then it calls
// show for that folder and the final place of the record.
func (con *console) writeRecord(ctx context.Context, out string, write func(dir string) error,
	show func(dir, stays string) error) error {
	if !store.IsRemote(out) {
		if err := write(out); err != nil {
			return err
		}
		return show(out, out)
	}
	u, err := con.workFolder(ctx, out)
	if err != nil {
		return err
	}
	if err := write(u.Dir); err != nil {
		return errors.Join(err, u.Abandon())
	}
	shown := show(u.Dir, out)
	if err := u.Start(ctx); err != nil {
		return errors.Join(shown, err, u.Abandon())
	}
	return errors.Join(shown, u.Close(ctx, 0))
}

// fetchStored copies a record from a store to out.
func (con *console) fetchStored(ctx context.Context, address, out string) error {
	dir, remove, err := con.download(ctx, address, nil)
	if err != nil {
		return err
	}
	defer remove()
	if out == "" {
		out = filepath.Join("results", filepath.Base(dir))
	}
	if err := con.vacant(ctx, out); err != nil {
		return err
	}
	return con.writeRecord(ctx, out, func(to string) error { return os.CopyFS(to, os.DirFS(dir)) },
		func(dir, stays string) error { return showRecord(con, dir, stays) })
}

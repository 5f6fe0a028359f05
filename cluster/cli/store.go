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
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/client"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/store"
)

// storeFlags are the flags whose value may be the address of a store, by command.
var storeFlags = map[string][]string{"run": {"out", "continue"}, "node": {"out"}, "submit": {"out"}, "fetch": {"out"}}

// openStores lets arguments of every command below be addresses of records: the command gets a folder
// of this machine, into which they are downloaded. A flag that takes a file or folder of this machine
// refuses addresses.
func openStores(parent *cobra.Command, con *console) {
	for _, cmd := range parent.Commands() {
		openStores(cmd, con)
		run := cmd.RunE
		if run == nil {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if f.Value.Type() == "string" && strings.Contains(f.Value.String(), "://") &&
					!slices.Contains(storeFlags[cmd.Name()], f.Name) {
					err = usage(cmd, fmt.Errorf("--%s %q; a path of this machine is accepted, no address of a store",
						f.Name, f.Value))
				}
			})
			if err != nil {
				return err
			}
			if cmd.Name() == "fetch" { // it copies a record as it is
				return run(cmd, args)
			}
			args = slices.Clone(args)
			for i, arg := range args {
				local, remove, err := con.local(cmd.Context(), arg, unread(cmd.Name()))
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

// unread returns whether a command does without a file of a record.
func unread(command string) func(name string) bool {
	return func(name string) bool {
		switch filepath.Ext(name) {
		case ".state", ".partial":
			return true
		case ".safetensors", ".jsonl":
			return command == "report"
		}
		return false
	}
}

// local returns the folder or file of this machine with what a text names, as [store.Local] does. What
// is no record is left to the command.
func (con *console) local(ctx context.Context, text string, skip func(string) bool) (string, func(), error) {
	local, remove, err := store.Local(ctx, text, skip, con.note)
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

// vacant returns an error if a folder or the address of a store does not accept a new record.
func (con *console) vacant(ctx context.Context, out string) error {
	if !store.IsRemote(out) {
		return client.Vacant(out)
	}
	m, err := con.work(ctx, out)
	if err != nil {
		return err
	}
	return errors.Join(m.Writable(ctx), m.Abandon())
}

// work makes a working folder for a new record in a store.
func (con *console) work(ctx context.Context, out string) (*store.Mirror, error) {
	at, err := store.Parse(out)
	if err != nil {
		return nil, &driver.InputError{Err: err}
	}
	return store.Work(ctx, at, store.New, con.note)
}

// writeRecord has a record written to a folder, or to a working folder whose files it uploads to a
// store. Then it shows the record.
func (con *console) writeRecord(ctx context.Context, out string, write func(dir string) error,
	show func(dir, stays string) error) error {
	if !store.IsRemote(out) {
		if err := write(out); err != nil {
			return err
		}
		return show(out, out)
	}
	m, err := con.work(ctx, out)
	if err != nil {
		return err
	}
	if err := write(m.Dir); err != nil {
		return errors.Join(err, m.Abandon())
	}
	shown := show(m.Dir, out)
	if err := m.Start(ctx); err != nil {
		return errors.Join(shown, err, m.Abandon())
	}
	return errors.Join(shown, m.Close(ctx, 0))
}

// fetchStored copies a record out of a store.
func (con *console) fetchStored(ctx context.Context, address, out string) error {
	dir, remove, err := con.local(ctx, address, nil)
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

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/store"
)

// pathRule says which paths a flag accepts. check returns the reason to refuse a path. An empty path is
// refused unless none is set: such a flag overrides a variable of the environment.
type pathRule struct {
	accepted string
	check    func(path string) error
	none     bool
}

var (
	dataFolder = pathRule{accepted: "a folder of data sets, which 'gradwire data get' makes", check: folderThere,
		none: true}
	newFolder  = pathRule{accepted: "a folder, or one that can be made", check: folderToBe}
	newFile    = pathRule{accepted: "a file in a folder that is there", check: fileToBe}
	oldRecord  = pathRule{accepted: "the folder of a record", check: folderIfAny}
	identities = pathRule{accepted: "the folder of an identity, which 'gradwire identity issue' makes",
		check: folderThere, none: true}
	noRule = pathRule{check: func(string) error { return nil }, none: true}
)

// pathRules maps flags to their rules: by name, or by command and name where a command has its own.
var pathRules = map[string]pathRule{
	"data": dataFolder, "out": newFolder, "continue": oldRecord, "identity": identities,
	"plan new --data": noRule, // a kind
	"eval --data": {accepted: "a folder of data sets, a file of samples, or - for standard input", check: dataThere,
		none: true},
	"predict --data":  {accepted: "a file of samples, or - for standard input", check: samplesThere},
	"eval --labels":   {accepted: "a file of labels", check: samplesThere},
	"data get --data": newFolder,
	"plan new --out":  newFile, "plan schema --out": newFile, "predict --out": newFile,
	"report --out":      {accepted: "a file", check: fileToMake},
	"submit --continue": noRule, // a submission
}

// storeFlags lists the flags that accept the address of a store, by command.
var storeFlags = map[string][]string{
	"run": {"out", "continue"}, "node": {"out"}, "submit": {"out"}, "fetch": {"out"},
}

// checkPaths returns an error about the first path flag whose path its command cannot use: it names
// the flag and what is accepted. Such a mistake is told before anything else happens.
func checkPaths(cmd *cobra.Command) (err error) {
	_, command, _ := strings.Cut(cmd.CommandPath(), " ")
	cmd.Flags().Visit(func(f *pflag.Flag) {
		path := f.Value.String()
		if err != nil || f.Value.Type() != "string" || !f.Changed {
			return
		}
		stores := slices.Contains(storeFlags[cmd.Name()], f.Name)
		switch {
		case strings.Contains(path, "://") && !stores:
			err = usage(cmd, fmt.Errorf("--%s %q; a path of this machine is accepted, not the address of a store",
				f.Name, path))
			return
		case store.IsRemote(path):
			return
		}
		rule, ok := pathRules[command+" --"+f.Name]
		if !ok {
			rule, ok = pathRules[f.Name]
		}
		if !ok {
			return
		}
		wrong := errors.New("the path is empty")
		switch {
		case path != "":
			wrong = rule.check(path)
		case rule.none:
			return
		}
		if wrong != nil {
			accepted := rule.accepted
			if stores {
				accepted += ", or s3://BUCKET/PATH"
			}
			err = usage(cmd, fmt.Errorf("--%s %s: %w; accepted is %s", f.Name, cmp.Or(path, `""`), wrong, accepted))
		}
	})
	return err
}

// dataThere wants a folder, a file, or - for standard input.
func dataThere(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	return samplesThere(path)
}

// samplesThere wants a file, or - for standard input.
func samplesThere(path string) error {
	if path == "-" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return errors.New("it is a folder")
	}
	return cause(err)
}

// folderThere wants a folder that exists.
func folderThere(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return errors.New("it is no folder")
	}
	return cause(err)
}

// folderIfAny is folderThere, but leaves a folder that does not exist to the command, which says what
// to do about that.
func folderIfAny(path string) error {
	if err := folderThere(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fileToBe wants a file that exists, or the name of a new one in a folder that exists.
func fileToBe(path string) error {
	if err := fileToMake(path); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(path), cause(err))
	}
	return nil
}

// fileToMake wants a file that exists, or that can be made with the folders above it.
func fileToMake(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a folder")
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && !isLink(path), errors.Is(err, syscall.ENOTDIR):
		return madeIn(filepath.Dir(path))
	}
	return cause(err)
}

// folderToBe wants a folder that exists, or one that can be made.
func folderToBe(path string) error {
	err := folderThere(path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && isLink(path):
		return errors.New("it is a link to nothing")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return madeIn(filepath.Dir(filepath.Clean(path)))
	}
	return err
}

// madeIn wants a folder in which others can be made, with those above it that do not exist.
func madeIn(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && info.IsDir():
			return makesFolders(at)
		case err == nil:
			return fmt.Errorf("%s is no folder", at)
		case isLink(at) && errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is a link to nothing", at)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR), at == filepath.Dir(at):
			return fmt.Errorf("%s: %w", at, cause(err))
		}
	}
}

// makesFolders checks that a folder can be made in another: it makes one and removes it. A full disk is
// no mistake of the command line.
func makesFolders(dir string) error {
	made, err := os.MkdirTemp(dir, ".gradwire-")
	switch {
	case err == nil:
		return os.Remove(made)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return nil
	}
	return fmt.Errorf("no folder can be made in %s: %w", dir, cause(err))
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// cause returns the system's reason without the path.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

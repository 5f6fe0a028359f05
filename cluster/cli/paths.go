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

// pathRule defines the paths that a flag accepts. check returns the reason to refuse a path. An empty path
// is refused unless emptyAllowed is set: an empty flag overrides a variable of the environment.
type pathRule struct {
	accepted     string
	check        func(path string) error
	emptyAllowed bool
}

var (
	dataFolder = pathRule{accepted: "a folder of data sets, which 'gradwire data get' makes", check: checkFolder,
		emptyAllowed: true}
	newFolder  = pathRule{accepted: "a folder, or one that can be made", check: checkCreatableFolder}
	newFile    = pathRule{accepted: "a file in a folder that is there", check: checkFileInFolder}
	oldRecord  = pathRule{accepted: "the folder of a record", check: checkFolderIfExists}
	identities = pathRule{accepted: "the folder of an identity, which 'gradwire identity issue' makes",
		check: checkFolder, emptyAllowed: true}
	noRule = pathRule{check: func(string) error { return nil }, emptyAllowed: true}
)

// pathRules maps flags to their rules: by name, or by command and name where a command has its own.
var pathRules = map[string]pathRule{
	"data": dataFolder, "out": newFolder, "continue": oldRecord, "identity": identities,
	"plan new --data": noRule, // kind of data set
	"eval --data": {accepted: "a folder of data sets, a file of samples, or - for standard input", check: checkData,
		emptyAllowed: true},
	"predict --data":  {accepted: "a file of samples, or - for standard input", check: checkSamples},
	"eval --labels":   {accepted: "a file of labels", check: checkSamples},
	"data get --data": newFolder,
	"plan new --out":  newFile, "plan schema --out": newFile, "predict --out": newFile,
	"report --out":      {accepted: "a file", check: checkCreatableFile},
	"submit --continue": noRule, // id of a submission
}

// storeFlags lists the flags that accept the address of a store, by command.
var storeFlags = map[string][]string{
	"run": {"out", "continue"}, "node": {"out"}, "submit": {"out"}, "fetch": {"out"},
}

// checkPaths checks the paths of all path flags before the command does anything. The error names the
// first flag with a path that the command cannot use, and the accepted paths.
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
		case rule.emptyAllowed:
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

// checkData accepts a folder, a file, or - for standard input.
func checkData(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	return checkSamples(path)
}

// checkSamples accepts a file, or - for standard input.
func checkSamples(path string) error {
	if path == "-" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return errors.New("it is a folder")
	}
	return cause(err)
}

// checkFolder accepts a folder that exists.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return errors.New("it is no folder")
	}
	return cause(err)
}

// checkFolderIfExists accepts a folder, and also a path that does not exist: the command has a better error.
func checkFolderIfExists(path string) error {
	if err := checkFolder(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkFileInFolder accepts a file that exists, or a new file in a folder that exists.
func checkFileInFolder(path string) error {
	if err := checkCreatableFile(path); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(path), cause(err))
	}
	return nil
}

// checkCreatableFile accepts a file that exists, or a new file, whose folders are created too.
func checkCreatableFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a folder")
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && !isLink(path), errors.Is(err, syscall.ENOTDIR):
		return checkParent(filepath.Dir(path))
	}
	return cause(err)
}

// checkCreatableFolder accepts a folder that exists or can be created.
func checkCreatableFolder(path string) error {
	err := checkFolder(path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && isLink(path):
		return errors.New("it is a link to nothing")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return checkParent(filepath.Dir(filepath.Clean(path)))
	}
	return err
}

// checkParent accepts a folder that exists, or can be created with its parents, and can hold new folders.
func checkParent(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && info.IsDir():
			return checkWritable(at)
		case err == nil:
			return fmt.Errorf("%s is no folder", at)
		case isLink(at) && errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is a link to nothing", at)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR), at == filepath.Dir(at):
			return fmt.Errorf("%s: %w", at, cause(err))
		}
	}
}

// checkWritable creates and removes a folder in another one. A full disk is no mistake in the command
// line, so it is not an error here.
func checkWritable(dir string) error {
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

// cause returns the error of the operating system without the path.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

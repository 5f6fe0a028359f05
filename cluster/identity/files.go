package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// maxFile is the most bytes of a file that is read.
const maxFile = 64 << 10

type file struct {
	name string
	text []byte
}

// writeFolder makes a folder with files in it, as a whole or not at all. An empty folder
// in its place is replaced, any other is left as it is.
func writeFolder(dir string, files []file) (err error) {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if err := vacant(dir); err != nil {
		return err
	}
	made, err := os.MkdirTemp(parent, ".identity-")
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	for _, f := range files {
		if err := writeFile(filepath.Join(made, f.name), f.text); err != nil {
			return fmt.Errorf("identity: %w", err)
		}
	}
	if err := syncFolder(made); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	// Both fail where somebody has filled the folder in the meantime.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("identity: %w", err)
	}
	if err := os.Rename(made, dir); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	return syncFolder(parent)
}

// vacant returns an error unless a folder is empty or not there.
func vacant(dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("identity: %s: %w; nothing in it was changed", dir, ErrExists)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("identity: %w", err)
	}
	return nil
}

func writeFile(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readFolder reads files of a folder. Secrets that others may read are refused, and so is
// a folder in which others could replace them.
func readFolder(dir string, names ...string) (map[string][]byte, error) {
	about, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	if !about.IsDir() {
		return nil, fmt.Errorf("identity: %s is no folder", dir)
	}
	if tooOpen(about, 0o022) {
		return nil, fmt.Errorf("identity: %s can be written by others (%v), accepted is 0700: %w", dir, about.Mode(),
			ErrPermissions)
	}
	files := map[string][]byte{}
	for _, name := range names {
		text, err := readFile(filepath.Join(dir, name), strings.HasSuffix(name, ".key"))
		if err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
		files[name] = text
	}
	return files, nil
}

func readFile(name string, secret bool) ([]byte, error) {
	if about, err := os.Stat(name); err != nil {
		return nil, err
	} else if !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no ordinary file", name) // to open a pipe would wait
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	about, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if secret && tooOpen(about, 0o077) {
		return nil, fmt.Errorf("%s can be read by others (%v), accepted is 0600: %w", name, about.Mode(),
			ErrPermissions)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s holds more than %d bytes", name, maxFile)
	}
	return text, nil
}

// tooOpen reports whether others have any of these permissions. Windows keeps its
// permissions elsewhere.
func tooOpen(about fs.FileInfo, permissions fs.FileMode) bool {
	return runtime.GOOS != "windows" && about.Mode().Perm()&permissions != 0
}

package input

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Folder finds and opens files by name: an [os.Root], or [Anywhere].
type Folder interface {
	Stat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
}

// Anywhere is the file system of the machine, where a relative name begins at the working directory.
var Anywhere Folder = anywhere{}

type anywhere struct{}

func (anywhere) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (anywhere) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm) //nolint:gosec // users name their files
}

// OpenFile opens a regular file of a folder to read. Anything else of that name, such as a folder or
// a named pipe, which would block until somebody writes, is an error that says what it is.
func OpenFile(folder Folder, name string) (*os.File, error) {
	about, err := folder.Stat(name)
	if err != nil {
		return nil, opening(err)
	}
	if err := regular(name, about); err != nil {
		return nil, err
	}
	// Without O_NONBLOCK a pipe that has taken the file's place since would block here.
	f, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if about, err = f.Stat(); err == nil {
		err = regular(name, about)
	}
	if err != nil {
		_ = f.Close() // read only: nothing is lost
		return nil, err
	}
	return f, nil
}

// opening names the operation open in the error of a file whose type is unknown.
func opening(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		e.Op = strings.Replace(e.Op, "stat", "open", 1)
	}
	return err
}

// regular returns an error unless a file is one in the narrow sense.
func regular(name string, about fs.FileInfo) error {
	mode := about.Mode()
	what := "no regular file"
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fmt.Errorf("%s: this is a folder%s; accepted is a regular file", name, example(name))
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("%s: this is %s; accepted is a regular file", name, what)
}

// example names a file of a folder.
func example(folder string) string {
	names, err := filepath.Glob(filepath.Join(folder, "*.*"))
	if err != nil || len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", with files such as %s", Quote(filepath.Base(names[0])))
}

//go:build !unix || aix || solaris

package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Hold makes a file that nobody else has made, unless its maker has ended, and holds it until
// release is called. The error is ErrHeld if somebody holds it.
func Hold(path string) (release func() error, err error) {
	for range 2 {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			_, err = f.WriteString(ownPID())
			if err := errors.Join(err, f.Close()); err != nil {
				return nil, errors.Join(err, os.Remove(path))
			}
			return func() error { return os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if alive(path) {
			return nil, ErrHeld
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, ErrHeld
}

// alive reports whether the process goes on that a lock names; one whose name is not yet written
// does.
func alive(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return true
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false // Windows opens the process to find it
	}
	defer func() { _ = p.Release() }()
	err = p.Signal(syscall.Signal(0))
	return err == nil || !errors.Is(err, os.ErrProcessDone)
}

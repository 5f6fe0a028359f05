//go:build unix && !aix && !solaris

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Hold makes a file if need be and holds it until release is called; the system does that when the
// process ends. The error is ErrHeld if somebody holds it.
func Hold(path string) (release func() error, err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666) //nolint:gosec // the mask of the process decides
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrHeld
		}
		switch still := err == nil && isAt(f, path); {
		case err != nil:
			return nil, errors.Join(err, f.Close())
		case !still: // its last holder has removed it after it was opened here
			if err := f.Close(); err != nil {
				return nil, err
			}
			continue
		}
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(ownPID()), 0)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
	}
}

// isAt reports whether an open file is the one of that name.
func isAt(f *os.File, path string) bool {
	one, err := f.Stat()
	if err != nil {
		return false
	}
	two, err := os.Stat(path)
	return err == nil && os.SameFile(one, two)
}

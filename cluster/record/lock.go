package record

import (
	"errors"
	"path/filepath"

	"github.com/gradwire/gradwire/cluster/record/lockfile"
)

// ErrLocked says that another program writes into a folder, or this one already does.
var ErrLocked = lockfile.ErrLocked

// OpenToWrite is Open for a program that adds runs: until Close nobody else may. A folder that
// another program writes into is an ErrLocked that says which.
func OpenToWrite(dir string) (*Folder, error) {
	if _, err := readPlan(dir); err != nil {
		return nil, err
	}
	unlock, err := lockfile.Lock(dir)
	if err != nil {
		return nil, err
	}
	f, err := Open(dir)
	if err == nil {
		err = f.disk.MakeDir(filepath.Join(dir, runsName)) // which a copy without runs does not have
	}
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	f.unlock = unlock
	return f, nil
}

// Close lets others write into the folder; this one saves no further run. It may be called again, and of a folder that was not
// opened to write.
func (f *Folder) Close() error {
	f.mu.Lock()
	unlock := f.unlock
	f.unlock, f.closed = nil, true
	f.mu.Unlock()
	if unlock == nil {
		return nil
	}
	return unlock()
}

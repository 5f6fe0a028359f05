package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrLocked says that another program writes into a folder, or this one already does.
var ErrLocked = errors.New("this record is being written")

// lockName is the file that a program locks while it writes into a folder. It holds the writer's
// process id.
const lockName = ".lock"

// lock locks a folder for writing. The error is an ErrLocked that names the writer if there is one;
// what a dead process has left is no obstacle.
func lock(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, lockName)
	unlock, err = lockFile(path)
	switch {
	case errors.Is(err, ErrLocked):
		return nil, fmt.Errorf("%s: %w by %s", dir, ErrLocked, writer(path))
	case err != nil:
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return unlock, nil
}

// writer says who holds a lock.
func writer(path string) string {
	text, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return "process " + pid
	}
	return "another process"
}

// OpenToWrite is Open for a program that adds runs: until Close nobody else may. A folder that
// another program writes into is an ErrLocked that says which.
func OpenToWrite(dir string) (*Folder, error) {
	if _, err := readPlan(dir); err != nil {
		return nil, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	f, err := Open(dir)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	f.unlock = unlock
	return f, nil
}

// Close lets others write into the folder. It may be called again, and of a folder that was not
// opened to write.
func (f *Folder) Close() error {
	f.mu.Lock()
	unlock := f.unlock
	f.unlock = nil
	f.mu.Unlock()
	if unlock == nil {
		return nil
	}
	return unlock()
}

// ownPID is what a lock says of its holder.
func ownPID() string { return strconv.Itoa(os.Getpid()) + "\n" }

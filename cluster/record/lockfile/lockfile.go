// Package lockfile holds files of which one program at a time is the holder. What a program that
// has ended leaves is no obstacle.
package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrHeld says that another program holds a file, or this one already does.
var ErrHeld = errors.New("this file is held")

// Holder says in words who holds a file.
func Holder(path string) string {
	text, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return "process " + pid
	}
	return "another process"
}

// ErrLocked says that another program writes into a folder, or this one already does.
var ErrLocked = errors.New("this record is being written")

// Name is the file that a program locks while it writes into a folder. It holds the writer's
// process id.
const Name = ".lock"

// Lock locks a folder for writing. The error is an ErrLocked that names the writer if there is one.
func Lock(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, Name)
	unlock, err = Hold(path)
	switch {
	case errors.Is(err, ErrHeld):
		return nil, fmt.Errorf("%s: %w by %s", dir, ErrLocked, Holder(path))
	case err != nil:
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return unlock, nil
}

// ownPID is what a held file says of its holder.
func ownPID() string { return strconv.Itoa(os.Getpid()) + "\n" }

// Package lockfile holds files of which one program at a time is the holder. What a program that
// has ended leaves is no obstacle.
package lockfile

import (
	"errors"
	"os"
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

// ownPID is what a held file says of its holder.
func ownPID() string { return strconv.Itoa(os.Getpid()) + "\n" }

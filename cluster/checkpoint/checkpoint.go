// Package checkpoint writes and reads the checkpoints of a run. A checkpoint is a folder, which is
// written atomically:
//
//	manifest.json        the format, the other files with their SHA-256, a signature, its own SHA-256
//	state.pb             the origin of the state, and its values without vectors: a protos.Checkpoint
//	tensors.safetensors  the vectors, such as parameters, optimizer states and residues
//
// Actors declare their state (see package actors/state). Any build of the program can read it, on any
// machine that has the key of the user or the cluster.
package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/live"
)

// State is a run at an instant.
type State struct {
	// Origin identifies the run.
	live.Origin
	// At is the instant on the run's clock.
	At time.Duration
	// Events is the size of the run's event file at that instant, in bytes.
	Events int64
	// Declared is the state of the virtual world or, in real time, of the worlds of all processes.
	Declared *state.Saved
	// Virtual reports whether the run is in virtual time.
	Virtual bool
}

const (
	// Name is the folder of a run's checkpoints within the folder of the run.
	Name = "checkpoints"
	// Manifest is the file of a checkpoint that lists the checkpoint's other files.
	Manifest = "manifest.json"

	ending  = ".state"
	partial = ".partial"
)

var (
	// ErrDamaged means that a folder is not a checkpoint, or has changed since it was written.
	ErrDamaged = errors.New("the checkpoint is damaged")
	// ErrUnwritten means that a checkpoint could not be written.
	ErrUnwritten = errors.New("writing a checkpoint")
	// ErrForeign means that a checkpoint was signed with the key of another user, machine, cluster or
	// run, or was changed without the key.
	ErrForeign = errors.New("the checkpoint comes from elsewhere or was changed: it is not signed with the key of " +
		"this user or cluster")
	// ErrOld means that an earlier version of this program wrote the checkpoint, in a format that this
	// version cannot read.
	ErrOld = errors.New("the checkpoint was written by an earlier version of gradwire")
	// ErrNew means that a later version of this program wrote the checkpoint. That version can continue
	// the run.
	ErrNew = errors.New("the checkpoint was written by a later version of gradwire: go on with that version")
)

// Folder is where the checkpoints of a run are. Its methods are for one goroutine.
type Folder struct {
	// Written, if not nil, is called when a state is on the disk.
	Written func()
	// Key signs every checkpoint written, and verifies every checkpoint read.
	Key Key

	dir     string
	keep    int
	written chan error // result of the current write
	writing bool
}

// NewFolder returns the folder of a run whose newest checkpoints are kept, at least one.
func NewFolder(run string, keep int) *Folder {
	return &Folder{dir: filepath.Join(run, Name), keep: keep, written: make(chan error, 1)}
}

// Save begins to write a state, which belongs to the folder from now on. It waits for the one
// before, and returns its error.
func (f *Folder) Save(s State) error {
	if err := f.Wait(); err != nil {
		return err
	}
	f.writing = true
	go func() {
		err := f.write(&s)
		if err == nil && f.Written != nil {
			f.Written()
		}
		f.written <- err
	}()
	return nil
}

// Wait waits until what is being written is on the disk.
func (f *Folder) Wait() error {
	if !f.writing {
		return nil
	}
	f.writing = false
	return <-f.written
}

// Remove removes all checkpoints of a run that is finished.
func (f *Folder) Remove() error { return os.RemoveAll(f.dir) }

// write writes a state under another name and renames it when it is on the disk.
func (f *Folder) write(s *State) (err error) {
	path := filepath.Join(f.dir, fmt.Sprintf("%019d%s", int64(s.At), ending))
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %s: %w", ErrUnwritten, path, err)
		}
	}()
	for _, dir := range []string{filepath.Dir(f.dir), f.dir} { // a record that was deleted does not come back
		//nolint:gosec // the mask of the process decides
		if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(path+partial), discard(path)); err != nil { // left over from an earlier write
		return err
	}
	err = f.writeFiles(path+partial, s)
	if err == nil {
		err = os.Rename(path+partial, path)
	}
	if err != nil {
		return err
	}
	return f.tidy()
}

// tidy makes the new name durable, and removes what is not to be kept.
func (f *Folder) tidy() error {
	names, err := f.Names()
	if err != nil {
		return err
	}
	for _, name := range names[min(f.keep, len(names)):] {
		if err := discard(name); err != nil {
			return err
		}
	}
	return syncFolder(f.dir)
}

// discard removes a checkpoint atomically: it renames the folder first.
func discard(name string) error {
	err := os.Rename(name, name+partial)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return cmp.Or(err, os.RemoveAll(name+partial))
}

// syncFolder makes the names in a folder durable.
func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	_ = dir.Sync() // not every system syncs folders
	return dir.Close()
}

// DropOld removes all checkpoints older than the newest complete one.
func (f *Folder) DropOld() error {
	names, err := f.Names()
	for i := slices.IndexFunc(names, complete) + 1; i > 0 && i < len(names); i++ {
		err = errors.Join(err, discard(names[i]))
	}
	return err
}

// Names returns the folders of checkpoints, the newest first. A nil folder has none.
func (f *Folder) Names() (names []string, err error) {
	if f == nil {
		return nil, nil
	}
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ending) {
			names = append(names, filepath.Join(f.dir, e.Name()))
		}
	}
	slices.Reverse(names) // which are sorted
	return names, err
}

// Newest is the newest of all checkpoints, that of which Save was called last among them, if it
// could be written; empty if there is none.
func (f *Folder) Newest() string {
	if f == nil || f.Wait() != nil {
		return ""
	}
	names, err := f.Names()
	if err != nil || len(names) == 0 {
		return ""
	}
	return names[0]
}

// Read reads a checkpoint. It returns ErrDamaged, ErrForeign, ErrOld or ErrNew for an unusable one.
func (f *Folder) Read(name string) (State, error) {
	s, err := f.read(name)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return s, err
}

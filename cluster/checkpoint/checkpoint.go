// Package checkpoint keeps the states of a run in files, each whole or not at all, with a checksum
// and a signature.
// The states themselves are images, see package image: a virtual world makes them, and goes on from
// them.
package checkpoint

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// State is a run at an instant.
type State struct {
	// At is the instant on the run's clock.
	At time.Duration
	// Real says that it is of a run in real time.
	Real bool
	// Events is how many bytes of events were written until then.
	Events int64
	// World is what the world has saved.
	World []byte
}

const (
	// Name is the folder of a run's checkpoints in the run's.
	Name    = "checkpoints"
	ending  = ".state"
	partial = ".partial"
	magic   = "gradwire checkpoint 3\n"
	header  = len(magic) + 2*8 + 1  // and two numbers: the instant, and the bytes of events; and Real
	trailer = sha256.Size + sumSize // the signature of all before it, and a checksum of all before that
	sumSize = 8
)

var (
	// ErrDamaged means that a file is no checkpoint, or has changed since it was written.
	ErrDamaged = errors.New("the checkpoint is damaged")
	// ErrUnwritten means that a checkpoint could not be written.
	ErrUnwritten = errors.New("writing a checkpoint")
	// ErrForeign means that a checkpoint was signed with the key of another user, machine, cluster or
	// run.
	ErrForeign = errors.New("the checkpoint comes from elsewhere or was changed: it is not signed with the key of " +
		"this user or cluster")
)

// Folder is where the checkpoints of a run are. Its methods are for one goroutine.
type Folder struct {
	// Written, if not nil, is called when a state is on the disk.
	Written func()
	// Key signs every checkpoint written, and verifies every checkpoint read.
	Key Key

	dir     string
	keep    int
	written chan error // of the file that is being written
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
		err := f.write(s)
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
func (f *Folder) write(s State) (err error) {
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
	file, err := os.Create(path + partial)
	if err != nil {
		return err
	}
	for _, part := range f.encode(&s) {
		if err == nil {
			_, err = file.Write(part)
		}
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(path+partial, path)
	}
	if err != nil {
		return err
	}
	return f.tidy()
}

// encode returns the parts of a state's file.
func (f *Folder) encode(s *State) [][]byte {
	head := []byte(magic)
	head = binary.LittleEndian.AppendUint64(head, uint64(s.At))
	head = binary.LittleEndian.AppendUint64(head, uint64(s.Events))
	if s.Real {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	end := f.Key.sign(head, s.World)
	return [][]byte{head, s.World, binary.LittleEndian.AppendUint64(end, sum(head, s.World, end))}
}

func sum(parts ...[]byte) uint64 {
	h := xxhash.New()
	for _, part := range parts {
		_, _ = h.Write(part)
	}
	return h.Sum64()
}

// tidy makes the new name durable, and removes what is not to be kept.
func (f *Folder) tidy() error {
	names, err := f.Names()
	if err != nil {
		return err
	}
	for _, name := range names[min(f.keep, len(names)):] {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	_ = dir.Sync() // not every system syncs folders
	return dir.Close()
}

// Names returns the files of checkpoints, the newest first. A nil folder has none.
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

// Read reads a checkpoint. It returns ErrDamaged or ErrForeign if the file cannot be trusted.
func (f *Folder) Read(name string) (State, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return State{}, err
	}
	if len(b) < header+trailer || !bytes.HasPrefix(b, []byte(magic)) {
		return State{}, fmt.Errorf("%s: %w: its beginning or its end is missing", name, ErrDamaged)
	}
	signed, end := b[:len(b)-sumSize], b[len(b)-sumSize:]
	if sum(signed) != binary.LittleEndian.Uint64(end) {
		return State{}, fmt.Errorf("%s: %w: its checksum differs", name, ErrDamaged)
	}
	body, signature := signed[:len(signed)-sha256.Size], signed[len(signed)-sha256.Size:]
	if !hmac.Equal(signature, f.Key.sign(body)) {
		return State{}, fmt.Errorf("%s: %w", name, ErrForeign)
	}
	numbers := body[len(magic):header]
	return State{
		At:     time.Duration(binary.LittleEndian.Uint64(numbers)),
		Events: int64(binary.LittleEndian.Uint64(numbers[8:])),
		Real:   numbers[2*8] == 1,
		World:  body[header:],
	}, nil
}

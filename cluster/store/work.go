package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gradwire/gradwire/cluster/record/lockfile"
	"github.com/gradwire/gradwire/cluster/refusal"
)

// Mode says what a path of a store must hold.
type Mode int

const (
	// New asks for a path that holds nothing.
	New Mode = iota
	// Continue asks for a path that holds a record.
	Continue
	// Either accepts both.
	Either
)

// openToWrite opens a store to write. The manifest is nil if there is none.
func openToWrite(ctx context.Context, at Address, mode Mode, notify func(string)) (Store, *manifest, error) {
	s, err := at.Open(notify)
	if err != nil {
		return nil, nil, err
	}
	m, err := readManifest(ctx, s, at)
	switch {
	case err == nil && mode == New:
		return nil, nil, refusal.Input(fmt.Errorf("%v: %w: it holds a record; --continue goes on with it, or name "+
			"another path", at, ErrExists))
	case errors.Is(err, ErrNoRecord) && mode == Continue:
		return nil, nil, err
	case err != nil && !errors.Is(err, ErrNoRecord):
		return nil, nil, err
	case err == nil:
		return s, m, nil
	}
	keys, err := s.List(ctx, "")
	for _, key := range keys {
		if !strings.HasPrefix(key, objectsPrefix) { // these an interrupted upload has left
			return nil, nil, refusal.Input(fmt.Errorf("%v: %w: it holds %s", at, ErrExists, key))
		}
	}
	return s, nil, err
}

// Copy mirrors a folder to a path of a store from now on. With New the path must be empty; otherwise
// a record that it holds must have the same file of the given name, and is replaced.
func Copy(ctx context.Context, at Address, dir, same string, mode Mode, notify func(string)) (*Mirror, error) {
	s, before, err := openToWrite(ctx, at, mode, notify)
	if err != nil {
		return nil, err
	}
	m := newMirror(at, s, dir, rand.Text(), before, notify)
	if before != nil {
		text, err := os.ReadFile(filepath.Join(dir, same))
		if err != nil {
			return nil, err
		}
		for _, f := range before.Files {
			if f.Name == same && (len(f.Objects) != 1 || f.Objects[0] != objectOf(same, text)) {
				return nil, refusal.Input(fmt.Errorf("%v holds another record: its %s differs from that in %s; name "+
					"another path", at, same, dir))
			}
		}
	}
	return m, m.Start(ctx)
}

// Work makes a working folder of this machine for a path of a store, with what the path holds. If the
// process dies, the next Work on this machine goes on with the folder, unless another program has
// written to the path since. Start has the folder mirrored, and Close removes it.
func Work(ctx context.Context, at Address, mode Mode, notify func(string)) (_ *Mirror, err error) {
	root, err := workRoot(at)
	if err != nil {
		return nil, err
	}
	unlock, err := lockfile.Lock(root)
	if errors.Is(err, lockfile.ErrLocked) {
		err = refusal.Input(fmt.Errorf("%v is being written: %w", at, err))
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unlock())
		}
	}()
	s, before, err := openToWrite(ctx, at, mode, notify)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "work", path.Base("/"+at.Path))
	if at.Path == "" {
		dir = filepath.Join(root, "work", at.Bucket)
	}
	word := filepath.Join(root, "writer")
	writer, _ := os.ReadFile(word) // no file is no writer
	if before == nil || before.Writer != string(writer) {
		writer = []byte(rand.Text())
		if err := os.RemoveAll(filepath.Join(root, "work")); err != nil {
			return nil, err
		}
		if before != nil {
			err = download(ctx, s, at, before, dir, nil)
		}
		if err == nil {
			err = os.WriteFile(word, writer, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	m := newMirror(at, s, dir, string(writer), before, notify)
	m.release = func(remove bool) error {
		if !remove {
			return unlock()
		}
		return errors.Join(os.RemoveAll(filepath.Join(root, "work")), os.Remove(word), unlock(), os.Remove(root))
	}
	return m, nil
}

// Writable writes an object to the store and deletes it, so that a store that accepts no record is
// noticed before there is one.
func (m *Mirror) Writable(ctx context.Context) error {
	const probe = objectsPrefix + "probe"
	if err := m.store.Put(ctx, probe, []byte("probe")); err != nil {
		return err
	}
	return m.store.Delete(ctx, probe)
}

// workRoot makes the folder of this machine that belongs to a path of a store.
func workRoot(at Address) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(at.String()))
	root := filepath.Join(cache, "gradwire", "stores", fmt.Sprintf("%x", sum[:8]))
	return root, os.MkdirAll(root, 0o700)
}

// Local returns a folder or file of this machine with what an argument names: a path, or the address
// of a record in a store, of a folder in it, or of a run. Files for which skip returns true are left out.
// remove removes what was downloaded.
func Local(ctx context.Context, text string, skip func(name string) bool, notify func(string)) (local string,
	remove func() error, err error) {
	none := func() error { return nil }
	if text == "" {
		return text, none, nil
	}
	at, err := Parse(text)
	if err != nil {
		return "", nil, refusal.Input(err)
	}
	if at.Bucket == "" && !inFolder(at) {
		return at.Path, none, nil // if there is nothing, the command says so
	}
	s, m, record, below, err := find(ctx, at, notify)
	if err != nil {
		return "", nil, err
	}
	want := chosen(below, skip)
	if !hasFile(m, below) {
		return "", nil, refusal.Input(
			fmt.Errorf("%v: the record at %v has no such file or folder; it has %s", at, record,
				strings.Join(names(m), ", ")),
		)
	}
	temporary, err := os.MkdirTemp("", "gradwire-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(temporary) }
	dir := filepath.Join(temporary, record.Bucket, filepath.Base(filepath.FromSlash("/"+record.Path)))
	if err := download(ctx, s, record, m, dir, want); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return filepath.Join(dir, filepath.FromSlash(below)), remove, nil
}

// inFolder reports whether a path of this machine leads into a record that a folder stores. A file or
// folder of that name is what the path leads to otherwise.
func inFolder(at Address) bool {
	if _, err := os.Stat(at.Path); err == nil {
		return hasManifest(at.Path)
	}
	for up, _, ok := at.parent(); ok; up, _, ok = up.parent() {
		if hasManifest(up.Path) {
			return true
		}
	}
	return false
}

// find returns the record that an address lies in, and the path below it.
func find(ctx context.Context, at Address, notify func(string)) (s Store, m *manifest, record Address, below string,
	err error) {
	var first error
	for record = at; ; {
		if s, err = record.Open(notify); err != nil {
			return nil, nil, record, "", err
		}
		m, err = readManifest(ctx, s, record)
		if !errors.Is(err, ErrNoRecord) {
			return s, m, record, below, err
		}
		if first == nil {
			first = err
		}
		up, name, ok := record.parent()
		if !ok {
			return nil, nil, at, "", first
		}
		record, below = up, path.Join(name, below)
	}
}

// chosen returns whether a file is downloaded for a path in a record: all below the path, and of the
// record of a run what is not another run's.
func chosen(below string, skip func(string) bool) func(name string) bool {
	top, _, ofRun := strings.Cut("/"+below+"/", "/runs/")
	top = strings.Trim(top, "/")
	return func(name string) bool {
		switch {
		case skip != nil && skip(name):
			return false
		case within(name, below):
			return true
		}
		return ofRun && within(name, top) && !strings.Contains(strings.TrimPrefix(name[len(top):], "/"), "/")
	}
}

// within reports whether a name is a path, or lies below it.
func within(name, dir string) bool {
	return dir == "" || name == dir || strings.HasPrefix(name, dir+"/")
}

// hasFile reports whether a record has files at a path or below.
func hasFile(m *manifest, below string) bool {
	for _, f := range m.Files {
		if within(f.Name, below) {
			return true
		}
	}
	return false
}

// names are the files and folders at the top of a record, for errors.
func names(m *manifest) (all []string) {
	seen := map[string]bool{}
	for _, f := range m.Files {
		name, _, folder := strings.Cut(f.Name, "/")
		if folder {
			name += "/"
		}
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}

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

// Mode says whether a path of a store must be empty.
type Mode int

const (
	// MustBeEmpty accepts a path that holds nothing.
	MustBeEmpty Mode = iota
	// MustHoldRecord accepts a path that holds a record.
	MustHoldRecord
	// MayHoldRecord accepts both.
	MayHoldRecord
)

// openToWrite opens a store to write, and returns the manifest of the record under the address; nil if there
// is none.
func openToWrite(ctx context.Context, at Address, mode Mode, notify func(string)) (Store, *manifest, error) {
	s, err := at.Open(notify)
	if err != nil {
		return nil, nil, err
	}
	m, err := readManifest(ctx, s, at)
	switch {
	case err == nil && mode == MustBeEmpty:
		return nil, nil, refusal.Input(fmt.Errorf("%v: %w", at, ErrHoldsRecord))
	case errors.Is(err, ErrNoRecord) && mode == MustHoldRecord:
		return nil, nil, err
	case err != nil && !errors.Is(err, ErrNoRecord):
		return nil, nil, err
	case err == nil:
		return s, m, nil
	}
	keys, err := s.List(ctx, "")
	for _, key := range keys {
		if !strings.HasPrefix(key, objectsPrefix) { // an interrupted upload leaves objects without a manifest
			return nil, nil, refusal.Input(fmt.Errorf("%v: %w: it holds %s", at, ErrExists, key))
		}
	}
	return s, nil, err
}

// UploadFolder uploads a folder to a path of a store, and its changes from then on. If the path holds a
// record, the file named same must be equal in both.
func UploadFolder(ctx context.Context, at Address, dir, same string, mode Mode,
	notify func(string)) (*Uploader, error) {
	s, before, err := openToWrite(ctx, at, mode, notify)
	if err != nil {
		return nil, err
	}
	u := newUploader(at, s, dir, rand.Text(), before, notify)
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
	return u, u.Start(ctx)
}

// OpenWorkFolder makes a working folder on this machine for a path of a store, and downloads the record
// under the path. If the process dies, the next OpenWorkFolder on this machine reuses the folder, unless
// another program has written to the path since. Start uploads the folder, and Close removes it.
func OpenWorkFolder(ctx context.Context, at Address, mode Mode, notify func(string)) (_ *Uploader, err error) {
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
	writer, _ := os.ReadFile(word) // empty if the folder is new
	if before == nil || before.Writer != string(writer) {
		writer = []byte(rand.Text())
		if err := os.RemoveAll(filepath.Join(root, "work")); err != nil {
			return nil, err
		}
		if before != nil {
			err = downloadRecord(ctx, s, at, before, dir, nil)
		}
		if err == nil {
			err = os.WriteFile(word, writer, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	u := newUploader(at, s, dir, string(writer), before, notify)
	u.release = func(remove bool) error {
		if !remove {
			return unlock()
		}
		return errors.Join(os.RemoveAll(filepath.Join(root, "work")), os.Remove(word), unlock(), os.Remove(root))
	}
	return u, nil
}

// workRoot makes the folder on this machine for the working folder of a path of a store.
func workRoot(at Address) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(at.String()))
	root := filepath.Join(cache, "gradwire", "stores", fmt.Sprintf("%x", sum[:8]))
	return root, os.MkdirAll(root, 0o700)
}

// Download returns a path on this machine. If text is the address of a record, of a run, or of a file or
// folder in a record, it downloads that, without the files for which skip returns true, and remove
// deletes the downloaded files. Any other text is such a path already.
func Download(ctx context.Context, text string, skip func(name string) bool, notify func(string)) (local string,
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
		return at.Path, none, nil // it need not exist
	}
	s, m, record, below, err := findRecord(ctx, at, notify)
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
	if err := downloadRecord(ctx, s, record, m, dir, want); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return filepath.Join(dir, filepath.FromSlash(below)), remove, nil
}

// inFolder reports whether a path on this machine names a record in a folder store, or a part of one. An
// existing file or folder without a manifest is no such path.
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

// findRecord returns the record that contains an address, and the path of the address in the record.
func findRecord(ctx context.Context, at Address,
	notify func(string)) (s Store, m *manifest, record Address, below string, err error) {
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

// chosen returns the filter of the files to download for a path in a record: all files below the path,
// and for a run also the files at the top of its record.
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

// names lists the files and folders at the top of a record.
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

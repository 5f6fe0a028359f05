package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gradwire/gradwire/cluster/record/strict"
	"github.com/gradwire/gradwire/cluster/refusal"
)

const (
	// manifestName is the object by which a record becomes visible; objects lie under objectsPrefix.
	manifestName  = "manifest.json"
	objectsPrefix = "objects/"
	// format is the version of the layout. A change that older readers would misread has another.
	format = "gradwire store 1"
	// manifestHead begins the manifest of every version.
	manifestHead = "{\n \"format\": \"gradwire store "
	// partSize bounds an object in bytes: a larger file becomes several objects. parallel is the number of
	// files copied at a time, each with one object in memory.
	partSize = 16 << 20
	parallel = 4
	// manifestLimit bounds a manifest that is read.
	manifestLimit = 256 << 20
)

// manifest lists the files of a record.
type manifest struct {
	Format string `json:"format"`
	// Writer identifies the uploaded folder: a random word.
	Writer string `json:"writer"`
	Files  []file `json:"files"`
	// Sum is the SHA-256 of the manifest without it.
	Sum string `json:"sha256"`
}

// file is a file of a record: the concatenation of its objects.
type file struct {
	// Name is its path within the record, with slashes.
	Name    string   `json:"name"`
	Objects []object `json:"objects"`
}

// object is an object of the store.
type object struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// objectOf describes a part of a file. Its key shows the file's name to people who list the store.
func objectOf(name string, content []byte) object {
	sum := sha256.Sum256(content)
	text := hex.EncodeToString(sum[:])
	dir, base := path.Split(name)
	return object{Key: objectsPrefix + dir + text[:16] + "-" + base, Bytes: int64(len(content)), SHA256: text}
}

// encode returns the text of a manifest with its checksum.
func (m manifest) encode() []byte {
	m.Sum = ""
	text, _ := json.Marshal(m) // never fails for strings and numbers
	sum := sha256.Sum256(text)
	m.Sum = hex.EncodeToString(sum[:])
	text, _ = json.MarshalIndent(m, "", " ")
	return append(text, '\n')
}

// readManifest reads the manifest of a record. The error wraps ErrNoRecord if there is none.
func readManifest(ctx context.Context, s Store, at Address) (*manifest, error) {
	text, err := s.Get(ctx, manifestName, manifestLimit)
	if errors.Is(err, ErrNotFound) {
		return nil, refusal.Input(fmt.Errorf("%v: %w: %w", at, ErrNoRecord, err))
	}
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	damaged := func(format string, args ...any) error {
		return refusal.Input(fmt.Errorf("%v: %w: %s", at.Join(manifestName), ErrDamaged, fmt.Sprintf(format, args...)))
	}
	if err := strict.DecodeKnown(text, m); err != nil {
		return nil, damaged("line %v", err)
	}
	if m.Format != format {
		return nil, refusal.Input(fmt.Errorf("%v has the format %.40q; this program reads %q", at.Join(manifestName),
			m.Format, format))
	}
	if string(m.encode()) != string(text) {
		return nil, damaged("its checksum differs")
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) || path.Clean(f.Name) != f.Name {
			return nil, damaged("file %.80q", f.Name)
		}
		for _, o := range f.Objects {
			if !strings.HasPrefix(o.Key, objectsPrefix) || path.Clean(o.Key) != o.Key || o.Bytes < 0 ||
				o.Bytes > partSize {
				return nil, damaged("object %.80q of %d bytes", o.Key, o.Bytes)
			}
		}
	}
	return m, nil
}

// keys returns the keys of all objects in the manifest.
func (m *manifest) keys() map[string]bool {
	all := map[string]bool{}
	for _, f := range m.Files {
		for _, o := range f.Objects {
			all[o.Key] = true
		}
	}
	return all
}

// get reads an object and verifies it.
func (o *object) get(ctx context.Context, s Store, at Address) ([]byte, error) {
	content, err := s.Get(ctx, o.Key, o.Bytes)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != o.SHA256 {
		return nil, refusal.Input(fmt.Errorf("%v: %w: it has %d bytes with SHA-256 %x, the manifest says %d with %s",
			at.Join(o.Key), ErrDamaged, len(content), sum, o.Bytes, o.SHA256))
	}
	return content, nil
}

// downloadRecord writes the wanted files of a record into a folder. If an uploader replaces the manifest and
// deletes objects of the previous one meanwhile, downloadRecord starts again with the new manifest.
func downloadRecord(ctx context.Context, s Store, at Address, m *manifest, dir string,
	want func(name string) bool) error {
	for {
		err := m.downloadFiles(ctx, s, at, dir, want)
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		newer, e := readManifest(ctx, s, at)
		if e != nil || newer.Sum == m.Sum {
			return fmt.Errorf("%w, which the manifest lists", err)
		}
		if e := os.RemoveAll(dir); e != nil {
			return e
		}
		m = newer
	}
}

func (m *manifest) downloadFiles(ctx context.Context, s Store, at Address, dir string, want func(string) bool) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // closing a folder loses no data
	wanted := slices.DeleteFunc(slices.Clone(m.Files), func(f file) bool { return want != nil && !want(f.Name) })
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range wanted {
		g.Go(func() error { return wanted[i].download(ctx, s, at, root) })
	}
	return g.Wait()
}

// download writes a file of a record into a folder.
func (f *file) download(ctx context.Context, s Store, at Address, dir *os.Root) error {
	name := filepath.FromSlash(f.Name)
	if err := dir.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	out, err := dir.Create(name)
	if err != nil {
		return err
	}
	for _, o := range f.Objects {
		var content []byte
		if content, err = o.get(ctx, s, at); err == nil {
			_, err = out.Write(content)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, out.Close())
}

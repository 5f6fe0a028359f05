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
	"sync"

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
	// partSize is the most bytes of an object; a larger file is several. A part is in memory while it is
	// copied, and parallel is how many are.
	partSize = 16 << 20
	parallel = 4
	// manifestLimit bounds a manifest that is read.
	manifestLimit = 256 << 20
)

// manifest lists the files of a record.
type manifest struct {
	Format string `json:"format"`
	// Writer is a random word of the working folder that the record is copied from.
	Writer string `json:"writer"`
	Files  []file `json:"files"`
	// Sum is the SHA-256 of the manifest without it.
	Sum string `json:"sha256"`
}

// file is a file of a record, whose content is that of its objects one after the other.
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
	text, _ := json.Marshal(m) // strings and numbers, which can always be written
	sum := sha256.Sum256(text)
	m.Sum = hex.EncodeToString(sum[:])
	text, _ = json.MarshalIndent(m, "", " ")
	return append(text, '\n')
}

// readManifest reads the manifest of a record. ErrNoRecord stands for a missing one.
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
	if err := json.Unmarshal(text, m); err != nil {
		return nil, damaged("%v", err)
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

// keys are those of a manifest's objects.
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

// download writes the wanted files of a record into a folder. The writer may replace the manifest and
// delete objects of the previous one meanwhile; then the newer record is read.
func download(ctx context.Context, s Store, at Address, m *manifest, dir string, want func(name string) bool) error {
	for {
		err := m.download(ctx, s, at, dir, want)
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

func (m *manifest) download(ctx context.Context, s Store, at Address, dir string, want func(string) bool) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	wanted := slices.DeleteFunc(slices.Clone(m.Files), func(f file) bool { return want != nil && !want(f.Name) })
	return each(ctx, len(wanted), func(ctx context.Context, i int) error {
		f := &wanted[i]
		name := filepath.FromSlash(f.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		out, err := root.Create(name)
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
	})
}

// each calls do for each of n, several at a time, and returns the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan int, n)
	for i := range n {
		queue <- i
	}
	close(queue)
	var workers sync.WaitGroup
	for range min(parallel, n) {
		workers.Go(func() {
			for i := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder is a store in a folder of this machine or of a file server.
type folder struct{ dir string }

var _ Store = folder{}

func (f folder) path(key string) string { return filepath.Join(f.dir, filepath.FromSlash(key)) }

// Put writes a file under another name, and renames it once it is on the disk.
func (f folder) Put(_ context.Context, key string, content []byte) error {
	name := f.path(key)
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), os.Remove(file.Name()))
	}
	return nil
}

// Get reads a file.
func (f folder) Get(_ context.Context, key string, limit int64) ([]byte, error) {
	file, err := os.Open(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", f.path(key), ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return readAll(file, f.path(key), limit)
}

// List lists the files in the folder and its subfolders.
func (f folder) List(_ context.Context, prefix string) (keys []string, err error) {
	err = filepath.WalkDir(f.dir, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		key, err := filepath.Rel(f.dir, name)
		if key = filepath.ToSlash(key); strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
		return err
	})
	return sorted(keys), err
}

// Delete removes a file and the folders that it leaves empty.
func (f folder) Delete(_ context.Context, key string) error {
	name := f.path(key)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(name); len(dir) > len(f.dir) && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return nil
}

// readAll reads an object. An object of more bytes than the limit is damaged.
func readAll(r io.Reader, name string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: %w: it has more than %d bytes", name, ErrDamaged, limit)
	}
	return b, err
}

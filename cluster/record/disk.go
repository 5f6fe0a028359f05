package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// disk is where a folder writes, so that tests can let it be full.
type disk interface {
	// Create opens a file to be written behind so many bytes of it that stay.
	Create(path string, stay int64) (diskFile, error)
	MakeDir(path string) error
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes the renames in a folder durable.
	SyncDir(path string) error
}

type diskFile interface {
	io.WriteCloser
	Sync() error
}

// osDisk is the operating system's.
type osDisk struct{}

func (osDisk) Create(path string, stay int64) (diskFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	if there, err := f.Seek(0, io.SeekEnd); err != nil || there < stay {
		return nil, errors.Join(err, fmt.Errorf("%d bytes are there, %d were written", there, stay), f.Close())
	}
	return f, f.Truncate(stay)
}

func (osDisk) MakeDir(path string) error    { return os.MkdirAll(path, 0o777) }
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Remove(path string) error     { return os.Remove(path) }

func (osDisk) SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return cmp.Or(dir.Sync(), dir.Close())
}

// partial is the ending of files that are still being written.
const partial = ".partial"

// replace writes a file under another name and renames it when it is whole and on the disk, so the
// name always leads to a whole file.
func replace(d disk, path string, write func(io.Writer) error) error {
	f, err := d.Create(path+partial, 0)
	if err != nil {
		return writing(path, err)
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = commit(d, path)
	}
	return writing(path, err)
}

// commit gives a synced file its final name.
func commit(d disk, path string) error {
	if err := d.Rename(path+partial, path); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(path))
}

// writing names the file in an error of writing it.
func writing(path string, err error) error {
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// WriteFile writes a file as all of a record is written: under another name first,
// so that only a whole file has the final one.
func WriteFile(path string, data []byte) error { return writeFile(osDisk{}, path, data) }

func writeFile(d disk, path string, data []byte) error {
	return replace(d, path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// writeJSON writes a value in lines that can be read.
func writeJSON(d disk, path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return writing(path, err)
	}
	return writeFile(d, path, append(text, '\n'))
}

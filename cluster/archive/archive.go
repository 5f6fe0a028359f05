// Package archive sends the files of a folder over a stream, as a tar archive.
package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Pack writes an archive of the files of a folder that are wanted, by their names within it with
// slashes; nil wants all. What is no file is left out.
func Pack(to io.Writer, dir string, wanted func(name string, info fs.FileInfo) bool) error {
	out := tar.NewWriter(to)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if path != dir && errors.Is(err, fs.ErrNotExist) {
			return nil // it was there a moment ago
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if wanted == nil {
			return packFile(out, path, name)
		}
		switch info, err := e.Info(); {
		case errors.Is(err, fs.ErrNotExist): // it was there a moment ago
			return nil
		case err != nil:
			return err
		case wanted(name, info):
			return packFile(out, path, name)
		}
		return nil
	})
	if err == nil {
		_, err = os.Lstat(dir) // under another name by now, what was missed is there
	}
	if err == nil {
		err = out.WriteHeader(&tar.Header{Name: end, Mode: 0o644, Format: tar.FormatPAX})
	}
	if err != nil {
		return err // without an end nobody takes it for whole
	}
	return out.Close()
}

// end is the name of the last entry of an archive, which is no file: a stream that breaks off
// between two files has none.
const end = ".end"

// packFile writes one file as it is now.
func packFile(out *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := &tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := out.WriteHeader(head); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}

// Limits bound an archive that somebody else has made.
type Limits struct {
	// Files is how many there are at most, and Bytes how large they are together.
	Files int
	Bytes int64
	// Name bounds the length of a file name in bytes, Depth the number of nested folders.
	Name, Depth int
}

// Accepted are the bounds of the archive of a record.
var Accepted = Limits{Files: 1 << 20, Bytes: 64 << 30, Name: 1 << 10, Depth: 16}

// usage is how much of the limits an archive has used up.
type usage struct {
	files int
	bytes int64
}

// add returns an error for the next file of an archive if it is beyond the limits.
func (l *Limits) add(u *usage, head *tar.Header) error {
	u.files++
	switch depth := strings.Count(head.Name, "/"); {
	case len(head.Name) > l.Name:
		return fmt.Errorf("the record has a file whose name %.40q... takes %d bytes; accepted are at most %d",
			head.Name, len(head.Name), l.Name)
	case depth > l.Depth:
		return fmt.Errorf("the record has file %.80q in %d folders; accepted are at most %d", head.Name, depth, l.Depth)
	case u.files > l.Files:
		return fmt.Errorf("the record has more than %d files, which is as many as are accepted", l.Files)
	case head.Size > l.Bytes-u.bytes:
		return fmt.Errorf("the record has file %.80q of %d bytes behind %d bytes of others; accepted are at most %d "+
			"in all", head.Name, head.Size, u.bytes, l.Bytes)
	}
	u.bytes += head.Size
	return nil
}

// Unpack writes the files of an archive into a folder, and nowhere else. None of them may be there.
// It refuses an archive beyond the limits before it writes the file that is.
func Unpack(from io.Reader, dir string, most Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	in := tar.NewReader(from)
	var used usage
	for whole := false; ; {
		head, err := in.Next()
		switch {
		case errors.Is(err, io.EOF) && whole:
			return nil
		case err != nil:
			return fmt.Errorf("the record is cut short: %w", err)
		case head.Name == end:
			whole = true
			continue
		case head.Typeflag != tar.TypeReg:
			return fmt.Errorf("the record holds %.80q, which is no file", head.Name)
		}
		if err := most.add(&used, head); err != nil {
			return err
		}
		name := filepath.FromSlash(head.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
		if err != nil {
			return err
		}
		_, err = io.CopyN(f, in, head.Size)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}

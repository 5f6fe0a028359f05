// Package published knows the published data sets that Gradwire reads by name: what they are,
// which files they consist of, where these lie on disk, and how to download them.
package published

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gradwire/gradwire/datasets/input"
)

// Set is a published data set.
type Set struct {
	// Name is what a plan calls it, and its folder.
	Name string
	// About is one sentence with its authors and year.
	About string
	// Samples and Tests are the numbers of training and published test samples.
	Samples, Tests int
	// Features is the number of columns or pixels as published.
	Features int
	// Classes is the number of labels.
	Classes int
	// Licence is what its publishers say.
	Licence string
	// Page is where the set is described.
	Page string
	// Files are all that it consists of.
	Files []File
	// Mirrors are addresses to which the name of a download is appended.
	Mirrors []string
}

// File is a file of a set.
type File struct {
	// Name is what the file is called; it may be compressed, with .gz behind the name.
	Name string
	// Size counts the bytes of the uncompressed content, SHA256 is its checksum.
	Size   int64
	SHA256 string
	// Packed describes the compressed file that the mirrors carry; with none they carry the
	// content.
	Packed *Download
}

// Download is a file as mirrors carry it.
type Download struct {
	Name   string
	Size   int64
	SHA256 string
}

// Download returns what mirrors carry for the file.
func (f *File) Download() Download {
	if f.Packed != nil {
		return *f.Packed
	}
	return Download{f.Name, f.Size, f.SHA256}
}

// Find returns the set of that name, and false if there is none.
func Find(name string) (*Set, bool) {
	i := slices.IndexFunc(sets, func(s Set) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &sets[i], true
}

// All returns the sets.
func All() []Set { return slices.Clone(sets) }

// Bytes returns the size of all downloads.
func (s *Set) Bytes() (n int64) {
	for _, f := range s.Files {
		n += f.Download().Size
	}
	return n
}

// address returns where a mirror has a download.
func address(mirror string, d Download) string {
	return strings.TrimSuffix(mirror, "/") + "/" + url.PathEscape(d.Name)
}

// Locate returns the path of a file of the set: in dir/<set> or dir, without or with .gz. A
// missing file is an fs.ErrNotExist that says where it was looked for and how to get it.
func (s *Set) Locate(dir, file string) (string, error) {
	for _, folder := range []string{filepath.Join(dir, s.Name), dir} {
		for _, suffix := range []string{"", ".gz"} {
			path := filepath.Join(folder, file+suffix)
			info, err := os.Stat(path)
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // a9a may be a file
			case err != nil:
				return "", fmt.Errorf("data set %s: %w", s.Name, err)
			case !info.IsDir(): // or a folder
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("data set %s: %s (or %s.gz) is neither in %s nor in %s; get it with 'gradwire data get "+
		"%s', or from %s: %w",
		s.Name, file, file, filepath.Join(dir, s.Name), filepath.Clean(dir), s.Name, s.Page, fs.ErrNotExist)
}

// Open locates a file of the named set and gives it to read; see Locate. It panics if there
// is no such set.
func Open[T any](dir, set, file string, read func(r io.Reader, name string) (T, error)) (content T, found input.File,
	err error) {
	s, ok := Find(set)
	if !ok {
		panic("published: no data set " + set)
	}
	path, err := s.Locate(dir, file)
	if err != nil {
		return content, found, err
	}
	content, found, err = input.Open(path, read)
	found.Name = file
	return content, found, err
}

// Verify compares files of the named set, as Open describes them, with those that were published.
// Files that the set does not have are passed over. It panics if there is no such set.
func Verify(set string, files []input.File) error {
	s, ok := Find(set)
	if !ok {
		panic("published: no data set " + set)
	}
	for _, found := range files {
		for _, f := range s.Files {
			if f.Name != found.Name {
				continue
			}
			if err := f.compare(found); err != nil {
				return fmt.Errorf("data set %s: %w", set, err)
			}
		}
	}
	return nil
}

// Check locates every file of the set in dir and compares its content with the checksum. It returns
// the files that are in order, and the first error: a file that is missing, an fs.ErrNotExist, or
// one that is not what was published.
func (s *Set) Check(dir string) (paths []string, err error) {
	for _, f := range s.Files {
		path, err := s.Locate(dir, f.Name)
		if err != nil {
			return paths, err
		}
		_, found, err := input.Open(path, skim)
		if err == nil {
			err = f.compare(found)
		}
		if err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// skim reads a file, which may be compressed, to its end.
func skim(r io.Reader, name string) (none struct{}, err error) {
	content, err := input.New(r, name, nil)
	if err != nil {
		return none, err
	}
	n, err := io.Copy(io.Discard, struct{ io.Reader }{content})
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return none, fmt.Errorf("%s: offset %d: the file is damaged: %w; %s", name, n, err, again)
	case err != nil:
		return none, fmt.Errorf("%s: offset %d: %w", name, n, err)
	}
	return none, nil
}

// compare returns an error unless what was found is the published file.
func (f *File) compare(found input.File) error {
	switch path := found.Path; {
	case found.Size < f.Size:
		return fmt.Errorf("%s: the file is cut short: %d bytes of content; the published file has %d; %s", path,
			found.Size, f.Size, again)
	case found.Size > f.Size:
		return fmt.Errorf("%s: %d bytes of content; the published file has %d; %s", path, found.Size, f.Size, again)
	case found.SHA256 != f.SHA256:
		return fmt.Errorf("%s: the content has SHA-256 %s; the published file has %s; %s", path, found.SHA256,
			f.SHA256, again)
	}
	return nil
}

const again = "delete it and get it again"

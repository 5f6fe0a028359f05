package npy

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// maxDirectory bounds the list of an archive's members in bytes.
	maxDirectory = 64 << 10
	endLength    = 22
)

// archive is an NPZ file.
type archive struct {
	name    string
	content io.ReaderAt
	size    int64
	files   []*zip.File
	choice  string // sentence in errors about how to choose an array by name
}

// openArchive reads the list of an archive's members, as NumPy writes it: at the file's end,
// without a comment.
func openArchive(r io.ReaderAt, size int64, name string) (*archive, error) {
	head := make([]byte, min(size, 1<<16))
	if _, err := r.ReadAt(head, 0); err != nil && size > 0 {
		return nil, fmt.Errorf("%s: offset 0: %w", name, err)
	}
	foreign := input.Foreign(head, "an NPZ archive of NumPy")
	if foreign != nil && !strings.HasPrefix(string(head), "PK") {
		return nil, fmt.Errorf("%s: %w", name, foreign)
	}
	if err := checkDirectory(r, size); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: offset %d: %w", name, size-endLength, err)
	}
	if !slices.ContainsFunc(z.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, ".npy") }) {
		return nil, fmt.Errorf("%s: there is no array (.npy) in it: %w", name,
			cmp.Or(foreign, errors.New("accepted is an NPZ archive of NumPy")))
	}
	return &archive{name: name, content: r, size: size, files: z.File}, nil
}

// checkDirectory bounds what the list of members can cost, before it is read.
func checkDirectory(r io.ReaderAt, size int64) error {
	if size < endLength {
		return fmt.Errorf("offset 0: %d bytes are not an NPZ file, which is a ZIP archive", size)
	}
	var end [endLength]byte
	if _, err := r.ReadAt(end[:], size-endLength); err != nil {
		return fmt.Errorf("offset %d: %w", size-endLength, input.Ends(err))
	}
	if string(end[:4]) != "PK\x05\x06" {
		return fmt.Errorf("offset %d: % x is not the end of an NPZ file, which is a ZIP archive without a comment; "+
			"the file may have been cut off", size-endLength, end[:4])
	}
	length, offset := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	if length > maxDirectory {
		return fmt.Errorf("offset %d: the list of the archive's members has %d bytes; at most %d are accepted",
			size-endLength+12, length, maxDirectory)
	}
	if offset+length != size-endLength {
		return fmt.Errorf("offset %d: the list of the archive's members is said to be at %d with %d bytes; it must "+
			"end at %d", size-endLength+12, offset, length, size-endLength)
	}
	return nil
}

// array reads an array of the archive by its name, without .npy.
func (a *archive) array(name string, origin []float64) (*Array, error) {
	var found *zip.File
	var names []string
	for _, f := range a.files {
		member, isArray := strings.CutSuffix(f.Name, ".npy")
		if isArray {
			names = append(names, member)
		}
		if member != name || !isArray {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s: two arrays are named %s", a.name, input.Quote(name))
		}
		found = f
	}
	if found == nil {
		slices.Sort(names)
		return nil, fmt.Errorf("%s: there is no array %s; there are %s: %s", a.name, input.Quote(name),
			input.List(names), a.choice)
	}
	where := a.name + ": " + found.Name
	open := func() (io.Reader, error) { return a.member(found) }
	r, err := open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return read(r, where, open, origin)
}

func (a *archive) member(f *zip.File) (io.Reader, error) {
	switch {
	case f.Flags&1 != 0:
		return nil, errors.New("the array is encrypted; accepted are those that are stored or deflated")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, fmt.Errorf("compression method %d; accepted are those that are stored (0) or deflated (8)",
			f.Method)
	case f.UncompressedSize64 > input.MaxBytes:
		return nil, fmt.Errorf("%d bytes; at most %d are accepted", f.UncompressedSize64, input.MaxBytes)
	case f.UncompressedSize64 > input.Slack && f.UncompressedSize64 > input.MaxExpansion*f.CompressedSize64:
		return nil, fmt.Errorf("%d compressed bytes are to become %d; accepted are %d, or %d for each",
			f.CompressedSize64, f.UncompressedSize64, input.Slack, input.MaxExpansion)
	}
	return f.Open()
}

// inArchive opens the NPZ file of that name and gives it to read.
func inArchive[T any](path string, read func(a *archive) (T, error)) (content T, err error) {
	f, err := input.OpenFile(input.Anywhere, path)
	if err != nil {
		return content, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	info, err := f.Stat()
	if err != nil {
		return content, err
	}
	a, err := openArchive(f, info.Size(), path)
	if err != nil {
		return content, err
	}
	return read(a)
}

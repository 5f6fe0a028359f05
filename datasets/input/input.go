// Package input reads the bytes of files of samples, plain or compressed with gzip, and bounds
// what they can cost: their length, how far they expand, and the memory that the reader of a
// format may allocate for them.
package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// MaxBytes bounds the content of a file, uncompressed: 1 GiB.
	MaxBytes = 1 << 30
	// Slack is what a reader may allocate beside Factor bytes for each byte of content.
	Slack = 64 << 20
	// Factor is how many bytes a reader may allocate for a byte of content, beside Slack:
	// a byte becomes an input of four.
	Factor = 4
	// MaxExpansion bounds how many bytes a byte of a compressed file may become once
	// they are more than Slack. The published data sets stay below 12.
	MaxExpansion = 128
	// MaxLine bounds a line of text in bytes, its end included.
	MaxLine = 1 << 20
)

// free is the length in bytes up to which Holds trusts a promise: even if each byte becomes an
// input, a wrong promise costs no more than Slack.
const free = Slack / 8

// Reader reads the content of a file.
type Reader struct {
	name   string
	buffer *bufio.Reader
	packed *counter // the compressed bytes; nil without compression
	offset int64    // of the next byte of the content
	sum    *summed  // what has left the file
	long   []byte   // a line that is longer than the buffer
	rewind func() (io.Reader, error)
}

// counter counts what is read through it.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// summed takes the SHA-256 of what is read through it.
type summed struct {
	counter
	hash hash.Hash
}

func newSummed(r io.Reader) *summed { return &summed{counter{Reader: r}, sha256.New()} }

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.counter.Read(p)
	_, _ = s.hash.Write(p[:n]) // never fails
	return n, err
}

// New reads r, which it sees from the first two bytes to be compressed with gzip or not. Errors
// begin with name. If r is an io.ReadSeeker, or rewind, which may be nil, returns the same bytes
// again from their beginning, Holds can count what is still to come. A Reader is returned as it is.
func New(r io.Reader, name string, rewind func() (io.Reader, error)) (*Reader, error) {
	if d, ok := r.(*Reader); ok {
		return d, nil
	}
	if s, ok := r.(io.ReadSeeker); ok && rewind == nil {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			rewind = func() (io.Reader, error) {
				_, err := s.Seek(start, io.SeekStart)
				return s, err
			}
		}
	}
	d := &Reader{name: name, rewind: rewind}
	if err := d.open(r); err != nil {
		return nil, fmt.Errorf("%s: gzip: %w", name, err)
	}
	return d, nil
}

func (d *Reader) open(r io.Reader) error {
	d.offset, d.packed = 0, nil
	d.sum = newSummed(r)
	d.buffer = bufio.NewReaderSize(d.sum, 1<<16)
	magic, err := d.buffer.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return nil // an error shows up again, with an offset, when read
	}
	d.packed = &counter{Reader: d.buffer}
	file := bufio.NewReaderSize(d.packed, 1<<12)
	z, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	z.Multistream(false)
	d.sum = newSummed(&members{z, file})
	d.buffer = bufio.NewReaderSize(d.sum, 1<<16)
	return nil
}

// members reads the members of a gzip file, one after the other. As gunzip does, it passes over zeros
// behind the last member, which tapes and some copying programs add.
type members struct {
	*gzip.Reader
	file *bufio.Reader
}

// errBehind is the error about bytes behind the last member of a gzip file.
var errBehind = fmt.Errorf("bytes follow the end of the compressed data, and are neither zeros nor another member "+
	"of gzip: cut them off, or compress the file again (%w)", gzip.ErrHeader)

func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if n, err = m.Reader.Read(p); errors.Is(err, io.EOF) {
			err = m.next()
		}
		if len(p) == 0 {
			break
		}
	}
	return n, err
}

// next begins the next member, or returns io.EOF behind the last one.
func (m *members) next() error {
	magic, err := m.file.Peek(2)
	if string(magic) == "\x1f\x8b" {
		err = m.Reset(m.file)
		m.Multistream(false)
		return err
	}
	for ; len(magic) > 0; magic, err = m.file.Peek(1) {
		if magic[0] != 0 {
			return errBehind
		}
		_, _ = m.file.Discard(1) // it is there
	}
	return err
}

// File is a file of samples that was read.
type File struct {
	// Path is where the file was found, Name what it is called without its folder.
	Path, Name string
	// Size counts the bytes of the content, and SHA256 is its checksum in hexadecimal; the content
	// of a file compressed with gzip is what it expands to.
	Size   int64
	SHA256 string
	// Missing says what became of the values that the samples lack, in formats that have a way to
	// say so.
	Missing Missing
	// Notes say, in sentences, what of the content was passed over or read otherwise than it stands
	// there.
	Notes []string
}

// Missing counts values that samples lack.
type Missing struct {
	// Values are those that were found, Samples the ones that they were found in.
	Values  int
	Samples int
	// Done is what was done about them: "drop", "mean" or "constant"; empty where they would have
	// been refused.
	Done string
}

// file describes the content; what has not been read of it is read now.
func (d *Reader) file() (File, error) {
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{d}); err != nil {
		return File{}, fmt.Errorf("%s: offset %d: %w", d.name, d.offset, err)
	}
	return d.sum.file(d.name), nil
}

func (s *summed) file(path string) File {
	return File{Path: path, Name: filepath.Base(path), Size: s.n, SHA256: hex.EncodeToString(s.hash.Sum(nil))}
}

// Sum reads r to its end and describes it as the file of that path.
func Sum(r io.Reader, path string) (File, error) {
	s := newSummed(r)
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{s}); err != nil {
		return File{}, fmt.Errorf("%s: offset %d: %w", path, s.n, err)
	}
	return s.file(path), nil
}

// Offset returns the number of bytes of content that were read.
func (d *Reader) Offset() int64 { return d.offset }

// Budget returns what may be allocated for the content read so far, in bytes.
func (d *Reader) Budget() int64 { return Slack + Factor*d.offset }

// Read implements io.Reader. Content beyond MaxBytes, or that a compressed file has
// more of than MaxExpansion allows, is an error.
func (d *Reader) Read(p []byte) (int, error) {
	n, err := d.buffer.Read(p)
	return n, d.count(n, err)
}

// ReadByte implements io.ByteReader; see Read.
func (d *Reader) ReadByte() (byte, error) {
	b, err := d.buffer.ReadByte()
	if err != nil {
		return 0, d.count(0, err)
	}
	return b, d.count(1, nil)
}

func (d *Reader) count(n int, err error) error {
	d.offset += int64(n)
	switch {
	case d.offset > MaxBytes:
		return fmt.Errorf("more than %d bytes of content", MaxBytes)
	case d.packed != nil && d.offset > Slack && d.offset > MaxExpansion*d.packed.n:
		return fmt.Errorf("%d compressed bytes have become %d; accepted are %d, or %d for each", d.packed.n, d.offset,
			Slack, MaxExpansion)
	case d.packed != nil && errors.Is(err, io.ErrUnexpectedEOF):
		return errCut
	}
	return err
}

// Holds reports whether n more bytes of content follow, so that a header's word can be
// checked before anything is allocated for it: exactly n, unless n is too small to be worth
// a look. It reads them, and begins again where the reader was.
func (d *Reader) Holds(n int64) error {
	if n <= free {
		return nil
	}
	if d.rewind == nil {
		return errors.New("its length cannot be known before it is read")
	}
	at := d.offset
	rest, err := io.Copy(io.Discard, struct{ io.Reader }{d})
	if err != nil {
		return fmt.Errorf("after %d of %d bytes: %w", rest, n, Ends(err))
	}
	r, err := d.rewind()
	if err != nil {
		return err
	}
	if err := d.open(r); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, struct{ io.Reader }{d}, at); err != nil {
		return err
	}
	switch {
	case rest < n:
		return fmt.Errorf("%d of %d bytes: %w", rest, n, Ends(io.EOF))
	case rest > n:
		return fmt.Errorf("%d bytes follow, %d are accepted: there are trailing bytes", rest, n)
	}
	return nil
}

// errCut is the error about a compressed file that lacks its end.
var errCut = fmt.Errorf("the file ends too early, within what gzip has compressed; was it copied to its end? %w",
	io.ErrUnexpectedEOF)

// Ends says in words what an io.EOF means where more bytes are needed.
func Ends(err error) error {
	if errors.Is(err, errCut) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends too early: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// Open opens the regular file of that name and gives it to read, with the same name for errors. It
// describes the file by what was read of it.
func Open[T any](path string, read func(r io.Reader, name string) (T, error)) (content T, file File, err error) {
	f, err := OpenFile(Anywhere, path)
	if err != nil {
		return content, file, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	d, err := New(f, path, nil)
	if err != nil {
		return content, file, err
	}
	if content, err = read(d, path); err != nil {
		return content, file, err
	}
	file, err = d.file()
	return content, file, err
}

// Lines calls visit with each line of text, valid only for the call: without its end (LF, CRLF or CR)
// and without a byte order mark of UTF-8 before it, which the second of two joined files leaves there.
// Errors, including visit's, begin with the reader's name and the number of the line. A line longer
// than longest bytes, which is at most MaxLine, is an error; so is content that is no text, or has
// another format than the accepted one.
func (d *Reader) Lines(accepted string, longest int, visit func(number int, line []byte) error) error {
	if err := d.text(accepted); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	end := d.lineEnd()
	for number := 1; ; number++ {
		line, err := d.line(end, longest)
		err = d.count(0, err)
		fault := d.count(len(line), nil)
		switch {
		case len(line) > longest:
			fault = fmt.Errorf("line longer than %d bytes, beginning %s", longest, Quote(line))
		case err != nil && !errors.Is(err, io.EOF):
			fault = Ends(err)
		}
		if fault == nil && (err == nil || len(line) > 0) {
			line = bytes.TrimPrefix(bytes.TrimSuffix(line, []byte{end}), []byte(mark))
			line = bytes.TrimSuffix(line, []byte("\r"))
			hint := strayHint(line)
			if fault = visit(number, line); fault != nil && hint != "" {
				fault = fmt.Errorf("%w%s", fault, hint)
			}
		}
		if fault != nil {
			return fmt.Errorf("%s:%d: %w", d.name, number, fault)
		}
		if err != nil {
			return nil
		}
	}
}

// mark is the byte order mark of UTF-8, which some programs put before text.
const mark = "\ufeff"

// strayHint returns a hint about a carriage return or byte order mark within a line, or "".
func strayHint(line []byte) string {
	switch {
	case bytes.IndexByte(line, '\r') >= 0:
		return "; there are carriage returns (CR) within the line: end all lines alike, with LF, CRLF or CR"
	case bytes.Contains(line, []byte(mark)):
		return "; there is a byte order mark (BOM) within the line, where another file was put behind one without " +
			"a last line end: begin a new line there"
	}
	return ""
}

// lineEnd returns the byte that ends lines: CR if the first 64 KiB have CR and no LF, else LF.
func (d *Reader) lineEnd() byte {
	head, _ := d.buffer.Peek(d.buffer.Size()) // reading reports the error again
	if bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0 {
		return '\r'
	}
	return '\n'
}

// line returns a line with its end, of which it may leave a part behind if it is too long.
func (d *Reader) line(end byte, longest int) ([]byte, error) {
	line, err := d.buffer.ReadSlice(end)
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	d.long = d.long[:0]
	for errors.Is(err, bufio.ErrBufferFull) && len(d.long)+len(line) <= longest {
		d.long = append(d.long, line...)
		line, err = d.buffer.ReadSlice(end)
	}
	d.long = append(d.long, line...)
	return d.long, err
}

// Quote quotes text from a file, shortened, for an error.
func Quote[T ~string | ~[]byte](text T) string {
	const longest = 60
	if len(text) > longest {
		return strconv.Quote(string(text[:longest])) + "…"
	}
	return strconv.Quote(string(text))
}

// List quotes the first names of a list, shortened, for an error.
func List(names []string) string {
	const most = 8
	var quoted []string
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, Quote(name))
	}
	list := "[" + strings.Join(quoted, " ") + "]"
	if more := len(names) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// Decimal parses a decimal number, with or without an exponent, and rounds it to 32 or 64 bits. Unlike
// strconv.ParseFloat it refuses underscores, hexadecimal digits and words such as inf.
func Decimal[T ~string | ~[]byte](text T, bits int) (v float64, ok bool) {
	for i := range len(text) {
		if strings.IndexByte("+-.0123456789eE", text[i]) < 0 {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(text), bits)
	return v, err == nil
}

// NumberHint returns a hint about a text that is no number, such as one with a decimal comma; empty if it has
// none.
func NumberHint[T ~string | ~[]byte](text T) string {
	if marks := strings.Trim(string(text), "+-0123456789."); strings.TrimSuffix(marks, "%") == "," {
		return "; numbers have a decimal point and no thousands separator: if the comma is a decimal one, " +
			`convert the file, for instance with Python: pandas.read_csv("FILE", sep=";", decimal=",")` +
			`.to_csv("FILE.csv", index=False)`
	}
	return ""
}

package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// format is a format of files that no reader here takes for its own by mistake.
type format struct {
	name string // with its article
	at   int    // offset of the magic bytes
	mark string // the magic bytes
	way  string // how to make something of it that is accepted
}

const (
	unpack    = "unpack it and name the file inside"
	utf16Way  = "save it in UTF-8, or convert it with iconv -f UTF-16 -t UTF-8"
	throughPy = `convert it, for instance with Python: pandas.%s("FILE").to_csv("FILE.csv", index=False)`
)

// pandas says how to convert a file with a function of pandas.
func pandas(reader string) string { return fmt.Sprintf(throughPy, reader) }

// formats are told by their magic bytes. Of two that both fit, the first counts.
var formats = []format{
	{"text in UTF-32", 0, "\xff\xfe\x00\x00", "convert it with iconv -f UTF-32 -t UTF-8"},
	{"text in UTF-32", 0, "\x00\x00\xfe\xff", "convert it with iconv -f UTF-32 -t UTF-8"},
	{"text in UTF-16", 0, "\xff\xfe", utf16Way},
	{"text in UTF-16", 0, "\xfe\xff", utf16Way},
	{"an NPY file of NumPy", 0, "\x93NUMPY", "set: npy reads it"},
	{"a ZIP archive", 0, "PK\x03\x04", unpack}, // see zipped
	{"an empty ZIP archive", 0, "PK\x05\x06", "name a file with samples"},
	{"a 7-Zip archive", 0, "7z\xbc\xaf\x27\x1c", unpack},
	{"a RAR archive", 0, "Rar!\x1a\x07", unpack},
	{"a tar archive", 257, "ustar", unpack},
	{"a file compressed with gzip", 0, "\x1f\x8b", "decompress it with gunzip, once more if it was read as such"},
	{"a file compressed with bzip2", 0, "BZh", "decompress it with bunzip2"},
	{"a file compressed with xz", 0, "\xfd7zXZ\x00", "decompress it with unxz"},
	{"a file compressed with Zstandard", 0, "\x28\xb5\x2f\xfd", "decompress it with unzstd"},
	{"a file compressed with LZ4", 0, "\x04\x22\x4d\x18", "decompress it with lz4 -d"},
	{"a file compressed with compress", 0, "\x1f\x9d", "decompress it with uncompress"},
	{"a Parquet file", 0, "PAR1", pandas("read_parquet")},
	{"an encrypted Parquet file", 0, "PARE", pandas("read_parquet")},
	{"an Arrow file (Feather)", 0, "ARROW1", pandas("read_feather")},
	{"a Feather file", 0, "FEA1", pandas("read_feather")},
	{
		"an Arrow stream",
		0,
		"\xff\xff\xff\xff",
		"convert it with pyarrow.ipc.open_stream(...).read_pandas().to_csv(...)",
	},
	{"an Avro file", 0, "Obj\x01", "convert it to CSV, for instance with fastavro"},
	{"an ORC file", 0, "ORC", pandas("read_orc")},
	{"an HDF5 file", 0, "\x89HDF\r\n\x1a\n", pandas("read_hdf")},
	{"a NetCDF file", 0, "CDF\x01", "convert it to NPY with NumPy"},
	{"a NetCDF file", 0, "CDF\x02", "convert it to NPY with NumPy"},
	{"a file of MATLAB", 0, "MATLAB 5.0 MAT-file", "convert it to NPY with scipy.io.loadmat and numpy.save"},
	{"a database of SQLite", 0, "SQLite format 3\x00", "export the table: sqlite3 -header -csv FILE 'select …'"},
	{"a database of DuckDB", 8, "DUCK", "export the table: COPY … TO 'FILE.csv'"},
	{"a workbook of Excel (XLS)", 0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "save it as CSV UTF-8"},
	{"a table of Stata", 0, "<stata_dta>", pandas("read_stata")},
	{"a table of SPSS", 0, "$FL2", pandas("read_spss")},
	{"a table of SAS", 12, "\xc2\xea\x81\x60", pandas("read_sas")},
	{"a transport file of SAS", 0, "HEADER RECORD*******LIBRARY", pandas("read_sas")},
	{"a file of R", 0, "RDX", "write.csv writes a table from R"},
	{"a file of R", 0, "X\n\x00\x00\x00", "write.csv writes a table from R"},
	{"a tensor file (safetensors)", 8, `{"`, "convert it to NPY"},
	{"a file of GGUF", 0, "GGUF", "name a file with samples"},
	{"a PDF document", 0, "%PDF-", "export its table as CSV"},
	{"a PNG image", 0, "\x89PNG\r\n\x1a\n", "put the images into one NPY or IDX array"},
	{"a JPEG image", 0, "\xff\xd8\xff", "put the images into one NPY or IDX array"},
	{"a GIF image", 0, "GIF8", "put the images into one NPY or IDX array"},
	{"a TIFF image", 0, "II*\x00", "put the images into one NPY or IDX array"},
	{"a TIFF image", 0, "MM\x00*", "put the images into one NPY or IDX array"},
	{"a RIFF file (WebP, WAV, AVI)", 0, "RIFF", "put the samples into one NPY array"},
	{"a program", 0, "\x7fELF", "name a file with samples"},
	{"an IDX file (as MNIST's)", 0, "\x00\x00\x08", "set: idx reads it"},
	{"a stand-in for a file in Git LFS", 0, "version https://git-lfs", "get the file itself with git lfs pull"},
}

// texts are formats of text, told by how the first line that is neither blank nor a comment begins,
// in lower case.
var texts = []format{
	{"an ARFF file (of Weka)", 0, "@relation",
		"take the lines behind @data as CSV, with header: absent, or convert it with scipy.io.arff"},
	{"a web page (HTML)", 0, "<!doctype html",
		"it may be a message about a download; get the file itself, or convert its table"},
	{"a web page (HTML)", 0, "<html", "it may be a message about a download; get the file itself"},
	{"an XML file", 0, "<?xml", pandas("read_xml")},
	{"a JSON file", 0, `{"`, pandas("read_json")},
	{"a JSON file", 0, `[{`, pandas("read_json")},
	{"a JSON file", 0, `[[`, pandas("read_json")},
	{"a JSON file", 0, "{\n", pandas("read_json")},
	{"a JSON file", 0, "{\r\n", pandas("read_json")},
	{"a JSON file", 0, "[\n", pandas("read_json")},
	{"a JSON file", 0, "[\r\n", pandas("read_json")},
	{"an SQL script", 0, "create table", "export the table as CSV"},
}

const (
	// sniffed is how many bytes are examined to tell binary formats and text apart.
	sniffed = 1 << 10
	// commented is how many bytes are examined for the first line that is no comment, which tells
	// formats of text apart.
	commented = 1 << 16
)

// shortMark is the length up to which magic bytes may by chance begin a text, such as a header ORC.
const shortMark = 6

// plain reports whether bytes are text in UTF-8, of which the last character may be cut.
func plain(head []byte) bool {
	controls, invalid := unlikeText(head)
	return controls == 0 && (invalid == 0 || len(head) == sniffed && invalid < utf8.UTFMax)
}

// recognize names the format that content begins with; false if it is none of those that are known.
func recognize(content []byte) (format, bool) {
	head := content[:min(len(content), sniffed)]
	for _, f := range formats {
		if len(head) < f.at || !bytes.HasPrefix(head[f.at:], []byte(f.mark)) ||
			len(f.mark) <= shortMark && plain(head) {
			continue
		}
		if f.mark == "PK\x03\x04" {
			return zipped(head), true
		}
		return f, true
	}
	if len(head) > 2 && head[0] == 0x80 && head[1] <= 5 && (head[1] < 4 || head[2] == 0x95) {
		return format{name: "a pickle of Python", way: "it would have to be run; write a table with to_csv, or " +
			"an array with numpy.save, from Python"}, true
	}
	line := bytes.TrimPrefix(content, []byte(mark))
	for {
		line = bytes.TrimLeft(line, " \t\r\n")
		if len(line) == 0 || line[0] != '%' && line[0] != '#' {
			break
		}
		end := bytes.IndexAny(line, "\r\n")
		if end < 0 {
			end = len(line)
		}
		line = line[end:]
	}
	lower := strings.ToLower(string(line[:min(len(line), sniffed)]))
	for _, f := range texts {
		if strings.HasPrefix(lower, f.mark) {
			return f, true
		}
	}
	return format{}, false
}

// zipped names a ZIP archive by its first member.
func zipped(head []byte) format {
	const nameAt = 30
	name := head[min(nameAt, len(head)):]
	for _, inside := range []struct {
		prefix string
		format
	}{
		{"[Content_Types].xml", format{name: "a workbook of Excel (XLSX)", way: "save it as CSV UTF-8"}},
		{"_rels/", format{name: "a workbook of Excel (XLSX)", way: "save it as CSV UTF-8"}},
		{"xl/", format{name: "a workbook of Excel (XLSX)", way: "save it as CSV UTF-8"}},
		{"docProps/", format{name: "a workbook of Excel (XLSX)", way: "save it as CSV UTF-8"}},
		{"mimetypeapplication/vnd.oasis", format{name: "an OpenDocument file", way: "save it as CSV UTF-8"}},
		{"archive/data.pkl", format{name: "a file of PyTorch", way: "write arrays with numpy.save"}},
	} {
		if bytes.HasPrefix(name, []byte(inside.prefix)) {
			return inside.format
		}
	}
	if end := min(len(name), 256); bytes.Contains(name[:end], []byte(".npy")) {
		return format{name: "an NPZ archive of NumPy", way: "set: npz reads it"}
	}
	return format{name: "a ZIP archive", way: unpack}
}

// ErrForeign is wrapped by errors about files of another format.
var ErrForeign = errors.New("the file has another format")

// foreign is an error about a file of another format.
type foreign string

func (f foreign) Error() string { return string(f) }
func (foreign) Unwrap() error   { return ErrForeign }

// Foreign returns an error if content, the beginning of a file, is text or has a known format other
// than the accepted binary one. The error says how to read or convert such a file, and does not name
// the file.
func Foreign(content []byte, accepted string) error {
	f, known := recognize(content)
	head := content[:min(len(content), sniffed)]
	switch {
	case known:
	case len(bytes.TrimSpace(head)) > 0 && !bytes.ContainsRune(head, 0) && !binary(head):
		f = format{name: "text", way: "set: csv reads tables, set: libsvm reads LIBSVM's format"}
	default:
		return nil
	}
	return f.instead(accepted)
}

// instead returns the error about a file of this format where another is accepted.
func (f format) instead(accepted string) error {
	return foreign(fmt.Sprintf("this is %s; accepted is %s: %s", f.name, accepted, f.way))
}

// Foreign is the function of that name for the content that follows, unless that begins with own,
// the accepted format's magic bytes.
func (d *Reader) Foreign(own, accepted string) error {
	head, _ := d.buffer.Peek(commented) // an error shows up again when read
	if own != "" && bytes.HasPrefix(head, []byte(own)) {
		return nil
	}
	return Foreign(head, accepted)
}

// Text returns the text of r without a byte order mark of UTF-8. Content that is no text, or that
// has another format, is an error without the name of the file.
func Text(r io.Reader, accepted string) (io.Reader, error) {
	b := bufio.NewReaderSize(r, commented)
	head, _ := b.Peek(commented) // an error shows up again when read
	if err := textual(head, accepted); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte(mark)) {
		_, _ = b.Discard(len(mark)) // it is there
	}
	return b, nil
}

// text returns an error unless the content that follows can be text of the accepted format.
func (d *Reader) text(accepted string) error {
	head, _ := d.buffer.Peek(commented) // an error shows up again when read
	return textual(head, accepted)
}

// textual returns an error unless content can be the beginning of text of the accepted format.
func textual(content []byte, accepted string) error {
	head := content[:min(len(content), sniffed)]
	switch f, known := recognize(content); {
	case known:
		return f.instead(accepted)
	case binary(head) && 2*bytes.Count(head, []byte{0}) > len(head):
		return foreign("this is no text (or text in UTF-32); accepted is " + accepted)
	case binary(head):
		return foreign("this is no text (or text in UTF-16); accepted is " + accepted)
	}
	return nil
}

// binary reports whether many bytes are none of text.
func binary(head []byte) bool {
	controls, invalid := unlikeText(head)
	return controls > 0 && 5*(controls+invalid) > len(head) || 2*invalid > len(head)
}

// unlikeText counts control characters, and bytes that are not UTF-8.
func unlikeText(head []byte) (controls, invalid int) {
	for rest := head; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			invalid++
		case r < ' ' && r != '\t' && r != '\n' && r != '\r':
			controls++
		}
		rest = rest[size:]
	}
	return controls, invalid
}

package datasets_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/csv"
	"github.com/gradwire/gradwire/datasets/idx"
	"github.com/gradwire/gradwire/datasets/libsvm"
	"github.com/gradwire/gradwire/datasets/npy"
	"github.com/gradwire/gradwire/datasets/nslkdd"
)

// format is a format of files of samples, for the table of tolerances.
type format struct {
	name string
	// load reads a set whose samples, or the array of whose inputs, are in a file of that path.
	load func(t *testing.T, path string) (*datasets.Source, error)
	// content is a small file.
	content func(t *testing.T) []byte
	// labelled is a set of a sample for each label, tested on others; nil for sets whose classes are
	// known.
	labelled func(t *testing.T, train, test []int) (*datasets.Source, error)
	// says is the format's column of the table.
	says map[string]string
}

const (
	accepted = "accepted"
	none     = "–"
)

// textual are the tolerances of text.
func textual(comment string) map[string]string {
	return map[string]string{
		"byte order mark":             accepted,
		"CRLF":                        accepted,
		"CR":                          accepted,
		"blanks at the ends of lines": accepted,
		"comment lines (`#`)":         comment,
		"empty last lines":            accepted,
		"gzip under any name":         accepted,
	}
}

// arrayTolerances returns the tolerances of a binary format.
func arrayTolerances(gzip string) map[string]string {
	return map[string]string{
		"byte order mark":             none,
		"CRLF":                        none,
		"CR":                          none,
		"blanks at the ends of lines": none,
		"comment lines (`#`)":         none,
		"empty last lines":            none,
		"gzip under any name":         gzip,
	}
}

const connection = "0,tcp,http,SF,491,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2,2,0,0,0,0,1,0,0,150,25,0.17,0.03,0.17,0," +
	"0,0,0.05,0,normal,20"

func formats() []format {
	return slices.Concat(texts(), publishedTexts(), numpyArrays(), idxArrays())
}

func texts() []format {
	return []format{
		{
			name: "csv", says: textual(accepted),
			load: func(_ *testing.T, path string) (*datasets.Source, error) {
				return csv.Load(path, "", csv.Options{Label: csv.Last})
			},
			content: func(*testing.T) []byte { return []byte("a,b,label\n1,2,x\n3,4,y\n5,6,x\n") },
			labelled: func(t *testing.T, train, test []int) (*datasets.Source, error) {
				text := func(labels []int) string {
					return put(
						t,
						[]byte("a,label\n"+each(labels, func(y int) string { return fmt.Sprintf("1.5,%d\n", y) })),
					)
				}
				return csv.Load(text(train), text(test), csv.Options{Label: csv.Last})
			},
		},
		{
			name: "libsvm", says: textual(accepted),
			load: func(_ *testing.T, path string) (*datasets.Source, error) { return libsvm.Load(path, "", 0) },
			content: func(*testing.T) []byte {
				return []byte("1 1:1 2:2\n2 1:3\n1 2:6\n")
			},
			labelled: func(t *testing.T, train, test []int) (*datasets.Source, error) {
				text := func(labels []int) string {
					return put(t, []byte(each(labels, func(y int) string { return fmt.Sprintf("%d 1:1\n", y) })))
				}
				return libsvm.Load(text(train), text(test), 0)
			},
		},
	}
}

func publishedTexts() []format {
	return []format{
		{
			name: "nsl-kdd", says: textual(accepted),
			load: func(t *testing.T, path string) (*datasets.Source, error) {
				dir := as(t, path, "KDDTrain+.txt")
				return nslkdd.Load(dir, nslkdd.Options{})
			},
			content: func(*testing.T) []byte {
				return []byte(connection + "\n" + strings.Replace(connection, "tcp", "udp", 1) + "\n")
			},
		},
		{
			name: "spambase", says: textual(accepted),
			load: func(t *testing.T, path string) (*datasets.Source, error) {
				return csv.LoadSpambase(as(t, path, "spambase.data"))
			},
			content: func(*testing.T) []byte {
				row := strings.Repeat("0.1,", 57)
				return []byte(row + "0\n" + row + "1\n")
			},
		},
		{
			name: "a9a", says: textual(accepted),
			load: func(t *testing.T, path string) (*datasets.Source, error) {
				return libsvm.LoadA9A(as(t, path, "a9a"), false)
			},
			content: func(*testing.T) []byte { return []byte("-1 3:1 11:1\n+1 5:1\n") },
		},
	}
}

func numpyArrays() []format {
	return []format{
		{
			name: "npy", says: arrayTolerances(accepted),
			load: func(t *testing.T, path string) (*datasets.Source, error) {
				return npy.Load(npy.Pairs{X: path, Y: put(t, array("|u1", "(2,)", 0, 1))})
			},
			content: func(*testing.T) []byte { return array("|u1", "(2, 2)", 1, 2, 3, 4) },
			labelled: func(t *testing.T, train, test []int) (*datasets.Source, error) {
				x, y := arraysOf(train)
				testX, testY := arraysOf(test)
				return npy.Load(npy.Pairs{X: put(t, x), Y: put(t, y), TestX: put(t, testX), TestY: put(t, testY)})
			},
		},
		{
			name: "npz",
			says: arrayTolerances("named"),
			load: func(_ *testing.T, path string) (*datasets.Source, error) {
				return npy.LoadArchive(path, npy.Pairs{X: "X", Y: "y"})
			},
			content: func(t *testing.T) []byte {
				return pack(
					t,
					map[string][]byte{"X.npy": array("|u1", "(2, 2)", 1, 2, 3, 4), "y.npy": array("|u1", "(2,)", 0, 1)},
				)
			},
			labelled: func(t *testing.T, train, test []int) (*datasets.Source, error) {
				x, y := arraysOf(train)
				testX, testY := arraysOf(test)
				return npy.LoadArchive(
					put(t, pack(t, map[string][]byte{"X.npy": x, "y.npy": y, "u.npy": testX, "v.npy": testY})),
					npy.Pairs{X: "X", Y: "y", TestX: "u", TestY: "v"},
				)
			},
		},
	}
}

func idxArrays() []format {
	return []format{
		{
			name: "idx", says: arrayTolerances(accepted),
			load: func(t *testing.T, path string) (*datasets.Source, error) {
				return idx.LoadFiles(idx.Files{Images: path, Labels: put(t, bytesOf([]int{2}, 0, 1))})
			},
			content: func(*testing.T) []byte { return bytesOf([]int{2, 2}, 1, 2, 3, 4) },
			labelled: func(t *testing.T, train, test []int) (*datasets.Source, error) {
				images := func(labels []int) string {
					return put(t, bytesOf([]int{len(labels), 1}, make([]int, len(labels))...))
				}
				labels := func(labels []int) string { return put(t, bytesOf([]int{len(labels)}, labels...)) }
				return idx.LoadFiles(idx.Files{Images: images(train), Labels: labels(train), TestImages: images(test),
					TestLabels: labels(test)})
			},
		},
		{
			name: "mnist", says: arrayTolerances(accepted),
			load: func(t *testing.T, path string) (*datasets.Source, error) {
				dir := as(t, path, "train-images-idx3-ubyte")
				for name, content := range map[string][]byte{
					"train-labels-idx1-ubyte": bytesOf([]int{2}, 0, 1), "t10k-labels-idx1-ubyte": bytesOf([]int{1}, 1),
					"t10k-images-idx3-ubyte": bytesOf([]int{1, 1, 2}, 9, 9),
				} {
					if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				return idx.Load(dir, "mnist")
			},
			content: func(*testing.T) []byte { return bytesOf([]int{2, 1, 2}, 1, 2, 3, 4) },
		},
	}
}

// tolerances are the rows of the table, and how a file comes to have what is tolerated.
var tolerances = []struct {
	name   string
	change func(t *testing.T, content []byte) []byte
}{
	{"byte order mark", func(_ *testing.T, c []byte) []byte { return append([]byte("\ufeff"), c...) }},
	{"CRLF", func(_ *testing.T, c []byte) []byte { return bytes.ReplaceAll(c, []byte("\n"), []byte("\r\n")) }},
	{"CR", func(_ *testing.T, c []byte) []byte { return bytes.ReplaceAll(c, []byte("\n"), []byte("\r")) }},
	{"blanks at the ends of lines", func(_ *testing.T, c []byte) []byte {
		return bytes.ReplaceAll(c, []byte("\n"), []byte(" \t\n"))
	}},
	{"comment lines (`#`)", func(_ *testing.T, c []byte) []byte {
		return slices.Concat([]byte("# made by hand\n"), c, []byte("# the end\n"))
	}},
	{"empty last lines", func(_ *testing.T, c []byte) []byte { return append(c, "\n\r\n \n\t\n\t"...) }},
	{"gzip under any name", compressed},
}

// A compressed file may end with zeros, and with nothing else.
func TestAllReadersNameWhatFollowsACompressedFile(t *testing.T) {
	for _, f := range formats() {
		if f.says["gzip under any name"] != accepted {
			continue
		}
		packed := compressed(t, f.content(t))
		for _, zeros := range []int{1, 8, 512, 9000} {
			if _, err := f.load(t, put(t, append(bytes.Clone(packed), make([]byte, zeros)...))); err != nil {
				t.Errorf("%s: %d zeros behind the end: %v", f.name, zeros, err)
			}
		}
		for _, junk := range []string{"x", "\x1f", "8 bytes.", "twenty bytes or more", "\x00\x00x"} {
			_, err := f.load(t, put(t, append(bytes.Clone(packed), junk...)))
			if err == nil || !strings.Contains(err.Error(), "bytes follow the end") {
				t.Errorf("%s: %q behind the end: %v", f.name, junk, err)
			}
		}
	}
}

func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The error about a truncated compressed file names gzip, wherever the file ends.
func TestAllReadersNameCutCompressedFiles(t *testing.T) {
	for _, f := range formats() {
		if f.says["gzip under any name"] != accepted {
			continue
		}
		whole := compressed(t, f.content(t))
		for _, cut := range []int{1, 9, len(whole) - 12} {
			_, err := f.load(t, put(t, whole[:len(whole)-cut]))
			if err == nil || !strings.Contains(err.Error(), "gzip") {
				t.Errorf("%s: without %d bytes: %v", f.name, cut, err)
			}
		}
	}
}

// Each reader's error about a file in the format of another reader names that format.
func TestAllReadersNameEachOthersFormats(t *testing.T) {
	own := map[string]string{"csv": "set: csv", "libsvm": "set: libsvm", "npy": "NPY", "npz": "NPZ", "idx": "IDX"}
	for _, reader := range formats() {
		if own[reader.name] == "" {
			continue
		}
		for _, given := range formats() {
			name, content := own[given.name], given.content(t)
			if name == "" || given.name == reader.name {
				continue
			}
			for _, bytes := range [][]byte{content, compressed(t, content)} {
				_, err := reader.load(t, put(t, bytes))
				ok := err != nil && strings.Contains(err.Error(), name)
				if !ok && (reader.name != "npz" || !strings.Contains(err.Error(), "gzip")) {
					t.Errorf("%s given to %s: %v", given.name, reader.name, err)
				}
			}
		}
	}
}

func TestAllReadersTolerateWhatTheTableSays(t *testing.T) {
	for _, f := range formats() {
		plain, err := f.load(t, put(t, f.content(t)))
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		for _, tolerated := range tolerances {
			says := f.says[tolerated.name]
			if says == none {
				continue
			}
			got, err := f.load(t, put(t, tolerated.change(t, f.content(t))))
			switch {
			case says == "named":
				if err == nil || !strings.Contains(err.Error(), "gzip") {
					t.Errorf("%s, %s: %v", f.name, tolerated.name, err)
				}
			case err != nil:
				t.Errorf("%s, %s: %v", f.name, tolerated.name, err)
			default:
				if diff := cmp.Diff([]any{plain.Pool.X, plain.Pool.Y, plain.Pool.Classes},
					[]any{got.Pool.X, got.Pool.Y, got.Pool.Classes}); diff != "" {
					t.Errorf("%s, %s (-without +with):\n%s", f.name, tolerated.name, diff)
				}
			}
		}
	}
}

// The table of README.md is the one that the test walks.
func TestTheTableOfTolerancesIsPublished(t *testing.T) {
	var b strings.Builder
	b.WriteString("| |")
	for _, f := range formats() {
		b.WriteString(" " + f.name + " |")
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(formats())) + "|\n")
	for _, row := range tolerances {
		b.WriteString("| " + row.name + " |")
		for _, f := range formats() {
			b.WriteString(" " + f.says[row.name] + " |")
		}
		b.WriteString("\n")
	}
	page, err := os.ReadFile("README.md")
	if err != nil || !strings.Contains(string(page), b.String()) {
		t.Errorf("README.md (%v) lacks\n%s", err, b.String())
	}
}

func TestClassesAreTheLabelsOfTheTrainingSamples(t *testing.T) {
	for _, f := range formats() {
		if f.labelled == nil {
			continue
		}
		s, err := f.labelled(t, []int{0, 3, 1}, []int{3, 0})
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		if diff := cmp.Diff([]any{[]string{"0", "1", "3"}, []int32{0, 2, 1}, []int32{2, 0}},
			[]any{s.Pool.Classes, s.Pool.Y, s.Test.Y}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.name, diff)
		}
		if _, err := f.labelled(t, []int{0, 3}, []int{0, 1}); err == nil || !strings.Contains(err.Error(), "label") {
			t.Errorf("%s: a label that only the test samples have: %v", f.name, err)
		}
	}
}

// Whatever is at the path of a file of samples, the error says what it is, in text.
func TestAllReadersNameFilesOfOtherFormats(t *testing.T) {
	workbook := pack(t, map[string][]byte{"[Content_Types].xml": nil})
	tar := append(make([]byte, 257), "ustar\x0000"...)
	utf16 := []byte{0xff, 0xfe, 'a', 0, ',', 0, 'b', 0, '\n', 0}
	utf32 := []byte{0xff, 0xfe, 0, 0, 'a', 0, 0, 0, ',', 0, 0, 0, 'b', 0, 0, 0, '\n', 0, 0, 0}
	for name, content := range map[string]string{
		"Excel": string(workbook), "7-Zip": "7z\xbc\xaf\x27\x1c\x00\x04",
		"RAR": "Rar!\x1a\x07\x00", "tar": string(tar), "bzip2": "BZh91AY&SY\x00\x01", "xz": "\xfd7zXZ\x00\x00",
		"Zstandard": "\x28\xb5\x2f\xfd\x00", "Parquet": "PAR1\x15\x04\x15\x00", "Arrow": "ARROW1\x00\x00",
		"Avro": "Obj\x01\x04\x14", "HDF5": "\x89HDF\r\n\x1a\n\x00", "SQLite": "SQLite format 3\x00\x10",
		"MATLAB": "MATLAB 5.0 MAT-file, Platform: GLNX", "pickle": "\x80\x04\x95\x10\x00\x00", "PNG": "\x89PNG\r\n\x1a\n\x00",
		"ARFF": "% about\n@RELATION iris\n@ATTRIBUTE a NUMERIC\n@DATA\n1,x\n", "JSON": "[{\"a\": 1}]\n",
		"Weka": strings.Repeat("% about the data\r", 2000) + "@relation iris\r",
		"HTML": "<!DOCTYPE html>\n<html><body>Not found</body></html>", "XML": "<?xml version=\"1.0\"?><a/>",
		"XLS": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00", "Git LFS": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
		"PDF": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "UTF-16": string(utf16), "UTF-32": string(utf32), "Feather": "FEA1\x00\x00",
	} {
		for _, f := range formats() {
			_, err := f.load(t, put(t, []byte(content)))
			switch {
			case err == nil:
				t.Errorf("%s: a file of %s is accepted", f.name, name)
			case !strings.Contains(err.Error(), name):
				t.Errorf("%s: a file of %s: %v", f.name, name, err)
			case strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }):
				t.Errorf("%s: a file of %s: not printable: %q", f.name, name, err)
			}
		}
	}
}

func TestAllReadersRefuseFolders(t *testing.T) {
	for _, f := range formats() {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "part.npy"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.load(t, folder)
		published := slices.Contains([]string{"nsl-kdd", "spambase", "a9a", "mnist"}, f.name) // looked for as files
		if err == nil ||
			!published && !strings.Contains(err.Error(), `this is a folder, with files such as "part.npy"`) {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

// put writes a file and returns its path.
func put(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// as returns a folder in which something has another name.
func as(t *testing.T, path, name string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
	return folder
}

func each(labels []int, line func(y int) string) (text string) {
	for _, y := range labels {
		text += line(y)
	}
	return text
}

// array is an NPY file.
func array(descr, shape string, elements ...any) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	b = append(b, header...)
	for _, e := range elements {
		if v, ok := e.(int); ok {
			e = uint8(v)
		}
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, e); err != nil {
			panic(err)
		}
	}
	return b
}

// arraysOf are a sample of one input for each label, and the labels.
func arraysOf(labels []int) (x, y []byte) {
	var inputs, of []any
	for _, label := range labels {
		inputs, of = append(inputs, 1), append(of, label)
	}
	n := len(labels)
	return array("|u1", fmt.Sprintf("(%d, 1)", n), inputs...), array("|u1", fmt.Sprintf("(%d,)", n), of...)
}

// bytesOf is an IDX file.
func bytesOf(dims []int, elements ...int) []byte {
	b := []byte{0, 0, 8, byte(len(dims))}
	for _, n := range dims {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	for _, e := range elements {
		b = append(b, byte(e))
	}
	return b
}

// pack is a ZIP archive.
func pack(t *testing.T, members map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(members[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(errors.Unwrap(err))
	}
	return b.Bytes()
}

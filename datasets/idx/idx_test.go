package idx

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/hostile"
)

// file returns an IDX file of unsigned bytes.
func file(data []byte, dims ...int) []byte {
	b := []byte{0, 0, typeUint8, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return append(b, data...)
}

func zipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func same(a, b *Array) bool { return slices.Equal(a.Dims, b.Dims) && bytes.Equal(a.Data, b.Data) }

func sequence(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

func TestReadReturnsWhatWasWrittenCompressedOrNot(t *testing.T) {
	for _, dims := range [][]int{{1}, {5}, {2, 3}, {7, 4, 4}, {2, 3, 4, 5}, {2_100_001}} {
		size := 1
		for _, d := range dims {
			size *= d
		}
		want := &Array{Dims: dims, Data: sequence(size)}
		plain := file(want.Data, dims...)
		for name, r := range map[string]io.Reader{
			"plain":        bytes.NewReader(plain),
			"gzip":         bytes.NewReader(zipped(t, plain)),
			"half reads":   iotest.HalfReader(bytes.NewReader(plain)),
			"two members":  bytes.NewReader(append(zipped(t, plain[:5]), zipped(t, plain[5:])...)),
			"data and EOF": iotest.DataErrReader(bytes.NewReader(plain)),
		} {
			got, err := Read(r, name)
			if err != nil {
				t.Errorf("%v %s: %v", dims, name, err)
			} else if !same(want, got) {
				t.Errorf("%v %s: another array came back", dims, name)
			}
		}
	}
}

func TestReadErrorsTellWhatAndAtWhichOffset(t *testing.T) {
	good := file(sequence(12), 3, 4)
	badSum := zipped(t, good)
	badSum[len(badSum)-6] ^= 1
	huge := file(nil, 1<<31-1, 1<<31-1, 1<<31-1)
	for name, c := range map[string]struct {
		data []byte
		want []string
	}{
		"empty":         {nil, []string{"offset 0", "ends too early"}},
		"short magic":   {good[:3], []string{"offset 0", "ends too early"}},
		"other format":  {[]byte("P5 28 28"), []string{"this is text"}},
		"floats":        {append([]byte{0, 0, 0x0d, 1}, good[4:]...), []string{"offset 2", "0x0d"}},
		"no dimensions": {[]byte{0, 0, 8, 0}, []string{"offset 3", "0 dimensions"}},
		"many dimensions": {append([]byte{0, 0, 8, 255}, make([]byte, 2000)...),
			[]string{"offset 3", "255 dimensions"}},
		"short dimension":      {good[:10], []string{"offset 8", "dimension 2 of 2"}},
		"zero dimension":       {file(nil, 3, 0), []string{"offset 8", "size 0"}},
		"overflow":             {huge, []string{"offset 4", "1073741824"}},
		"truncated":            {good[:len(good)-1], []string{"offset 23", "11 of 12", "ends too early"}},
		"no elements":          {good[:12], []string{"offset 12", "0 of 12"}},
		"trailing":             {append(bytes.Clone(good), 0), []string{"offset 24", "trailing"}},
		"truncated gzip":       {zipped(t, good)[:20], []string{"ends too early"}},
		"gzip header cut":      {zipped(t, good)[:5], []string{"gzip"}},
		"gzip checksum":        {badSum, []string{"offset 24", "checksum"}},
		"garbage behind gzip":  {append(zipped(t, good), "garbage"...), []string{"offset 24"}},
		"trailing gzip member": {append(zipped(t, good), zipped(t, good)...), []string{"offset 24", "trailing"}},
	} {
		_, err := Read(bytes.NewReader(c.data), "some/file")
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range append(c.want, "some/file: ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not contain %q", name, err, want)
			}
		}
	}
}

func TestReadPassesOnTheReadersError(t *testing.T) {
	broken := errors.New("broken disk")
	r := io.MultiReader(bytes.NewReader(file(sequence(5), 100)), iotest.ErrReader(broken))
	if _, err := Read(r, "f"); !errors.Is(err, broken) || !strings.Contains(err.Error(), "offset 13") {
		t.Errorf("error %v", err)
	}
}

// A header promising 1 GiB and a bomb of zeros behind a small header must not
// cost memory.
func TestReadAllocatesByWhatArrivesOnly(t *testing.T) {
	bomb := zipped(t, append(file(nil, 10), make([]byte, 64<<20)...))
	for name, data := range map[string][]byte{"promise": file(sequence(100), MaxBytes), "bomb": bomb} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(data), "f")
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	hostile.Seed(f, file(sequence(12), 3, 4), file(sequence(12), 3, 2, 2), zipped(f, file(sequence(8), 8)),
		file(nil, 1<<31-1, 1<<31-1), []byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Read(bytes.NewReader(data), "f")
		if err != nil {
			if e := hostile.Refused(err, "f"); e != nil {
				t.Error(e)
			}
			return
		}
		again, err := Read(bytes.NewReader(file(a.Data, a.Dims...)), "f")
		if err != nil || !same(a, again) {
			t.Errorf("written and read again: %v, %v", again, err)
		}
	})
}

// write puts files into a new folder.
func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func smallFiles(t *testing.T, folder string) map[string][]byte {
	return map[string][]byte{
		folder + "train-images-idx3-ubyte.gz": zipped(t, file([]byte{0, 51, 102, 153, 204, 255, 0, 255}, 2, 2, 2)),
		folder + "train-labels-idx1-ubyte":    file([]byte{9, 0}, 2),
		folder + "t10k-images-idx3-ubyte":     file([]byte{255, 0, 0, 255}, 1, 2, 2),
		folder + "t10k-labels-idx1-ubyte.gz":  file([]byte{3}, 1), // not compressed in spite of its name
	}
}

func TestLoadFindsFilesInEitherFolderWithOrWithoutGz(t *testing.T) {
	for _, folder := range []string{"", "mnist/"} {
		s, err := Load(write(t, smallFiles(t, folder)), "mnist")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]float32{0, 0.2, 0.4, 0.6, 0.8, 1, 0, 1}, s.Pool.X); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int32{9, 0}, s.Pool.Y); diff != "" {
			t.Error(diff)
		}
		if s.Test.Len() != 1 || s.Test.Y[0] != 3 || s.Pool.Inputs != 4 {
			t.Errorf("test set %+v", s.Test)
		}
	}
}

func TestFilesOfOnesOwnAreJoined(t *testing.T) {
	dir := write(t, map[string][]byte{
		"images": file([]byte{0, 51, 102, 153, 204, 255}, 3, 2), "labels": zipped(t, file([]byte{2, 0, 2}, 3)),
		"more": file([]byte{255, 0}, 1, 1, 2), "ones": file([]byte{2}, 1), "threes": file([]byte{3}, 1),
		"wide": file([]byte{1, 2, 3}, 1, 3), "flat": file([]byte{1, 2, 3}, 3),
	})
	files := func(images, labels, testImages, testLabels string) Files {
		f := Files{Images: filepath.Join(dir, images), Labels: filepath.Join(dir, labels)}
		if testImages != "" {
			f.TestImages, f.TestLabels = filepath.Join(dir, testImages), filepath.Join(dir, testLabels)
		}
		return f
	}
	s, err := LoadFiles(files("images", "labels", "more", "ones"))
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0", "2"}, s.Pool.Classes); diff != "" || s.Pool.Inputs != 2 ||
		s.Test.Y[0] != 1 || s.Test.X[0] != 1 {
		t.Errorf("%d inputs, test set %+v, classes %s", s.Pool.Inputs, s.Test, diff)
	}
	fewer := "images has 3 images, " + filepath.Join(dir, "ones") + " has 1 labels"
	for want, f := range map[string]Files{
		"threes: label 3 of sample 0 does not occur among":  files("images", "labels", "more", "threes"),
		"wide: samples of shape [3]; those in ":             files("images", "labels", "wide", "ones"),
		"flat: dimensions [3]; samples × at least one more": files("flat", "labels", "", ""),
		"images: dimensions [3 2]; a single dimension, one": files("images", "images", "", ""),
		fewer: files("images", "ones", "", ""),
	} {
		if _, err := LoadFiles(f); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, want)) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestLoadErrorsNameTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		data []byte
		want []string
	}{
		"fewer labels": {"train-labels-idx1-ubyte", file([]byte{1}, 1),
			[]string{"2 images", "1 labels", "train-labels"}},
		"label above 9": {"train-labels-idx1-ubyte", file([]byte{1, 10}, 2),
			[]string{"label 10 of sample 1", "train-labels"}},
		"flat images":        {"t10k-images-idx3-ubyte", file([]byte{1, 2}, 2), []string{"[2]", "t10k-images"}},
		"labels in a matrix": {"train-labels-idx1-ubyte", file([]byte{1, 2}, 1, 2), []string{"[1 2]", "train-labels"}},
		"other size":         {"t10k-images-idx3-ubyte", file([]byte{1, 2}, 1, 1, 2), []string{"[1 2]", "[2 2]", "train-images"}},
		"damaged": {"t10k-images-idx3-ubyte", []byte("junk"),
			[]string{"t10k-images-idx3-ubyte", "this is text"}},
	} {
		files := smallFiles(t, "")
		files[c.file] = c.data
		_, err := Load(write(t, files), "mnist")
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not contain %q", name, err, want)
			}
		}
	}
}

func TestLoadSaysHowToGetWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(dir, "fashion-mnist")
	for _, want := range []string{"train-images-idx3-ubyte", filepath.Join(dir, "fashion-mnist"), "http"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the error is not fs.ErrNotExist")
	}
	if _, err := Load(dir, "emnist"); err == nil || !strings.Contains(err.Error(), `"fashion-mnist"`) {
		t.Errorf("unknown set: %v", err)
	}
}

func dataFolder(t testing.TB) string {
	if testing.Short() {
		t.Skip("reads whole published data sets, which -short leaves out")
	}
	dir := os.Getenv("GRADWIRE_DATA")
	if dir == "" {
		t.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	return dir
}

func TestPublishedFilesAreReadAsPublished(t *testing.T) {
	dir := dataFolder(t)
	even := func(n int) []int {
		counts := make([]int, 10)
		for i := range counts {
			counts[i] = n
		}
		return counts
	}
	for _, c := range []struct {
		set         string
		train, test []int
		checksum    string // of the uncompressed test images
	}{
		{"mnist", []int{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
			[]int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009},
			"0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
		{"fashion-mnist", even(6000), even(1000), "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
	} {
		s, err := Load(dir, c.set)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Test.Validate(); err != nil {
			t.Error(err)
		}
		if s.Pool.Inputs != 784 || len(s.Pool.X) != 60000*784 {
			t.Errorf("%s: %d inputs of %d numbers", c.set, len(s.Pool.X), s.Pool.Inputs)
		}
		if diff := cmp.Diff([][]int{c.train, c.test}, [][]int{s.Pool.Counts(), s.Test.Counts()}); diff != "" {
			t.Errorf("%s: samples per class (-want +got):\n%s", c.set, diff)
		}
		if got := checksum(s.Test); got != c.checksum {
			t.Errorf("%s: test images have sha256 %s, want %s", c.set, got, c.checksum)
		}
	}
}

// checksum returns the sha256 of the IDX file of 28 × 28 images that the set
// was read from, from its pixels brought back to bytes.
func checksum(s *datasets.Set) string {
	h := sha256.New()
	h.Write(file(nil, s.Len(), 28, 28))
	row := make([]byte, s.Inputs)
	for i := range s.Len() {
		for j, x := range s.Row(i) {
			row[j] = byte(x*255 + 0.5)
		}
		h.Write(row)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func BenchmarkRead(b *testing.B) {
	plain := file(sequence(10000*784), 10000, 28, 28)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(plain), "f"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadMNIST(b *testing.B) {
	dir := dataFolder(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(dir, "mnist"); err != nil {
			b.Fatal(err)
		}
	}
}

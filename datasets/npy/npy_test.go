package npy

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/hostile"
	"github.com/gradwire/gradwire/datasets/input"
)

// file returns an NPY file as numpy.save writes it: the header filled up to a multiple of 64.
func file(t testing.TB, descr, shape string, data any) []byte {
	t.Helper()
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	b, err := binary.Append(append(b, header...), binary.LittleEndian, data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryAcceptedTypeIsRead(t *testing.T) {
	for descr, data := range map[string]any{
		"<f4": []float32{0, 1, 2, 3, 4, 5},
		"<f8": []float64{0, 1, 2, 3, 4, 5},
		"<i4": []int32{0, 1, 2, 3, 4, 5},
		"<i8": []int64{0, 1, 2, 3, 4, 5},
		"|u1": []byte{0, 1, 2, 3, 4, 5},
	} {
		for shape, dims := range map[string][]int{"(2, 3)": {2, 3}, "(6,)": {6}, "(1, 2, 3)": {1, 2, 3},
			"(3, 2,)": {3, 2}} {
			b := file(t, descr, shape, data)
			if (len(b)-6*binary.Size(data)/6)%64 != 0 {
				t.Fatalf("the test's header has %d bytes", len(b)-binary.Size(data))
			}
			for name, r := range map[string]io.Reader{
				"plain": bytes.NewReader(b), "half reads": iotest.HalfReader(bytes.NewReader(b)),
				"data and EOF": iotest.DataErrReader(bytes.NewReader(b)),
			} {
				a, err := Read(r, "f")
				if err != nil {
					t.Errorf("%s %s %s: %v", descr, shape, name, err)
					continue
				}
				if diff := cmp.Diff([]any{dims, []float32{0, 1, 2, 3, 4, 5}}, []any{a.Dims, a.Values}); diff != "" {
					t.Errorf("%s %s %s (-want +got):\n%s", descr, shape, name, diff)
				}
			}
		}
	}
}

func TestValuesKeepTheirSignAndAreRoundedOnce(t *testing.T) {
	for want, b := range map[float32][]byte{
		-1.5:            file(t, "<f4", "(1,)", float32(-1.5)),
		0.1:             file(t, "<f8", "(1,)", 0.1),
		math.MaxFloat32: file(t, "<f8", "(1,)", float64(math.MaxFloat32)),
		-1 << 31:        file(t, "<i4", "(1,)", int32(math.MinInt32)),
		-1 << 63:        file(t, "<i8", "(1,)", int64(math.MinInt64)),
		// Rounded to a float64 first, it would lie halfway and become 1<<60.
		1<<60 + 1<<37: file(t, "<i8", "(1,)", int64(1<<60+1<<36+1)),
		255:           file(t, "|u1", "(1,)", byte(255)),
	} {
		a, err := Read(bytes.NewReader(b), "f")
		if err != nil || a.Values[0] != want {
			t.Errorf("%v: %v, %v", want, a, err)
		}
	}
}

// The arrays and what they hold were written by NumPy; see testdata/arrays.py.
func TestArraysOfNumPyAreReadAsNumPyDoes(t *testing.T) {
	text, err := os.ReadFile("testdata/arrays.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 168 {
		t.Fatalf("%d arrays", len(lines))
	}
	if _, err := inArchive("testdata/arrays.npz", func(a *archive) (struct{}, error) {
		for _, line := range lines {
			words := strings.Fields(line)
			got, err := a.array(words[0], nil)
			if err != nil {
				t.Error(err)
				continue
			}
			shape := strings.Trim(strings.ReplaceAll(fmt.Sprint(got.Dims), " ", ","), "[]")
			var bits []string
			for _, v := range got.Values {
				bits = append(bits, fmt.Sprintf("%08x", math.Float32bits(v)))
			}
			if shape != words[1] || !slices.Equal(bits, words[2:]) {
				t.Errorf("%s: %v of shape %s, NumPy says %v of %s", words[0], bits, shape, words[2:], words[1])
			}
		}
		return struct{}{}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Every half float is compared with the formula of IEEE 754, sign · 2^(e−15) · 1.f, written down
// with strings of bits.
func TestEveryHalfFloatHasItsValue(t *testing.T) {
	for bits := range 1 << 16 {
		text := fmt.Sprintf("%016b", bits)
		exponent, _ := strconv.ParseInt(text[1:6], 2, 64)
		fraction, _ := strconv.ParseInt(text[6:], 2, 64)
		want := math.Pow(2, float64(exponent)-15) * (1 + float64(fraction)/1024)
		if exponent == 0 {
			want = math.Pow(2, -14) * float64(fraction) / 1024
		}
		if text[0] == '1' {
			want = -want
		}
		got := half(uint16(bits))
		if exponent == 31 {
			if !math.IsNaN(got) && !math.IsInf(got, 0) || (fraction == 0) != math.IsInf(got, 1-2*(bits>>15)) {
				t.Errorf("%s is %v", text, got)
			}
		} else if math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestHeadersOfEveryVersionAndSpellingAreRead(t *testing.T) {
	for _, header := range []string{
		"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
		`{"shape":(1,),"fortran_order":False,"descr":"<f4"}`,
		"{ 'shape' : ( 1 , ) , 'descr' : '<f4' , 'fortran_order' : False }   \n",
	} {
		for _, version := range []byte{1, 2, 3} {
			b := []byte{0x93, 'N', 'U', 'M', 'P', 'Y', version, 0}
			if version == 1 {
				b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
			} else {
				b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
			}
			b = append(append(b, header...), 0, 0, 0x80, 0x3f)
			if a, err := Read(bytes.NewReader(b), "f"); err != nil || !slices.Equal(a.Values, []float32{1}) {
				t.Errorf("version %d, %s: %v, %v", version, header, a, err)
			}
		}
	}
	if a, err := Read(bytes.NewReader(file(t, "<f4", "()", float32(7))), "f"); err != nil || len(a.Dims) != 0 ||
		a.Values[0] != 7 {
		t.Errorf("a number without dimensions: %v, %v", a, err)
	}
}

// pack returns an archive of arrays, written as numpy.savez or savez_compressed writes it.
func pack(t testing.TB, method uint16, arrays map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range arrays {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "array")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFilesAndArchivesMakeTheSameSet(t *testing.T) {
	x := file(t, "|u1", "(3, 2, 2)", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	y := file(t, "<i8", "(3,)", []int64{7, -2, 7})
	testX, testY := file(t, "<f8", "(1, 2, 2)", []float64{.5, 0, 0, -1}), file(t, "<f4", "(1, 1)", []float32{-2})
	arrays := map[string][]byte{"x_train": x, "y_train": y, "x_test": testX, "y_test": testY, "other": nil}
	p := Pairs{X: "x_train", Y: "y_train", TestX: "x_test", TestY: "y_test"}
	files, err := Load(Pairs{X: write(t, x), Y: write(t, y), TestX: write(t, testX), TestY: write(t, testY)})
	if err == nil {
		err = files.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"-2", "7"}, files.Pool.Classes); diff != "" ||
		!slices.Equal(files.Pool.Y, []int32{1, 0, 1}) || files.Pool.Inputs != 4 {
		t.Errorf("labels %v of %q, %d inputs", files.Pool.Y, files.Pool.Classes, files.Pool.Inputs)
	}
	if diff := cmp.Diff([]float32{.5, 0, 0, -1}, files.Test.X); diff != "" || files.Test.Y[0] != 0 {
		t.Errorf("label %d, inputs %s", files.Test.Y[0], diff)
	}
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		archive, err := LoadArchive(write(t, pack(t, method, arrays)), p)
		if err != nil {
			t.Fatal(err)
		}
		if len(archive.Files) != 1 || len(files.Files) != 4 {
			t.Errorf("read were %v and %v", archive.Files, files.Files)
		}
		archive.Pool.Name, archive.Test.Name, archive.Files = files.Pool.Name, files.Test.Name, files.Files
		if diff := cmp.Diff(files, archive); diff != "" {
			t.Errorf("from files (-) and an archive (+):\n%s", diff)
		}
	}
	if s, err := Load(Pairs{X: write(t, x), Y: write(t, y)}); err != nil || s.Test != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// An error about a missing array names the existing arrays and the setting that chooses one.
func TestAMissingArrayIsToldWithThoseThatAreThere(t *testing.T) {
	x, y := file(t, "|u1", "(2, 1)", []byte{0, 1}), file(t, "|u1", "(2,)", []byte{0, 1})
	few := map[string][]byte{"data": x, "target": y}
	many := map[string][]byte{}
	for i := range 12 {
		many[fmt.Sprintf("arr_%02d", i)] = x
	}
	for _, c := range []struct {
		arrays map[string][]byte
		pairs  Pairs
		want   string
	}{
		{few, Pairs{X: "X", Y: "y"}, `there is no array "y"; there are ["data" "target"]: `},
		{few, Pairs{X: "X", Y: "target"}, `there is no array "X"; there are ["data" "target"]: `},
		{few, Pairs{X: "data", Y: "target", TestX: "u", TestY: "v"}, `there is no array "v"; there are ["data" "target"]: `},
		{many, Pairs{X: "X", Y: "y"}, `"arr_07"] and 4 more: `},
	} {
		path := write(t, pack(t, zip.Store, c.arrays))
		_, err := LoadArchive(path, c.pairs)
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "x names the array of the inputs, y that of the labels, test-x and test-y") {
			t.Errorf("error %v, want %s", err, c.want)
		}
		if c.pairs.TestX != "" {
			continue
		}
		_, err = ReadOther(datasets.Other{Path: path, Labelled: true, Inputs: 1, Classes: []string{"0", "1"}}, c.pairs)
		if err == nil || !strings.Contains(err.Error(), c.want+"those that the model was trained on are called ") {
			t.Errorf("other samples: error %v, want %s", err, c.want)
		}
	}
}

func TestArraysThatDoNotFitEachOtherAreTold(t *testing.T) {
	x, y := file(t, "|u1", "(2, 1)", []byte{0, 1}), file(t, "|u1", "(2,)", []byte{0, 1})
	many := make([]int32, MaxClasses+1)
	for i := range many {
		many[i] = int32(i)
	}
	for want, p := range map[string][4]string{
		"label 5 of sample 1 does not occur among those to train on": {write(t, x),
			write(t, y), write(t, x), write(t, file(t, "|u1", "(2,)", []byte{0, 5}))},
		"samples of shape [2]; those in ": {write(t, x),
			write(t, y), write(t, file(t, "|u1", "(1, 2)", []byte{0, 5})), write(t, file(t, "|u1", "(1,)", byte(0)))},
		"label 1000 of sample 1000 is one more than 1000 different ones": {write(t, x),
			write(t, file(t, "<i4", "(1001,)", many)), "", ""},
		"label 1.6777216e+07 of sample 0; accepted are whole numbers from -16777215 to 16777215": {write(t, x),
			write(t, file(t, "<i4", "(1,)", int32(1<<24+1))), "", ""},
		"label 1.6777218e+07 of sample 0; accepted are whole numbers from -16": {write(t, x),
			write(t, file(t, "<i4", "(1,)", int32(1<<24+2))), "", ""},
		"shape []; one label a sample is expected": {write(t, x),
			write(t, file(t, "|u1", "()", byte(0))), "", ""},
		"no such file": {"nowhere", write(t, y), "", ""},
	} {
		if _, err := Load(
			Pairs{X: p[0], Y: p[1], TestX: p[2], TestY: p[3]},
		); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := LoadArchive("nowhere", Pairs{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A large array costs what its inputs take, compressed or not, and a promise of one nothing.
func TestAnArrayCostsWhatItsInputsTake(t *testing.T) {
	const n = 20_000_000
	plain := file(t, "|u1", fmt.Sprintf("(%d, 1)", n), slices.Repeat([]byte{1, 2, 3, 4, 250}, n/5))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"plain": plain, "gzip": z.Bytes()} {
		var a *Array
		cost, err := hostile.Cost(func() (err error) {
			a, err = Read(bytes.NewReader(content), "f")
			return err
		})
		if err != nil || len(a.Values) != n || a.Values[n-1] != 250 || cost > 4*n+(2<<20) {
			t.Errorf("%s: %d bytes allocated: %v", name, cost, err)
		}
		cost, err = hostile.Cost(func() error {
			_, err := Read(bytes.NewReader(content[:len(content)-9]), "f")
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "ends too early") || cost > 2<<20 {
			t.Errorf("%s, cut off: %d bytes allocated: %v", name, cost, err)
		}
	}
	if _, err := Read(iotest.HalfReader(bytes.NewReader(plain)), "f"); err == nil || !strings.Contains(err.Error(),
		"its length cannot be known before it is read") {
		t.Errorf("error %v", err)
	}
}

// Whatever the bytes are, Read fails or returns an array within its bounds, which it reads again as
// it is.
func FuzzRead(f *testing.F) {
	hostile.Seed(f, file(f, "<f4", "(2, 1)", []float32{1, -2}), file(f, "|u1", "(1,)", byte(3)),
		file(f, "<f2", "(2, 1)", []uint16{0x3c00, 1}), file(f, "|b1", "(2,)", []byte{0, 1}),
		bytes.Replace(file(f, ">i2", "(2, 3)", make([]int16, 6)), []byte("False"), []byte("True "), 1))
	f.Fuzz(func(t *testing.T, content []byte) {
		a, err := Read(bytes.NewReader(content), "f")
		if err != nil {
			if e := hostile.Refused(err, "f"); e != nil {
				t.Error(e)
			}
			return
		}
		if content[0] != 0x1f && 4*len(a.Values) > input.Slack+input.Factor*len(content) {
			t.Errorf("%d numbers from %d bytes", len(a.Values), len(content))
		}
		shape := "("
		for _, n := range a.Dims {
			shape += fmt.Sprint(n, ",")
		}
		again, err := Read(bytes.NewReader(file(t, "<f4", shape+")", a.Values)), "f")
		if err != nil || !slices.Equal(again.Dims, a.Dims) || !slices.Equal(again.Values, a.Values) {
			t.Errorf("written and read again: %v, %v", again, err)
		}
	})
}

// Whatever the bytes are, an archive is refused or makes a valid set.
func FuzzLoadArchive(f *testing.F) {
	hostile.Seed(f)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		f.Add(pack(f, method, map[string][]byte{"X": file(f, "<f4", "(2, 1)", []float32{1, -2}),
			"y": file(f, "|u1", "(2,)", []byte{3, 4})}))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := loadContent(content, "f")
		if err != nil {
			if e := hostile.Refused(err, "f"); e != nil {
				t.Error(e)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	})
}

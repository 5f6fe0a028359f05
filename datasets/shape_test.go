package datasets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/csv"
	"github.com/gradwire/gradwire/datasets/idx"
	"github.com/gradwire/gradwire/datasets/libsvm"
	"github.com/gradwire/gradwire/datasets/npy"
)

// arrayReaders load two training samples of the first shape and two test samples of the second, or read
// samples of the second shape for a model of the first. An empty second shape stands for no test file.
var arrayReaders = map[string]func(t *testing.T, layout string, train, test []int) error{
	"npy": func(t *testing.T, layout string, train, test []int) error {
		p := npy.Pairs{
			X:      put(t, npyOf(train)),
			Y:      put(t, array("|u1", "(2,)", 0, 1)),
			Layout: npy.Layout{Order: layout},
		}
		if test != nil {
			p.TestX, p.TestY = put(t, npyOf(test)), p.Y
		}
		_, err := npy.Load(p)
		return err
	},
	"npz": func(t *testing.T, layout string, train, test []int) error {
		p := npy.Pairs{X: "X", Y: "y", Layout: npy.Layout{Order: layout}}
		arrays := map[string][]byte{"X.npy": npyOf(train), "y.npy": array("|u1", "(2,)", 0, 1)}
		if test != nil {
			arrays["u.npy"], p.TestX, p.TestY = npyOf(test), "u", "y"
		}
		_, err := npy.LoadArchive(put(t, pack(t, arrays)), p)
		return err
	},
	"idx": func(t *testing.T, layout string, train, test []int) error {
		f := idx.Files{Images: put(t, idxOf(train)), Labels: put(t, bytesOf([]int{2}, 0, 1)), Layout: layout}
		if test != nil {
			f.TestImages, f.TestLabels = put(t, idxOf(test)), f.Labels
		}
		_, err := idx.LoadFiles(f)
		return err
	},
	"npy for a model": func(t *testing.T, layout string, train, test []int) error {
		_, err := npy.ReadOther(otherOf(put(t, npyOf(test)), train), npy.Pairs{Layout: npy.Layout{Order: layout}})
		return err
	},
	"idx for a model": func(t *testing.T, layout string, train, test []int) error {
		_, err := idx.ReadOther(otherOf(put(t, idxOf(test)), train), layout)
		return err
	},
}

func otherOf(path string, shape []int) datasets.Other {
	return datasets.Other{Path: path, Inputs: size(shape), Classes: []string{"0", "1"}, Shape: shape}
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// npyOf and idxOf are files of two samples of a shape.
func npyOf(shape []int) []byte {
	text := "(2,"
	for _, d := range shape {
		text += fmt.Sprint(d, ",")
	}
	return array("|u1", text+")", make([]byte, 2*size(shape)))
}

func idxOf(shape []int) []byte {
	return bytesOf(append([]int{2}, shape...), make([]int, 2*size(shape))...)
}

func TestSamplesOfAllFilesHaveOneShape(t *testing.T) {
	for name, load := range arrayReaders {
		for _, c := range [][2][]int{
			{{5, 7}, {7, 5}}, {{3, 7, 7}, {7, 7, 3}}, {{147}, {3, 7, 7}}, {{3, 7, 7}, {147}}, {{3, 7, 7}, {3, 49}},
			{{49}, {7, 7}}, {{7, 1, 7}, {1, 7, 7}},
		} {
			err := load(t, datasets.ChannelsFirst, c[0], c[1])
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(c[0])) ||
				!strings.Contains(err.Error(), fmt.Sprint(c[1])) || !strings.HasPrefix(err.Error(), "/") {
				t.Errorf("%s: %v and %v: %v", name, c[0], c[1], err)
			}
		}
		for _, c := range [][2][]int{{{5, 7}, {5, 7}}, {{28, 28}, {28, 28, 1}}, {{28, 28}, {1, 28, 28}}, {{9}, {9}},
			{{9}, {9, 1}}} {
			if err := load(t, datasets.ChannelsFirst, c[0], c[1]); err != nil {
				t.Errorf("%s: %v and %v: %v", name, c[0], c[1], err)
			}
		}
	}
}

func TestTheLastDimensionIsThatOfChannelsInImagesOnly(t *testing.T) {
	for name, load := range arrayReaders {
		model := strings.Contains(name, "model")
		for _, shape := range [][]int{{7, 7}, {147}, {1}} {
			err := load(t, datasets.ChannelsLast, shape, shape)
			if err == nil || !strings.Contains(err.Error(), "(N, H, W, C)") ||
				!strings.Contains(err.Error(), fmt.Sprint(shape)) {
				t.Errorf("%s: %v: %v", name, shape, err)
			}
			if !model && load(t, datasets.ChannelsLast, shape, nil) == nil {
				t.Errorf("%s: %v without a test file: no error", name, shape)
			}
		}
		test := []int{7, 5, 3}
		train := test
		if model {
			train = []int{3, 7, 5}
		}
		if err := load(t, datasets.ChannelsLast, train, test); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All readers of text accept the same notations of numbers.
func TestAllReadersTakeNumbersInDecimals(t *testing.T) {
	readers := map[string]func(t *testing.T, number string) error{
		"csv": func(t *testing.T, number string) error {
			_, err := csv.Load(put(t, []byte("1,x\n"+number+",y\n")), "",
				csv.Options{Label: csv.Last, Header: csv.Absent})
			return err
		},
		"libsvm": func(t *testing.T, number string) error {
			_, err := libsvm.Load(put(t, []byte("1 1:1\n2 1:"+number+"\n")), "", 0)
			return err
		},
		"libsvm's label": func(t *testing.T, number string) error {
			_, err := libsvm.Load(put(t, []byte("7 1:1\n"+number+" 1:1\n")), "", 0)
			return err
		},
	}
	nslkdd := publishedTexts()[0]
	readers[nslkdd.name] = func(t *testing.T, number string) error {
		_, err := nslkdd.load(t, put(t, []byte(strings.Replace(connection, "491", number, 1)+"\n")))
		return err
	}
	for name, read := range readers {
		for _, number := range []string{"1", "1.5", "1e1", "1E+1", ".5", "5.", "+4"} {
			if err := read(t, number); err != nil {
				t.Errorf("%s: %s: %v", name, number, err)
			}
		}
		for _, number := range []string{"1_0", "0x10", "0x10p0", "0X1P4", "inf", "-Infinity", "nan", "1e999", "1e", "--1",
			"0b1", "1f", "٣"} {
			if err := read(t, number); err == nil || !strings.Contains(err.Error(), "not a number") {
				t.Errorf("%s: %s: %v", name, number, err)
			}
		}
	}
}

// Readers refuse a training or test label that is almost a whole number.
func TestLabelsAreWholeBeforeTheyAreRounded(t *testing.T) {
	x, good := put(t, npyOf([]int{3})), put(t, array("<f8", "(2,)", 0., 1.))
	for _, near := range []float64{0.999999999, 1e-300, 1 - 1e-16, -0.00000001} {
		bad := put(t, array("<f8", "(2,)", 1., near))
		for _, p := range []npy.Pairs{{X: x, Y: bad}, {X: x, Y: good, TestX: x, TestY: bad}} {
			_, err := npy.Load(p)
			if err == nil ||
				!strings.Contains(err.Error(), fmt.Sprintf("label %v of sample 1; accepted are whole", near)) {
				t.Errorf("%v: %v", near, err)
			}
		}
		o := otherOf(x, []int{3})
		o.Labelled, o.Labels = true, bad
		if _, err := npy.ReadOther(o, npy.Pairs{}); err == nil || !strings.Contains(err.Error(), "whole numbers") {
			t.Errorf("%v: %v", near, err)
		}
	}
	s, err := libsvm.Load(put(t, []byte("1 1:1\n0.999999999 1:2\n")), "", 0)
	if err != nil || !slices.Equal(s.Pool.Classes, []string{"0.999999999", "1"}) {
		t.Errorf("libsvm: %v", err)
	}
}

// Tables joined by cat have a byte order mark, and perhaps a header, in their middle.
func TestJoinedTablesAreReadAsOne(t *testing.T) {
	const table = "\ufeffa,label\n1,x\n2,y\n"
	options := csv.Options{Label: csv.Last}
	s, err := csv.Load(put(t, []byte(table+table)), "", options)
	if err != nil || !slices.Equal(s.Pool.X, []float32{1, 2, 1, 2}) || len(s.Files[0].Notes) != 1 ||
		!strings.Contains(
			s.Files[0].Notes[0],
			"repeat the header are passed over, 1 in all, the first of them line 4",
		) {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = csv.Load(put(t, []byte(strings.TrimSuffix(table, "\n")+table)), "", options)
	if err == nil || !strings.Contains(err.Error(), "file:3: ") || !strings.Contains(err.Error(), "byte order mark") {
		t.Errorf("without a last line end: %v", err)
	}
	if _, err := libsvm.Load(put(t, []byte("\ufeff1 1:1\n2 1:2\n\ufeff1 1:3\n")), "", 0); err != nil {
		t.Error(err)
	}
}

func TestLinesOfTabsAreEmptyUnlessTheyAreMissingValues(t *testing.T) {
	for separator, between := range map[string]string{"tab": "\t", "comma": ",", "bar": "|", "semicolon": ";"} {
		text := strings.ReplaceAll("\t\na,b,label\n1,2,x\n\t\n3,4,y\n\t", ",", between)
		s, err := csv.Load(put(t, []byte(text)), "", csv.Options{Label: csv.Last, Separator: separator})
		if err != nil || !slices.Equal(s.Pool.X, []float32{1, 2, 3, 4}) {
			t.Errorf("%s: %v", separator, err)
		}
	}
	_, err := csv.Load(
		put(t, []byte("a\tb\tlabel\n1\t2\tx\n\t\t\n")),
		"",
		csv.Options{Label: csv.Last, Separator: "tab"},
	)
	if err == nil || !strings.Contains(err.Error(), "missing values") {
		t.Errorf("a sample without values: %v", err)
	}
}

package libsvm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/hostile"
	"github.com/gradwire/gradwire/datasets/input"
)

const small = "# two classes\n+1 1:0.5 3:-2e1 # the first\r\n\n  -1\t2:1 \n1.0 3:.25"

func compressed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadWritesOutWhatALineLeavesOut(t *testing.T) {
	want := &datasets.Set{Name: "f", X: []float32{0.5, 0, -20, 0, 1, 0, 0, 0, 0.25}, Y: []int32{1, 0, 1}, Inputs: 3,
		Classes: []string{"-1", "+1"}}
	for _, text := range []string{small, compressed(t, small)} {
		got, err := Read(strings.NewReader(text), "f", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestOptionsGiveTheWidthAndTheClasses(t *testing.T) {
	got, err := Read(strings.NewReader("+1 2:7\n"), "f", Options{Inputs: 4, Classes: []string{"3", "1", "2"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&datasets.Set{Name: "f", X: []float32{0, 7, 0, 0}, Y: []int32{1}, Inputs: 4,
		Classes: []string{"3", "1", "2"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadTextIsToldWithItsLineAndWhatIsAccepted(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "f: no samples",
		"# nothing\n\n":                       "f: no samples",
		"1\n2\n":                              "f: no sample has an input",
		"1 1:1\nx 1:1":                        `f:2: label "x" is not a number`,
		"nan 1:1":                             `f:1: label "nan" is not a number`,
		"1 1":                                 `f:1: "1" is not of the form index:value`,
		"1 qid:3 1:1":                         `f:1: "qid:3" is the number of a query`,
		"1 0:1":                               `f:1: index "0"; accepted is a whole number from 1`,
		"1 -4:1":                              `f:1: index "-4"; accepted`,
		"1 1048577:1":                         `f:1: index "1048577"; accepted`,
		"1 99999999999999999999:1":            `f:1: index "99999999999999999999"; accepted`,
		"1 2:1 2:1":                           "f:1: index 2 after 2; indices must ascend",
		"1 3:1 2:1":                           "f:1: index 2 after 3; indices must ascend",
		"1 1:":                                `f:1: value of input 1: "" is not a number`,
		"1 1:inf":                             `f:1: value of input 1: "inf" is not a number`,
		"1 1:1e39":                            `f:1: value of input 1: "1e39" is not a number from -3.4`,
		"1 1:1:1":                             `f:1: value of input 1: "1:1" is not a number`,
		"\x1f\x8bjunk":                        "f: gzip: ",
		compressed(t, small)[:30]:             "unexpected EOF",
		strings.Repeat("1", input.MaxLine+10): "f:1: line longer than 1048576 bytes",
		strings.Repeat("1 1048576:1\n", 20): "f:17: 17 samples of 1048576 inputs take 71303576 bytes " +
			"when every input is written out; " +
			"accepted are 67108864 and 4 for each of the 204 bytes of text",
	} {
		if _, err := Read(strings.NewReader(text), "f", Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
	}
}

func TestRealValuedTargetsAreNotTakenForClasses(t *testing.T) {
	text := ""
	for i := range MaxClasses + 1 {
		text += fmt.Sprintf("%d.5 1:1\n", i)
	}
	_, err := Read(strings.NewReader(text), "f", Options{})
	if err == nil || !strings.Contains(err.Error(), "f:1001: ") || !strings.Contains(err.Error(),
		"one more than 1000 different ones") {
		t.Errorf("error %v", err)
	}
}

func TestWhatTheOptionsExcludeIsRefused(t *testing.T) {
	for want, o := range map[string]Options{
		`f:1: label "1" is none of the classes ["2" "3"]`:                 {Classes: []string{"2", "3"}},
		`f:1: index "3"; accepted is a whole number from 1 to 2`:          {Inputs: 2},
		`f: class "x" is not a number`:                                    {Classes: []string{"x"}},
		`f: -1 inputs are asked for; accepted are 1 to 1048576, or 0 for`: {Inputs: -1},
	} {
		if _, err := Read(strings.NewReader("1 3:1"), "f", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrainAndTestFilesHaveOneWidthAndTheSameClasses(t *testing.T) {
	dir := t.TempDir()
	narrow, wide, other := write(t, dir, "narrow", "1 1:1\n2 2:1\n"), write(t, dir, "wide", "2 3:1\n"), write(t, dir,
		"other", "3 1:1\n")
	for _, files := range [][2]string{{wide, write(t, dir, "less", "2 1:1\n")}, {narrow, narrow}} {
		s, err := Load(files[0], files[1], 0)
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			t.Error(err)
		} else if len(s.Pool.Numeric) != s.Pool.Inputs {
			t.Errorf("%d of %d columns are numeric", len(s.Pool.Numeric), s.Pool.Inputs)
		}
	}
	if s, err := Load(narrow, "", 5); err != nil || s.Test != nil || s.Pool.Inputs != 5 {
		t.Errorf("got %+v and error %v", s, err)
	}
	if _, err := Load(narrow, wide, 0); err == nil || !strings.Contains(err.Error(), wide+":1: index 3; the training "+
		"file "+narrow+" has none above 2; features: 3 gives") {
		t.Errorf("error %v", err)
	}
	if _, err := Load(narrow, other, 0); err == nil || !strings.Contains(err.Error(),
		other+`:1: label "3" is none of the classes ["1" "2"]`) {
		t.Errorf("error %v", err)
	}
}

func TestLoadSaysHowToGetWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := LoadA9A(dir, false)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir, "a9a")) ||
		!strings.Contains(err.Error(), "https://www.csie.ntu.edu.tw") {
		t.Errorf("error %v", err)
	}
}

// measure sums what the published files are compared by: samples of each class, non-zeros,
// the sum of their indices, that weighted with the row modulo 97, and some columns' counts.
func measure(s *datasets.Set) []int {
	counts := s.Counts()
	m := []int{s.Len(), counts[0], counts[1], 0, 0, 0}
	columns := map[int]int{}
	for i := range s.Len() {
		for j, x := range s.Row(i) {
			if x == 1 {
				m[3]++
				m[4] += j + 1
				m[5] += (i + 1) % 97 * (j + 1)
				columns[j+1]++
			}
		}
	}
	return append(m, columns[1], columns[40], columns[83], columns[122], columns[123])
}

// The figures were taken from the files with awk, and agree with those published beside them.
func TestPublishedFilesAreReadAsPublished(t *testing.T) {
	dir := os.Getenv("GRADWIRE_DATA")
	if dir == "" {
		t.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	s, err := LoadA9A(dir, true)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{32561, 24720, 7841, 451592, 22513357, 1080091072, 6411, 14976, 29170, 20, 1},
		measure(s.Pool)); diff != "" {
		t.Errorf("training samples: %s", diff)
	}
	if diff := cmp.Diff([]int{16281, 12435, 3846, 225731, 11254800, 539805095, 3216, 7403, 14662, 10, 0},
		measure(s.Test)); diff != "" {
		t.Errorf("test samples: %s", diff)
	}
	if diff := cmp.Diff([]string{"-1", "+1"}, s.Pool.Classes); diff != "" || s.Pool.Inputs != 123 {
		t.Errorf("%d inputs, classes %s", s.Pool.Inputs, diff)
	}
}

// Whatever the bytes are, Read fails or makes a valid set within its bounds.
func FuzzRead(f *testing.F) {
	hostile.Seed(f, []byte(small), []byte("1 1:1\n"), []byte("1 1:1e-400 2:-0 3:0x1p-3\n2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(bytes.NewReader(text), "f", Options{})
		if err != nil {
			if e := hostile.Refused(err, "f"); e != nil {
				t.Error(e)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		if len(text) > 1 && text[0] != 0x1f && 4*len(s.X) > input.Slack+input.Factor*len(text) {
			t.Errorf("%d numbers from %d bytes", len(s.X), len(text))
		}
	})
}

func BenchmarkLoadA9A(b *testing.B) {
	dir := os.Getenv("GRADWIRE_DATA")
	if dir == "" {
		b.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := LoadA9A(dir, true); err != nil {
			b.Fatal(err)
		}
	}
}

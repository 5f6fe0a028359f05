package csv

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/hostile"
	"github.com/gradwire/gradwire/datasets/input"
)

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

func TestColumnsAreWhatTheOptionsSay(t *testing.T) {
	const table = "\ufeffid, age ,colour,income\r\n1,30.5,red,low\r\n\r\n2,-4e1,\"blue, " +
		"\"\"light\"\"\",high\r\n3,.5,red,high"
	for _, text := range []string{table, compressed(t, table), strings.ReplaceAll(table, "\r\n", "\n")} {
		for _, o := range []Options{
			{Label: "income", Words: []string{"colour"}, Ignore: []string{"id"}},
			{Label: Last, Words: []string{"3"}, Ignore: []string{"1"}},
			{Label: "4", Words: []string{"colour"}, Ignore: []string{"1"}, Header: Present},
		} {
			got, err := Read(strings.NewReader(text), "f", o)
			if err != nil {
				t.Fatal(err)
			}
			want := &datasets.Set{
				Name: "f", X: []float32{30.5, 0, 1, -40, 1, 0, 0.5, 0, 1}, Y: []int32{1, 0, 0},
				Inputs: 3, Classes: []string{"high", "low"}, Numeric: []int{0},
				Columns: []string{"age", `colour=blue, "light"`, "colour=red"},
				Layout: &datasets.Layout{Header: true, Columns: []datasets.Column{
					{Name: "id", Use: "ignored"}, {Name: "age", Use: "number"},
					{Name: "colour", Use: "word", Words: []string{`blue, "light"`, "red"}},
					{Name: "income", Use: "label", Words: []string{"high", "low"}},
				}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", o, diff)
			}
		}
	}
}

func TestLabelsThatAreNumbersAreInTheirOrder(t *testing.T) {
	got, err := Read(strings.NewReader("1,10\n2,9\n3,-1\n4,9\n"), "f", Options{Label: Last})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Classes, []string{"-1", "9", "10"}) || !slices.Equal(got.Y, []int32{2, 1, 0, 1}) {
		t.Errorf("classes %q, labels %v", got.Classes, got.Y)
	}
}

func TestSeparatorsAreThoseOfTheOptions(t *testing.T) {
	for separator, text := range map[string]string{
		"": "1,2,x\n3,4,y\n", "comma": "1,2,x\n3,4,y\n", "semicolon": "1;2;x\n3;4;y\n", "tab": "1\t2\tx\n3\t4\ty\n",
		"bar": "1|2|x\n3|4|y\n",
	} {
		got, err := Read(strings.NewReader(text), "f", Options{Label: "3", Header: Absent, Separator: separator})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.X, []float32{1, 2, 3, 4}) {
			t.Errorf("%q: %v", separator, got.X)
		}
	}
}

func TestASeparatorIsNamedByAWord(t *testing.T) {
	_, err := Load("nowhere.csv", "", Options{Label: Last, Separator: ";"})
	if err == nil || err.Error() != `separator ";"; accepted are comma, semicolon, tab and bar` {
		t.Error(err)
	}
}

func TestAHeaderIsToldFromASample(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n1,x\n":                 "1",
		"1,x\n2,y\n":                 "2",
		"1,3\n3,4\n":                 "2",
		"x,y\n1,2\n":                 "1",
		"a,b\nc,d\n":                 "f:2: it cannot be told whether the line before is a header",
		"1,y\n2,3\n":                 "f:2: it cannot be told whether the line before is a header",
		"1,3\nx,3\n":                 `f:2: column 1 (1): "x" is not a number`,
		"x,2\n\n3,1\n":               "f:3: it cannot be told",
		"nan,1\n1,2\n":               "f:2: it cannot be told",
		"Infinity,label\n1,2\n3,2\n": "2",
	} {
		got, err := Read(strings.NewReader(text), "f", Options{Label: Last})
		n, isCount := strconv.Atoi(want)
		switch {
		case isCount == nil && (err != nil || got.Len() != n):
			t.Errorf("%q: %v, error %v", text, got, err)
		case isCount != nil && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestOptionsThatDoNotFitAreTold(t *testing.T) {
	for want, o := range map[string]Options{
		`f:1: there is no column "d"; accepted are names of a header, numbers from 1 to 3, ` +
			`and the word last`: {Label: "d"},
		`f:1: there is no column "4"`:                                      {Label: "4", Header: Present},
		`f:1: there is no column "0"`:                                      {Label: "0", Header: Present},
		`f:1: there is no column "-1"`:                                     {Label: "-1", Header: Present},
		`f:1: column 3 ("c") is given two roles`:                           {Label: "c", Ignore: []string{"3"}},
		`f:1: column 1 ("a") is given two roles`:                           {Label: "c", Words: []string{"a", "a"}},
		"f: no column is left beside the label; at least one is needed":    {Label: "c", Ignore: []string{"a", "b"}},
		`f:1: column 1 (1): "a" is not a number`:                           {Label: "3", Header: Absent},
		`f:1: a single field, "a,b,c"; a label and at least one input are`: {Label: "3", Separator: "semicolon"},
	} {
		_, err := Read(strings.NewReader("a,b,c\n1,2,x\n3,4,y\n"), "f", o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestATestFileHasTheColumnsAndWordsOfTheTrainingFile(t *testing.T) {
	train := write(t, "a,w,label\n1,red,x\n2,blue,y\n3,green,x\n")
	o := Options{Label: "label", Words: []string{"w"}}
	source, err := Load(train, write(t, "a,w,label\n7,green,y\n"), o)
	if err == nil {
		err = source.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{7, 0, 1, 0}, source.Test.X); diff != "" || source.Test.Y[0] != 1 {
		t.Errorf("label %d, inputs %s", source.Test.Y[0], diff)
	}
	for text, want := range map[string]string{
		"a,w,label\n7,red,z\n": `:2: column 3 (label): "z" does not occur in the training file, which has ["x" "y"]`,
		"a,label\n7,x\n":       ":1: 2 columns; the training file has 3",
		"b,w,label\n7,red,x\n": `:1: column 1 is named "b"; the training file names it "a"`,
		"7,red,x\n":            `:1: column 1 is named "7"; the training file names it "a"`,
		"a,w,label\n":          ": no samples",
	} {
		path := write(t, text)
		if _, err := Load(train, path, o); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := Load(train, filepath.Join(t.TempDir(), "nowhere"), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// Whatever encoding/csv writes is read as the numbers and words that it was given.
func TestTablesOfTheStandardLibraryAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 6).Draw(t, "columns")
		word := rapid.StringMatching(`[a-zA-Zé",;' ]{0,8}[a-z"]`)
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF = rapid.Bool().Draw(t, "CRLF")
		var x []float32
		var labels []string
		for range rapid.IntRange(1, 200).Draw(t, "rows") {
			var record []string
			for range columns {
				v := rapid.Float32().Draw(t, "number")
				x = append(x, v)
				record = append(record, strconv.FormatFloat(float64(v), 'g', -1, 32))
			}
			labels = append(labels, strings.TrimLeft(word.Draw(t, "label"), " "))
			if err := w.Write(append(record, labels[len(labels)-1])); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		got, err := Read(bytes.NewReader(b.Bytes()), "f", Options{Label: Last, Header: Absent})
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.X, x) {
			t.Fatalf("inputs %v, want %v", got.X, x)
		}
		for i, want := range labels {
			if name := got.Classes[got.Y[i]]; name != want {
				t.Fatalf("label %q, want %q", name, want)
			}
		}
	})
}

func TestALongTableIsReadInLittleMoreThanItsInputsTake(t *testing.T) {
	var b bytes.Buffer
	const rows = 200_000
	for i := range rows {
		fmt.Fprintf(&b, "%d,%d,%d,%d,c%d\n", i%10, i%7, i%5, i%3, i%2)
	}
	cost, err := hostile.Cost(func() error {
		_, err := Read(bytes.NewReader(b.Bytes()), "f", Options{Label: Last})
		return err
	})
	if inputs := uint64(4 * 4 * rows); err != nil || cost > 3*inputs+(2<<20) {
		t.Errorf("%d bytes allocated for %d of inputs: %v", cost, inputs, err)
	}
}

func TestSpambaseIsReadAsPublished(t *testing.T) {
	dir := os.Getenv("GRADWIRE_DATA")
	if dir == "" {
		t.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	source, err := LoadSpambase(dir)
	if err == nil {
		err = source.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	pool := source.Pool
	if diff := cmp.Diff([]int{2788, 1813}, pool.Counts()); diff != "" || pool.Inputs != 57 || len(pool.Numeric) != 57 ||
		source.Test != nil {
		t.Errorf("%d inputs, samples of each class %s", pool.Inputs, diff)
	}
	f, err := os.Open(filepath.Join(dir, "spambase", "spambase.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil || len(records) != pool.Len() {
		t.Fatalf("%d records: %v", len(records), err)
	}
	for i, record := range records {
		for j, text := range record[:57] {
			want, err := strconv.ParseFloat(text, 32)
			if err != nil || pool.Row(i)[j] != float32(want) {
				t.Fatalf("sample %d, input %d is %v, want %s", i, j, pool.Row(i)[j], text)
			}
		}
		if want := map[string]int32{"0": 0, "1": 1}[record[57]]; pool.Y[i] != want {
			t.Fatalf("sample %d has label %d", i, pool.Y[i])
		}
	}
}

func TestAnotherTableIsNotSpambase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spambase.data")
	if err := os.WriteFile(path, []byte("1,2,0\n3,4,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSpambase(dir); err == nil || !strings.Contains(err.Error(),
		path+`: 2 inputs and the classes ["0" "1"]; 57 and`) {
		t.Errorf("error %v", err)
	}
	if _, err := LoadSpambase(t.TempDir()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(),
		"gradwire data get spambase") {
		t.Errorf("error %v", err)
	}
}

// Whatever the bytes are, Read fails or makes a valid set within its bounds.
func FuzzRead(f *testing.F) {
	hostile.Seed(f, []byte("a,b,label\n1,2,x\n3,4,y\n"), []byte("\"1\",\"x\"\"y\"\n2,z"), []byte("1\t2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, o := range []Options{{Label: Last}, {Label: "1", Header: Absent, Words: []string{"2"}},
			{Label: Last, Missing: Mean, Marks: Marks(), Words: []string{"1"}}, {Label: Last, Missing: Drop, By: "1"}} {
			s, err := Read(bytes.NewReader(text), "f", o)
			if err != nil {
				if e := hostile.Refused(err, "f"); e != nil {
					t.Error(e)
				}
				continue
			}
			if err := s.Validate(); err != nil {
				t.Error(err)
			}
			if text[0] != 0x1f && 4*len(s.X) > input.Slack+input.Factor*len(text) {
				t.Errorf("%d numbers from %d bytes", len(s.X), len(text))
			}
		}
	})
}

// Read reads one table; see Load.
func Read(r io.Reader, name string, o Options) (*datasets.Set, error) {
	t, err := o.read(nil)(r, name)
	if err != nil {
		return nil, err
	}
	if err := checkFirstLines([]*table{t}); err != nil {
		return nil, err
	}
	return t.set(name), nil
}

// Whatever another file holds, its samples have the inputs of the layout, and each is taken or left
// out.
func FuzzReadOther(f *testing.F) {
	for _, text := range []string{"age,colour,income\n1,red,low\n2,,high\n", "colour,age\nteal,3\n,\n",
		"income,age,colour,id\nlow,NA,red,x\n", "age,age,colour\n", "\n\n", "age,colour\n\"1\",\"re\"\"d\"\n"} {
		for missing := range uint8(4) {
			f.Add(text, missing, true, true)
			f.Add(text, missing, false, false)
		}
	}
	layout := &datasets.Layout{Columns: []datasets.Column{{Name: "age", Use: datasets.Number},
		{Name: "colour", Use: datasets.Word, Words: []string{"blue", "red"}}, {Name: "id", Use: datasets.Ignored},
		{Name: "income", Use: datasets.Label, Words: []string{"high", "low"}}}}
	f.Fuzz(func(t *testing.T, text string, missing uint8, header, labelled bool) {
		of := *layout
		of.Header = header
		others, err := ReadOther(datasets.Other{Text: strings.NewReader(text), Inputs: 3, Classes: []string{"h", "l"},
			Layout: &of, Labelled: labelled},
			Options{Label: "income", Missing: []Missing{Refuse, Drop, Mean, Constant}[missing%4],
				Marks: []string{"NA"}})
		if err != nil {
			return
		}
		s := others.Set
		if err := s.Validate(); err != nil || s.Inputs != 3 || others.Total < s.Len() ||
			others.Rows != nil && len(others.Rows) != s.Len() || others.Rows == nil && others.Total != s.Len() {
			t.Fatalf("%v: %d samples of %d inputs, rows %v of %d", err, s.Len(), s.Inputs, others.Rows, others.Total)
		}
	})
}

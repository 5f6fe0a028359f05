package csv

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTablesAsPeopleHaveThem(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		options Options
		columns []string
		x       []float32
		classes []string
		note    string
	}{
		"line breaks in quotes": {text: "a,note,label\n1,\"two\nlines, \"\"so\"\"\n\n\",x\n2,\"one\",y\n",
			options: Options{Ignore: []string{"note"}}, columns: []string{"a"}, x: []float32{1, 2}, classes: []string{"x", "y"}},
		"line breaks in names and words": {text: "a,\"b\nin m\",\"the\r\nlabel\"\n1,\"x\ny\",\"l\rm\"\n2,\"x\ny\",n\n",
			options: Options{Words: []string{"b in m"}}, columns: []string{"a", "b in m=x y"}, x: []float32{1, 1, 2, 1},
			classes: []string{"l m", "n"}},
		"Excel's line about the separator": {text: "sep=,\na,label\n1,x\n2,y\n", columns: []string{"a"},
			x: []float32{1, 2}, classes: []string{"x", "y"}},
		"two columns of one name": {text: " Len, Len,Len,Label\n1,2,3,x\n4,5,6,y\n", options: Options{Ignore: []string{"2"}},
			columns: []string{"Len", "Len.2"}, x: []float32{1, 3, 4, 6}, classes: []string{"x", "y"},
			note: `columns have the names of earlier ones; they are called ["Len.1" "Len.2"]`},
		"a repeated header": {text: "a,label\n1,x\na,label\n2,y\na,label\n", columns: []string{"a"}, x: []float32{1, 2},
			classes: []string{"x", "y"},
			note:    "lines that repeat the header are passed over, 2 in all, the first of them line 3"},
		"Windows-1252": {text: "a,label\n1,caf\xe9\n2,\x8auma \x80\n", options: Options{Encoding: Windows1252},
			columns: []string{"a"}, x: []float32{1, 2}, classes: []string{"café", "Šuma €"}},
		"a header with #": {text: "# by hand, 2021, all mine\n#a,label\n1,x\n# half\n2,y\n", columns: []string{"#a"},
			x: []float32{1, 2}, classes: []string{"x", "y"}},
	} {
		c.options.Label = Last
		source, err := Load(write(t, c.text), "", c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := source.Pool
		if diff := cmp.Diff([]any{c.columns, c.x, c.classes}, []any{s.Columns, s.X, s.Classes}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if notes := source.Files[0].Notes; c.note == "" && notes != nil ||
			c.note != "" && !slices.Equal(notes, []string{c.note}) {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

func TestAWordThatOnlyTheTestFileHasIsNoted(t *testing.T) {
	source, err := Load(write(t, "w,label\nred,1\nblue,2\n"), write(t, "w,label\nblue,1\ngreen,2\nblack,1\n"),
		Options{Label: Last, Words: []string{"w"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `column w has words that the training set has not, 2 in all, the first, "green", on line 3`
	if notes := source.Files[1].Notes; len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
		t.Errorf("notes %q", notes)
	}
	if diff := cmp.Diff([]float32{1, 0, 0, 0, 0, 0}, source.Test.X); diff != "" {
		t.Error(diff)
	}
}

func TestTablesOfOtherHabitsSayWhatToDo(t *testing.T) {
	semicolon := Options{Separator: "semicolon"}
	for name, c := range map[string]struct {
		text    string
		options Options
		says    []string
	}{
		"a decimal comma": {"a;b;label\n0,956;0,948;hi\n0,1;0,2;lo\n", semicolon,
			[]string{":2: column 1 (a)", `"0,956"`, "decimal point", `decimal=","`}},
		"a decimal comma without a header": {"0,956;0,948;hi\n0,1;0,2;lo\n", semicolon, []string{"decimal point"}},
		"a decimal comma in quotes":        {"a,label\n\"1,5\",x\n\"2,5\",y\n", Options{}, []string{"decimal point"}},
		"a separator at the end of each line": {"a,b,label,\n1,2,x,\n3,4,y,\n", Options{},
			[]string{"the last column has no name and is empty", "ignore: [4]"}},
		"such lines without a header": {"1,2,x,\n3,4,y,\n", Options{}, []string{"the last column has no name and is empty"}},
		"such lines where samples are left out": {"a,label,\n1,x,\n3,y,\n", Options{Missing: Drop},
			[]string{"the last column has no name and is empty"}},
		"such lines with a label that is named": {"a,label,\n1,x,\n3,y,\n", Options{Label: "label"},
			[]string{"the last column has no name and is empty", "ignore: [3]"}},
		"another separator than Excel says": {"sep=;\na;label\n1;x\n", Options{}, []string{":1:", "semicolon"}},
		"mixed line ends":                   {"a,label\n1,x\r2,y\n3,z\n", Options{}, []string{":2:", "carriage returns"}},
	} {
		if c.options.Label == "" {
			c.options.Label = Last
		}
		_, err := Load(write(t, c.text), "", c.options)
		for _, part := range c.says {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %v lacks %q", name, err, part)
			}
		}
	}
}

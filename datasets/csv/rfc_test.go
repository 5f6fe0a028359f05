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

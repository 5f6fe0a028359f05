package weights_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan/weights"
)

// The reader skips blank lines and comments, as the readers of traces and rates do.
func TestATableOfWeightsMayHaveCommentsAndBlankLines(t *testing.T) {
	want := map[string]float64{"a": 2.5, "b": 0.5}
	for _, text := range []string{
		"a,2.5\nb,0.5\n", "class,weight\na,2.5\nb,0.5", "# by hand\n\nclass,weight\n\na,2.5\n# rare\nb,0.5\n\n\n",
		"a,2.5 # rare\nb,0.5# common, as in 9 of 10\n", "  # one, two\nclass , weight # both\n a , 2.5 \n \t\nb\t,\t0.5\t\n",
		"class,weight\r\na,2.5\r\n\r\n# x\r\nb,0.5\r\n\r\n", "\"a\",\"2.5\"\n\"b\",0.5\n", "#\n#a,9\na,2.5\nb,0.5\n",
	} {
		if got, err := weights.Read(strings.NewReader(text), "f"); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, class := range map[string]string{"C#,2\n": "C#", "\"#1\",2 # x\n": "#1", "\"a, b # c\",2\n": "a, b # c",
		"\"say \"\"#\"\"\",2 # x\n": `say "#"`} {
		if got, err := weights.Read(strings.NewReader(text), "f"); err != nil || got[class] != 2 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"# a\n\nb\n":             "f:3: columns separated by commas: found 1, accepted are 2; accepted are a class",
		"\n# a,2\n":              "f: no weights; accepted are lines of a class and its weight",
		"\n\na,x # 2\n":          `f:3: "x" is not a number`,
		"a,2\n\n# x\nweight,3,4": "f:4: columns separated by commas: found 3, accepted are 2",
		"a,2\n\n\"b,3\n":         "f:3: ",
		"a;2\n":                  "f:1: columns separated by commas: found 1, accepted are 2",
		"0,a,2\n1,b,3\n":         "f:1: columns separated by commas: found 3, accepted are 2",
	} {
		if _, err := weights.Read(strings.NewReader(text), "f"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

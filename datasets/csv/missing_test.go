package csv

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets/input"
)

const holes = `age,colour,weight,label
10,red,1,x
,red,2,y
30,NA,3,x
?,,4,y
50,blue,5,
60,blue,na,x
`

func TestMissingValuesBecomeWhatTheOptionsSay(t *testing.T) {
	nan := float32(math.NaN())
	rows := "age,colour,weight,label\n10,red,1,x\n,red,2,y\n30,NA,3,x\n?,,4,y\n60,blue,-,x\n"
	for _, c := range []struct {
		missing Missing
		text    string
		x       []float32
		found   input.Missing
	}{
		{Drop, holes, []float32{10, 0, 1, 1, 60, 1, 0, 7}, input.Missing{Values: 5, Samples: 4, Done: "drop"}},
		{Mean, rows, []float32{10, 0, 1, 1, nan, 0, 1, 2, 30, 0, 0, 3, nan, 0, 0, 4, 60, 1, 0, nan},
			input.Missing{Values: 5, Samples: 4, Done: "mean"}},
		{Constant, rows, []float32{10, 0, 1, 1, -7.5, 0, 1, 2, 30, 0, 0, 3, -7.5, 0, 0, 4, 60, 1, 0, -7.5},
			input.Missing{Values: 5, Samples: 4, Done: "constant"}},
		{Mean, "a,label\n1,x\n", []float32{1}, input.Missing{Done: "mean"}},
		{Refuse, "a,label\n1,x\n", []float32{1}, input.Missing{}},
	} {
		o := Options{Label: "label", Words: []string{"colour"}, Missing: c.missing, Marks: []string{"NA", "?", "-"}}
		if c.missing == Constant {
			o.Constant = -7.5
		}
		if !strings.Contains(c.text, "colour") {
			o.Words = nil
		}
		source, err := Load(write(t, strings.Replace(c.text, "60,blue,na", "60,blue,7", 1)), "", o)
		if err != nil {
			t.Errorf("%s: %v", c.missing, err)
			continue
		}
		same := func(a, b float32) bool { return a == b || a != a && b != b }
		if err := source.Validate(); err != nil || !slices.EqualFunc(source.Pool.X, c.x, same) ||
			source.Pool.Gaps != (c.missing == Mean) || source.Files[0].Missing != c.found {
			t.Errorf("%s: %v, gaps %v, %+v; want %v, %+v: %v", c.missing, source.Pool.X, source.Pool.Gaps,
				source.Files[0].Missing, c.x, c.found, err)
		}
	}
}

func TestMissingValuesThatCannotBeFilledAreTold(t *testing.T) {
	for _, c := range []struct {
		o    Options
		text string
		want string
	}{
		{Options{Missing: Mean, Marks: Marks()}, strings.Replace(holes, "na,x", "1,x", 1),
			":6: column 4 (label): the label is missing; missing: drop leaves such samples out"},
		{Options{Missing: Drop}, "a,label\n,x\n2,\n", ": no samples are left: a value is missing in each of 2"},
		{Options{Missing: Mean, Words: []string{"1"}}, "a,label\n,x\n,y\n",
			": the only columns beside the label are of words, and every word is missing"},
		{Options{Missing: Constant, Words: []string{"1"}}, "a,label\n,x\n", "; at least one value is needed"},
		{Options{Missing: Drop, Marks: []string{"?"}}, "a,label\nNA,x\n", `:2: column 1 (a): "NA" is not a number`},
		{Options{}, holes, `:3: column 1 (age): "" is not a number`},
		{Options{}, holes, "; missing values are left out or filled with missing: drop, mean or constant"},
		{Options{Marks: []string{"NA"}}, "a,label\nNA,x\n", "; missing values are left out or filled with missing:"},
		{Options{Missing: "zero"}, holes, `: missing "zero"; accepted are refuse, drop, mean and constant`},
		{Options{Missing: Constant, Constant: math.Inf(1)}, holes, ": constant +Inf; accepted are numbers from"},
		{Options{Missing: Constant, Constant: 1e39}, holes, ": constant 1e+39; accepted are numbers from"},
	} {
		c.o.Label, c.o.Header = "label", Present
		if strings.Contains(c.text, "colour") {
			c.o.Words = []string{"colour"}
		}
		path := write(t, c.text)
		_, err := Load(path, "", c.o)
		if err == nil || !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %s", c.o, err, c.want)
		}
	}
}

// A first sample with a hole in it is still no header, and a header above one still is.
func TestAHeaderIsToldFromASampleWithHoles(t *testing.T) {
	for text, want := range map[string]int{",2,x\n1,2,y\n": 2, "a,b,label\n,2,x\n": 1, "1,2,x\n3,,y\n": 2} {
		s, err := Read(strings.NewReader(text), "f", Options{Label: Last, Missing: Constant})
		if err != nil || s.Len() != want {
			t.Errorf("%q: %v, %v; want %d samples", text, s, err, want)
		}
	}
}

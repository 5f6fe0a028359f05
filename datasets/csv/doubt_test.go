package csv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// countingLines are first lines that can be a header or a sample; only the plan can decide.
var countingLines = []struct {
	header  string
	options Options
	columns int
	stated  int // samples with header: absent; 0 where the columns differ with a header
}{
	{"0,1,2", Options{}, 3, 4},
	{"1,2,3", Options{}, 3, 4},
	{"0,1", Options{}, 2, 4},
	{"1,2", Options{}, 2, 4},
	{`"0","1","2"`, Options{}, 3, 4},
	{" 0 , 1 , 2 ", Options{}, 3, 4},
	{"0.0,1.0,2.0", Options{}, 3, 0},
	{",0,1,2", Options{}, 4, 0},
	{`"",0,1,2`, Options{Missing: Drop}, 4, 3},
	{",0,1,2", Options{Missing: Mean}, 4, 4},
	{",0,1,2", Options{Missing: Constant}, 4, 4},
	{"0;1;2", Options{Separator: "semicolon"}, 3, 4},
	{"0,1,2,0", Options{}, 4, 4},           // pandas.concat of a frame and a series
	{"0,0,1,2", Options{Label: "1"}, 4, 0}, // pandas.concat of a series and a frame
	{"0,1,2,0.1", Options{}, 4, 4},         // 0,1,2,0 after pandas has read and written it
	{"0,1,2,label", Options{}, 4, 4},       // labels are words
	{"0,1,label", Options{}, 3, 4},
	{"0,1,label,2,3", Options{Label: "3"}, 5, 0}, // a label between the inputs
	{"label,0,1,2", Options{Label: "1"}, 4, 0},
	{"0,1,2", Options{Label: "2"}, 3, 0},
	{"\ufeff0,1,2", Options{}, 3, 4},
	{"# frame\n0,1,2", Options{}, 3, 4},
}

// below returns a table under a given first line: 3 samples of 3 classes.
func (o Options) below(header string, columns int) string {
	separator := ","
	if o.Separator != "" {
		separator = ";"
	}
	text := header + "\n"
	for i := range 3 {
		row := slices.Repeat([]string{fmt.Sprint(0.5 + float64(i))}, columns)
		label := columns - 1
		if n, err := strconv.Atoi(o.Label); err == nil {
			label = n - 1
		}
		if row[label] = strconv.Itoa(i); strings.Contains(header, "label") {
			row[label] = []string{"x", "y", "z"}[i]
		}
		text += strings.Join(row, separator) + "\n"
	}
	return text
}

func TestALineThatCountsTheColumnsIsRefused(t *testing.T) {
	for _, c := range countingLines {
		if c.options.Label == "" {
			c.options.Label = Last
		}
		text := c.options.below(c.header, c.columns)
		_, err := Read(strings.NewReader(text), "f", c.options)
		if err == nil || !strings.Contains(err.Error(), "it cannot be told whether the line before is a header") ||
			!strings.Contains(err.Error(), "header: present or absent") {
			t.Errorf("%q: error %v", text, err)
		}
		if c.stated == 0 {
			continue
		}
		for header, want := range map[Header]int{Present: 3, Absent: c.stated} {
			c.options.Header = header
			if s, err := Read(strings.NewReader(text), "f", c.options); err != nil || s.Len() != want {
				t.Errorf("%q, header: %s: %v; want %d samples", text, header, err, want)
			}
		}
	}
	for _, sample := range []string{"1,x\n2,y\n", "1,2,x\n3,4,y\n", "0,0,0,1,0\n1,0,0,0,1\n", "5,0,0,1\n3,0,1,0\n",
		"2,3,4\n3,4,5\n", "0,1,1\n0.5,1,2\n"} {
		if s, err := Read(strings.NewReader(sample), "f", Options{Label: Last}); err != nil || s.Len() != 2 {
			t.Errorf("%q: %v", sample, err)
		}
	}
}

// A first line of numbers whose label no other line has may be a header; one whose label occurs again is a
// sample.
func TestAFirstLineWithALabelOfItsOwnIsRefused(t *testing.T) {
	const oaks, bits = "1,2,3,oak\n2,1,3,elm\n1,3,2,oak\n3,2,1,elm\n", "5,1,0\n3,2,1\n5,2,0\n4,1,1\n"
	for _, c := range []struct {
		text    string
		doubted bool
	}{
		{"400.0,402.5,405.0,species\n" + oaks, true},
		{"400.0,402.5,405.0,species\n1,2,3,oak\n2,1,3,elm\n", true},
		{"400.0,405.0,402.5,species\n1,2,3,oak\n2,1,3,elm\n1,3,2,oak\n", true},
		{"2019,2020,2021,l\n" + oaks, true},
		{"2019,2020,2021\n" + bits, true},
		{"7,1,2\n" + bits, true},
		{"0,1,label\n5,1,a\n3,2,b\n5,1,a\n", true},
		{"400.0,402.5,405.0,oak\n" + oaks, false},
		{"0,1,2,elm\n" + oaks, false},
		{"0,1,a\n1,0,b\n0,1,a\n1,0,c\n", false},
		{"2019,2021,1\n" + bits, false},
		{"7,1,ash\n1,2,oak\n2,1,elm\n", false},
		{"1,10\n2,9\n3,-1\n4,9\n", false},
	} {
		s, err := Read(strings.NewReader(c.text), "f", Options{Label: Last})
		switch {
		case !c.doubted && (err != nil || s.Len() != strings.Count(c.text, "\n")):
			t.Errorf("%q: %v", c.text, err)
		case c.doubted && (err == nil || !strings.Contains(err.Error(), "header: present or absent")):
			t.Errorf("%q: error %v", c.text, err)
		}
	}
	header := "400,405,402,species\n"
	parts := []Part{{"a", write(t, header+oaks)}, {"b", write(t, header+oaks)}}
	_, err := LoadParts(parts, "", Options{Label: Last})
	if err == nil || !strings.Contains(err.Error(), "header: present") {
		t.Errorf("parts: error %v", err)
	}
	parts = []Part{{"a", write(t, "7,8,1,ash\n"+oaks)}, {"b", write(t, oaks+"7,8,1,ash\n")}}
	if _, err := LoadParts(parts, "", Options{Label: Last}); err != nil {
		t.Errorf("a class of another part: %v", err)
	}
}

// The first line of a test file is refused if it counts the columns.
func TestALineThatCountsTheColumnsOfATestFileIsRefused(t *testing.T) {
	train, test := write(t, "0.5,0.1,0\n0.1,0.2,1\n0.1,0.2,2\n"), write(t, "0,1,2\n0.5,0.1,0\n")
	_, err := Load(train, test, Options{Label: Last})
	if err == nil || !strings.Contains(err.Error(), test+":1: the training file has no header") {
		t.Errorf("error %v", err)
	}
	if s, err := Load(train, test, Options{Label: Last, Header: Absent}); err != nil || s.Test.Len() != 2 {
		t.Errorf("header: absent: %v", err)
	}
}

// If a number is a common mark of a missing value, the error names the settings that accept it.
func TestAMarkOfAMissingValueIsTold(t *testing.T) {
	for _, mark := range append(slices.Clone(usual), "NULL", "None", "NA", "N/A", "#N/A", "NaN", "NIL", "Missing") {
		quoted := `"` + mark + `"`
		for _, marks := range [][]string{nil, {"x"}, Marks()} {
			for _, missing := range []Missing{Refuse, Drop, Mean, Constant} {
				o := Options{Label: Last, Header: Present, Missing: missing, Marks: marks}
				_, err := Read(strings.NewReader("a,b,label\n1,2,x1\n1,"+quoted+",y1\n3,4,x1\n"), "f", o)
				if missing != Refuse && slices.Contains(marks, mark) {
					if err != nil {
						t.Errorf("%s, missing: %s: %v", mark, missing, err)
					}
				} else if err == nil || !strings.HasPrefix(err.Error(), "f:3: column 2 (b): ") ||
					!strings.Contains(err.Error(), "marks") || !strings.Contains(err.Error(), "missing: drop") {
					t.Errorf("%s, marks %q, missing: %s: error %v", mark, marks, missing, err)
				}
			}
		}
	}
}

func TestALabelThatIsAMarkIsNoClass(t *testing.T) {
	marks := append(slices.Clone(usual), "NULL", "None", "NA", "N/A", "#N/A", "NaN", "")
	for _, mark := range marks {
		text := "a,b,label\n1,2,x1\n1,3,\"" + mark + "\"\n3,4,x1\n"
		for _, missing := range []Missing{Refuse, Drop, Mean, Constant} {
			o := Options{Label: Last, Header: Present, Missing: missing, Marks: Marks()}
			s, err := Read(strings.NewReader(text), "f", o)
			if missing == Drop && (mark == "" || slices.Contains(o.Marks, mark)) {
				if err != nil || s.Len() != 2 {
					t.Errorf("%q is not dropped: %v", mark, err)
				}
				continue
			}
			if err == nil || !strings.HasPrefix(err.Error(), "f:3: column 3 (label): ") ||
				!strings.Contains(err.Error(), "drop") {
				t.Errorf("%q, missing: %s: error %v", mark, missing, err)
			}
			if o.Marks = []string{"-9"}; mark == "" {
				continue
			}
			if s, err = Read(strings.NewReader(text), "f", o); err != nil || len(s.Classes) != 2 {
				t.Errorf("%q, marks without it, missing: %s: %v", mark, missing, err)
			}
			o.Marks, o.Missing = append(Marks(), mark), Drop
			if s, err = Read(strings.NewReader(text), "f", o); err != nil || s.Len() != 2 {
				t.Errorf("%q, marks with it: %v", mark, err)
			}
		}
	}
	o := Options{Label: Last, Header: Present, Marks: Marks()}
	s, err := Read(strings.NewReader("a,label\n1,-\n2,+\n"), "f", o)
	if err != nil || len(s.Classes) != 2 {
		t.Errorf("the classes + and -: %v", err)
	}
}

func TestAClassIsWrittenInOneWay(t *testing.T) {
	for _, labels := range [][2]string{{"1", "1.0"}, {"1.0", "1"}, {"1", "01"}, {"0", "-0"}, {"1e3", "1000"},
		{"x", `"x "`}, {`" x"`, "x"}, {"1", `" 1.0"`}, {"+1", "1"}, {"x", "'x'"}} {
		_, err := Read(strings.NewReader("a,label\n1,"+labels[0]+"\n2,y\n3,"+labels[1]+"\n"), "f", Options{Label: Last})
		if err == nil || !strings.HasPrefix(err.Error(), "f:4: column 2 (label): the label ") ||
			!strings.Contains(err.Error(), "accepted is one way to write each class") {
			t.Errorf("%q: error %v", labels, err)
		}
	}
}

// A column that a plan may describe wrongly gets a note.
func TestColumnsThatCanBeMeantOtherwiseAreNoted(t *testing.T) {
	for _, c := range []struct {
		text, want string
		words      []string
	}{
		{",a,label\n0,1.5,x\n1,1,y\n", "the first column has no name, as the index", nil},
		{"Unnamed: 0,a,label\n0,1.5,x\n1,1,y\n", "the first column has no name", nil},
		{"a,label\n1,True\n2,true\n", `the labels "True" and "true" are two classes, and differ in case only`, nil},
		{"a,w,label\n1,?,x\n2,red,y\n", `column w has the words ["?"], which stand for missing values`, []string{"w"}},
		{"5.1,3.5,x\n4,3,x\n1,2,y\n", `the header names a column "5.1": if it is a sample, say header: absent`, nil},
		{"a,w,label\n1,blue,x\n2,red,X1\n", "", []string{"w"}},
	} {
		s, err := Load(write(t, c.text), "", Options{Label: Last, Words: c.words, Header: Present})
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		notes := strings.Join(s.Files[0].Notes, "; ")
		if !strings.Contains(notes, c.want) || c.want == "" && notes != "" {
			t.Errorf("%q: notes %q, want %q", c.text, notes, c.want)
		}
	}
}

// An unnamed column gets a name that no other column has, even if others are named by numbers.
func TestColumnsWithoutANameDifferFromTheOthers(t *testing.T) {
	s, err := Read(strings.NewReader(",0,1,2\n5,6,7,x\n5,6,8,y\n"), "f", Options{Label: Last, Header: Present})
	if err != nil || !slices.Equal(s.Columns, []string{"column 1", "0", "1"}) {
		t.Errorf("%v, %v", s, err)
	}
}

func TestAColumnThatIsNotThereIsToldWithThoseThatAre(t *testing.T) {
	_, err := Read(strings.NewReader("a,b,c,d,e,f,g,h,i,target\n"), "f", Options{Label: "labels"})
	if err == nil || !strings.Contains(err.Error(), `the columns are ["a" "b" "c" "d" "e" "f" "g" "h"] and 2 more`) {
		t.Errorf("error %v", err)
	}
}

func TestALabelOfTwoColumnsIsRefused(t *testing.T) {
	const text = "a,y,y\n1,2,0\n3,4,1\n"
	_, err := Read(strings.NewReader(text), "f", Options{Label: "y"})
	if err == nil || err.Error() != `f:1: the label's column is named "y", and several columns are; accepted is its `+
		"number, as in label: 2" {
		t.Errorf("error %v", err)
	}
	for _, label := range []string{"2", "3", Last, "y.1"} {
		o := Options{Label: label, Header: Present}
		if s, err := Read(strings.NewReader(text), "f", o); err != nil || s.Len() != 2 {
			t.Errorf("%s: %v", label, err)
		}
	}
}

func TestADecimalCommaIsNoSeparator(t *testing.T) {
	_, err := Read(strings.NewReader("1,5;x\n3,5;y\n5,25;y\n"), "f", Options{Label: Last})
	if err == nil || !strings.Contains(err.Error(), `the labels are ["5;x" "5;y" "25;y"]`) ||
		!strings.Contains(err.Error(), "separator: semicolon") {
		t.Errorf("error %v", err)
	}
}

package plan

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyText draws words, numbers, reserved words, units, and arbitrary text.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z][a-z0-9_.-]{0,8}`),
		rapid.StringMatching(`[+-]?[0-9]{1,3}(\.[0-9]{1,3})?(e[0-9])?( ?[a-zA-Z%/]{0,6})`),
		rapid.SampledFrom([]string{"null", "~", "true", "False", "yes", ".inf", ".NaN", "<<", "---", "...", "- a", "? b", "a: b", "a #b", "0x1f", "0o7",
			"1_000", "2001-01-01", "é", "=", "*", "&x", "!t", "|", ">", "%", "@", "`", "'", "\"", "\\", "[", "]", "{", "}", ",", ":", "#", "\n", "\t", " ", "a\n", "\u00a0", "\u0085",
			"\u2028", "\uFEFF", "\x00", "\x7f", "10 GFLOP/s", "1s..5s", "share 20 %", "a\r\nb", "- ", "-", "+", ".", "<<: x", "\U0001F600", "x:", ":x", "a:b"}),
		rapid.StringOf(rapid.RuneFrom(nil, unicode.Latin, unicode.Punct, unicode.Space, unicode.Cc, unicode.Symbol)),
	)
}

func anyNode(depth int) *rapid.Generator[*Node] {
	return rapid.Custom(func(t *rapid.T) *Node {
		kind := rapid.SampledFrom([]Kind{Scalar, Scalar, Scalar, Null, List, Map}).Draw(t, "kind")
		if depth == 0 && kind >= List {
			kind = Scalar
		}
		switch kind {
		case Scalar:
			text := anyText().Draw(t, "text")
			if rapid.Bool().Draw(t, "quoted") || nullWord(text) {
				return NewText(text)
			}
			return NewScalar(text)
		case List:
			return NewList(rapid.SliceOfN(anyNode(depth-1), 0, 5).Draw(t, "items")...)
		case Map:
			keys := rapid.SliceOfNDistinct(anyText().Filter(func(s string) bool { return s != "" }), 0, 5, rapid.ID[string]).Draw(t, "keys")
			var fields []Field
			for _, k := range keys {
				fields = append(fields, Field{Key: k, Value: anyNode(depth-1).Draw(t, "value")})
			}
			return NewMap(fields...)
		}
		return &Node{}
	})
}

func TestYAMLReadsBackAsAnEqualTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NewMap(Field{Key: "top", Value: anyNode(4).Draw(t, "node")})
		text := n.YAML()
		back, err := Parse("p", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !n.Equal(back) {
			t.Fatalf("written\n%s\nread as\n%s", text, back.YAML())
		}
		if again := back.YAML(); again != text {
			t.Fatalf("the text is not canonical:\n%s\n%s", text, again)
		}
		flow, err := Parse("p", []byte(n.Flow()))
		if err != nil || !n.Equal(flow) {
			t.Fatalf("in flow style: %v\n%s", err, n.Flow())
		}
	})
}

func TestEqualTellsNumbersFromTexts(t *testing.T) {
	read := func(s string) *Node { n, _ := mustParse(t, "v: "+s).Get("v"); return n }
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"5", `"5"`, false}, {"server", `"server"`, true}, {"true", "'true'", false}, {"5ms", "'5ms'", true}, {"null", "'null'", false},
		{"[1, 2]", "[1, 3]", false}, {"{a: 1, b: 2}", "{b: 2, a: 1}", false}, {"[]", "{}", false}, {"|\n  x", `"x"`, true},
	} {
		if got := read(c.a).Equal(read(c.b)); got != c.want {
			t.Errorf("%s and %s: equal = %v", c.a, c.b, got)
		}
	}
	if (*Node)(nil).Equal(&Node{}) || !(*Node)(nil).Equal(nil) {
		t.Error("nil nodes")
	}
}

func TestPositionsAreThoseOfTheFile(t *testing.T) {
	root := mustParse(t, "# comment\na: 1\nb:\n  - {c: [x, \"y\"]}\n  - d: ü ö\n    ü: z\ne: >\n  text\n")
	for path, want := range map[string]Pos{
		"a": {"plan.yaml", 2, 4}, "b": {"plan.yaml", 4, 3}, "b[0]": {"plan.yaml", 4, 5}, "b[0].c": {"plan.yaml", 4, 9}, "b[0].c[1]": {"plan.yaml", 4, 13},
		"b[1]": {"plan.yaml", 5, 5}, "b[1].d": {"plan.yaml", 5, 8}, "b[1].ü": {"plan.yaml", 6, 8}, "e": {"plan.yaml", 7, 4},
	} {
		n, ok := root.Lookup(path)
		if !ok || n.Pos != want {
			t.Errorf("%s stands at %v, want %v", path, n.Pos, want)
		}
	}
}

type inner struct {
	Delay Duration `plan:"delay"`
	Rate  float64  `plan:"rate"`
}

func (i *inner) SetDefaults() { i.Rate = 9 }

type embedded struct {
	Flag bool `plan:"flag"`
}

type everything struct {
	embedded
	Embedded
	Text    string            `plan:"text"`
	Small   int8              `plan:"small"`
	Large   uint64            `plan:"large"`
	Single  float32           `plan:"single"`
	Nested  inner             `plan:"nested"`
	Pointer *inner            `plan:"pointer"`
	List    []inner           `plan:"list"`
	Words   []string          `plan:"words"`
	Map     map[string]inner  `plan:"map"`
	Numbers map[string]*int   `plan:"numbers"`
	Raw     *Node             `plan:"raw"`
	Hidden  map[string]string `plan:"hidden,omitzero"`
	Here    *Node             `plan:",node"`
	Untold  int
}

// Embedded is exported, as an embedded struct must be for reflection to set it.
type Embedded struct {
	Flag bool `plan:"inlined"`
}

func TestDecodeKeepsWhatIsAbsentAndFillsWhatIsGiven(t *testing.T) {
	root := mustParse(t, `
text: 12
small: -128
large: 18446744073709551615
single: 1.5
inlined: true
nested: {delay: 5ms}
pointer: {delay: 1s}
list: [{delay: 1s, rate: 2}, {}]
words: [a, "1", 2]
map: {x: {delay: 2s}, y: {rate: 1e3}}
numbers: {one: 1, none: null}
raw: {any: [thing]}
`)
	one := 1
	got := everything{Nested: inner{Delay: 7, Rate: 3}, Pointer: &inner{Rate: 4}, Words: []string{"before"}, Untold: 5}
	shared := got.Pointer
	if err := Decode(root, &got); err != nil {
		t.Fatal(err)
	}
	second, ms := Duration(time.Second), Duration(time.Millisecond)
	want := everything{
		Embedded: Embedded{Flag: true}, Text: "12", Small: -128, Large: 1<<64 - 1, Single: 1.5, Nested: inner{5 * ms, 3}, Pointer: &inner{second, 4},
		List: []inner{{second, 2}, {0, 9}}, Words: []string{"a", "1", "2"}, Map: map[string]inner{"x": {2 * second, 9}, "y": {0, 1000}},
		Numbers: map[string]*int{"one": &one, "none": nil}, Raw: root.At("raw"), Here: root, Untold: 5,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(everything{}, embedded{})); diff != "" {
		t.Error(diff)
	}
	if shared.Delay != 0 {
		t.Error("the default that the pointer had was written to")
	}
	tree, err := Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	var back everything
	if err := Decode(mustParse(t, tree.YAML()), &back); err != nil {
		t.Fatalf("%v\n%s", err, tree.YAML())
	}
	want.Untold = 0
	back.Here = root
	if diff := cmp.Diff(want, back, cmp.AllowUnexported(everything{}, embedded{})); diff != "" {
		t.Errorf("after encoding: %s", diff)
	}
}

func TestDecodeCollectsEveryMismatch(t *testing.T) {
	root := mustParse(t, `
text: [a]
small: 128
large: -1
single: 1e39
inlined: yes
nested: 5
pointer: [x]
list: {a: b}
numbers: {one: 0x10}
words: [[a], null]
other: 1
`)
	var v everything
	err := Decode(root, &v)
	var all Errors
	if !errors.As(err, &all) || len(all) != maxErrors {
		t.Fatalf("%d errors: %v", len(all), err)
	}
	for i, line := range []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11} {
		if all[i].Pos.Line != line {
			t.Errorf("error %d stands in line %d, want %d: %v", i, all[i].Pos.Line, line, all[i])
		}
	}
}

var errOwn = errors.New("own error")

type picky struct{}

func (p *picky) UnmarshalPlan(n *Node) error { return errors.Join(errOwn, Errorf(n, "second")) }

func TestErrorsOfUnmarshalersKeepTheirCauseAndGetAPlace(t *testing.T) {
	var v struct {
		P *picky `plan:"p"`
	}
	err := Decode(mustParse(t, "a: 1\np: x\n").Without("a"), &v)
	var e *Error
	if !errors.Is(err, errOwn) || !errors.As(err, &e) || e.Pos.Line != 2 || e.Path != "p" {
		t.Errorf("error: %v", err)
	}
}

func TestProgrammersMistakesPanic(t *testing.T) {
	n := mustParse(t, "a: 1\n")
	for name, f := range map[string]func(){
		"no pointer":  func() { _ = Decode(n, everything{}) },
		"nil pointer": func() { _ = Decode(n, (*everything)(nil)) },
		"channel": func() {
			_ = Decode(n, &struct {
				A chan int `plan:"a"`
			}{})
		},
		"encoding": func() { _, _ = Encode(make(chan int)) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "plan: ") {
					t.Errorf("%s: no clear panic", name)
				}
			}()
			f()
		}()
	}
	if _, err := Encode(math.Inf(1)); err == nil {
		t.Error("an infinite number was written")
	}
	if err := Decode(nil, &everything{}); err == nil {
		t.Error("nothing was decoded")
	}
}

func TestManyErrorsAreCutAndLongTextsToo(t *testing.T) {
	var all Errors
	for range 15 {
		all = append(all, Errorf(NewScalar("x"), "wrong: %s", quote(strings.Repeat("ä\x1b", 10_000))))
	}
	text := all.Error()
	if !strings.Contains(text, "and 5 more") || len(text) > 5000 || strings.Contains(text, "\x1b") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestEditDistanceIsThatOfItsDefinition(t *testing.T) {
	var slow func(a, b []rune) int
	slow = func(a, b []rune) int {
		if len(a) == 0 || len(b) == 0 {
			return len(a) + len(b)
		}
		cost := 1
		if a[0] == b[0] {
			cost = 0
		}
		d := min(slow(a[1:], b)+1, slow(a, b[1:])+1, slow(a[1:], b[1:])+cost)
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			d = min(d, slow(a[2:], b[2:])+1)
		}
		return d
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := editDistance(a, b), slow([]rune(a), []rune(b)); got != want {
			t.Fatalf("%s and %s: %d, want %d", a, b, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range hostile() {
		f.Add([]byte(text[:min(len(text), 300)]))
	}
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, src := range readFiles(f, pattern) {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		root, err := Parse("fuzz.yaml", src)
		if err != nil {
			checkMessage(t, err)
			return
		}
		back, err := Parse("again.yaml", []byte(root.YAML()))
		if err != nil || !root.Equal(back) {
			t.Fatalf("%v: %q is written %q", err, src, root.YAML())
		}
		plans, err := readAll("fuzz.yaml", src)
		if err != nil {
			checkMessage(t, err)
		}
		for _, p := range plans {
			n, err := p.Node()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ReadPlan(n); err != nil {
				t.Fatalf("%v\n%s", err, n.YAML())
			}
		}
	})
}

func FuzzParseAssignment(f *testing.F) {
	for _, s := range []string{"a=1", `"a.b"[0].c={x: y}`, "nodes.fast.compute={step: 5ms}", "=", "a=\n\tb", "data..x=[", "nodes=[{name: a}]", "seed.x=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		path, value, err := ParseAssignment(s)
		if err != nil {
			checkMessage(t, err)
			return
		}
		root := readGoodText(t)
		if err := root.Set(path, value); err != nil {
			checkMessage(t, err)
			return
		}
		if got, ok := root.Lookup(value.Path()); !ok || got != value {
			t.Fatalf("%q is not where it was put, at %q", path, value.Path())
		}
		if _, err := ReadPlan(root); err != nil {
			checkMessage(t, err)
		}
	})
}

func BenchmarkReadPlan(b *testing.B) {
	src := readFiles(b, "testdata/good/groups.yaml")[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readAll("groups.yaml", src); err != nil {
			b.Fatal(err)
		}
	}
}

package syntax

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// anyText draws words, numbers, reserved words, units, and arbitrary text.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z][a-z0-9_.-]{0,8}`),
		rapid.StringMatching(`[+-]?[0-9]{1,3}(\.[0-9]{1,3})?(e[0-9])?( ?[a-zA-Z%/]{0,6})`),
		rapid.SampledFrom([]string{"null", "~", "true", "False", "yes", ".inf", ".NaN", "<<", "---", "...", "- a",
			"? b", "a: b", "a #b", "0x1f", "0o7",
			"1_000", "2001-01-01", "é", "=", "*", "&x", "!t", "|", ">", "%", "@", "`", "'", "\"", "\\", "[", "]",
			"{", "}", ",", ":", "#", "\n", "\t", " ", "a\n", "\u00a0", "\u0085",
			"\u2028", "\uFEFF", "\x00", "\x7f", "10 GFLOP/s", "1s..5s", "share 20 %",
			"a\r\nb", "- ", "-", "+", ".", "<<: x", "\U0001F600", "x:", ":x", "a:b"}),
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
			words := anyText().Filter(func(s string) bool { return s != "" })
			keys := rapid.SliceOfNDistinct(words, 0, 5, rapid.ID[string]).Draw(t, "keys")
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
		{"5", `"5"`, false}, {"server", `"server"`, true},
		{"true", "'true'", false}, {"5ms", "'5ms'", true}, {"null", "'null'", false},
		{"[1, 2]", "[1, 3]", false}, {"{a: 1, b: 2}", "{b: 2, a: 1}", false},
		{"[]", "{}", false}, {"|\n  x", `"x"`, true},
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
		"a": {"plan.yaml", 2, 4}, "b": {"plan.yaml", 4, 3},
		"b[0]": {"plan.yaml", 4, 5}, "b[0].c": {"plan.yaml", 4, 9}, "b[0].c[1]": {"plan.yaml", 4, 13},
		"b[1]": {"plan.yaml", 5, 5}, "b[1].d": {"plan.yaml", 5, 8},
		"b[1].ü": {"plan.yaml", 6, 8}, "e": {"plan.yaml", 7, 4},
	} {
		n, ok := root.Lookup(path)
		if !ok || n.Pos != want {
			t.Errorf("%s stands at %v, want %v", path, n.Pos, want)
		}
	}
}

func TestManyErrorsAreCutAndLongTextsToo(t *testing.T) {
	var all Errors
	for range 15 {
		all = append(all, Errorf(NewScalar("x"), "wrong: %s", Quote(strings.Repeat("ä\x1b", 10_000))))
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

func mustParse(t *testing.T, text string) *Node {
	t.Helper()
	n, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTextThatIsNotYAMLIsRefusedWhereItGoesWrong(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c":               "1:5: this is not YAML: mapping values are not allowed in this context",
		"a:\n  b: 1\n c: 2":     "3:2: this is not YAML: did not find expected key while parsing a block mapping",
		"a: \"x":                "1:4: this is not YAML: found unexpected end of stream while scanning a quoted scalar",
		"a: \"ü\\q\"":           "1:6: this is not YAML: found unknown escape character while scanning a quoted scalar",
		"a: {b: 1]":             "1:9: this is not YAML: did not find expected ',' or '}' while parsing a flow mapping",
		"a: @x":                 "1:4: this is not YAML: @ cannot begin a text without quotes",
		"a: }":                  "1:4: } closes nothing; put it in quotes if it is meant as text",
		"a: x\n\ty":             "2:1: a tab indents this line; YAML indents with spaces",
		"a: 1\n? b":             "2:1: " + refusedKey,
		"a: {b: 1, ? c : 2}":    "1:11: " + refusedKey,
		"a: {b: 1, ?\n\n c: 2}": "1:11: " + refusedKey,
		"a: [? b: 1]":           "1:5: " + refusedKey,
		"a: {b: 1, <<: {}}":     "1:11: " + refusedMerge,
		"a: 1\n---\nb: 2":       "2:1: " + secondDocument,
		"a: 1\n...\nb: 2":       "3:1: " + secondDocument,
		"a: 1\nb: {a: 1}\na: 2": "3:1: key \"a\" is given twice; it stands already in line 1",
		"a: [b: 1, &x c]":       "1:11: " + errAnchor.Error(),
		"a: [1, *x]":            "1:8: " + errAlias.Error(),
		"a: [\n  !x c]":         "2:3: " + refusedTag,
		"a: ! c":                "1:4: " + refusedTag,
		"a: !x!y c":             "1:4: " + refusedTag,
		"# c\n%YAML 1.2\n---":   "2:1: directives (%name) are not accepted",
		"a: \uFFFE": "1:4: control character U+FFFE is not accepted; " +
			"write it as an escape in double quotes",
	} {
		_, err := Parse("p", []byte(text))
		if err == nil || strings.Split(err.Error(), "\n")[0] != "p:"+want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestQuestionMarksThatAnnounceNoKeyAreText(t *testing.T) {
	root := mustParse(t, "a?: why?\nb: {c?: d ?, e: ?f, # why?\n  g: 1}\nh: [\"x?\", i?: 2]\n")
	for _, path := range []string{"a?", "b.c?", "b.e", "b.g", "h"} {
		if _, ok := root.Lookup(path); !ok {
			t.Errorf("%s is not there: %s", path, root.Flow())
		}
	}
}

package syntax

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostileBytes is the size of most hostile texts: large enough that what is quadratic shows, small
// enough for a quick test.
const hostileBytes = 1 << 17

// hostile are texts that cost a careless reader its memory, its stack or its time.
func hostile() map[string]string {
	fill := func(piece string) string { return strings.Repeat(piece, hostileBytes/len(piece)-20) }
	return map[string]string{
		"brackets": "a: " + fill("["), "braces": "a: " + fill("{a: "), "dashes": fill("- "), "pairs": fill("a: "),
		"anchors": "a: " + fill("&a "), "tags": "a: " + fill("!a "), "questions": fill("? "), "colons": fill(": "),
		"commas": "a: [" + fill("x,") + "]", "one word": "a: " + fill("x"), "one key": fill("x") + ": 1",
		"one quote": `a: "` + fill("x") + `"`, "open quote": `a: "` + fill("x"), "lines": fill("a\n"),
		"blank lines": fill("\n"),
		"comments":    fill("# x\n"), "words": "a: " + fill("x "), "keys": "a: {" + fill("k,") + "}",
		"documents": fill("---\n"), "block text": "a: |\n" + fill("  x\n"), "quotes": "a: [" + fill("'',") + "]",
		"long keys": strings.Repeat(strings.Repeat("k", MaxKey)+": {", 30) +
			fill("a,")[:hostileBytes-30*(MaxKey+3)-100] + strings.Repeat("}", 30),
		"spaces": "a:" + fill(" ") + "b", "hashes": "a: " + fill("#"), "escapes": `a: "` + fill(`\x41`) + `"`,
		"percent":           fill("%"),
		"plain in brackets": "a: [" + fill("x ") + "]", "folded plain": "a: x\n" + fill("  y\n"),
		"ends":           "a: " + fill("]"),
		"question marks": "a: [" + fill("{k?: 1},") + "]", "blank braces": "a: {b?: 1," + fill(" \n") + "c: 1}",
		"indents": indents(1400), "items": "a:\n" + fill("- x\n"), "key lines": keyLines(40_000),
	}
}

func indents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestHostileTextsAreReadOrRefusedWithinTheirLimits(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			n, err := Parse("hostile.yaml", []byte(text))
			if err != nil && len(err.Error()) > 4000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if err == nil && (n.Size() > MaxNodes || n.depth() > MaxDepth) {
				t.Errorf("%d nodes, %d levels were accepted", n.Size(), n.depth())
			}
		})
	}
	if _, err := Parse("large.yaml", make([]byte, MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "8 MiB") {
		t.Errorf("a text that is too large: %v", err)
	}
}

func keyLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("k" + strings.Repeat("y", i%3) + string(rune('a'+i%26)) + strings.Repeat("z", i%5) + ":\n")
	}
	return b.String()
}

func TestCRLFAndByteOrderMarkReadLikeLF(t *testing.T) {
	src, err := os.ReadFile("../testdata/good/groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Parse("p", src)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("p", append([]byte("\uFEFF"), bytes.ReplaceAll(src, []byte("\n"), []byte("\r\n"))...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range hostile() {
		f.Add([]byte(text[:min(len(text), 300)]))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		root, err := Parse("fuzz.yaml", src)
		if err != nil {
			return
		}
		back, err := Parse("again.yaml", []byte(root.YAML()))
		if err != nil || !root.Equal(back) {
			t.Fatalf("%v: %q is written %q", err, src, root.YAML())
		}
	})
}

func TestLimitsAreMetExactly(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	flowKeys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d: 1, ", i)
		}
		return "a: {" + b.String() + "}"
	}
	for _, c := range []struct {
		what   string
		text   func(n int) string
		most   int
		beyond string
	}{
		{"keys", flowKeys, MaxKeys, "this map has more than 10000 keys"},
		{"bytes of a key", func(n int) string { return strings.Repeat("k", n) + ": 1" }, MaxKey, "a key has 1 to 256"},
		{"levels", func(n int) string { return "a: " + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) }, MaxDepth,
			"nested too deeply"},
		{"values", func(n int) string { return "a: [" + strings.Repeat("1,", n-2) + "]" }, MaxNodes,
			"more than 1048576 values"},
	} {
		if _, err := Parse("p", []byte(c.text(c.most))); err != nil {
			t.Errorf("%d %s: %v", c.most, c.what, err)
		}
		if _, err := Parse("p", []byte(c.text(c.most+1))); err == nil || !strings.Contains(err.Error(), c.beyond) {
			t.Errorf("%d %s: %v", c.most+1, c.what, err)
		}
	}
}

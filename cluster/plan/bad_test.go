package plan

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected messages in testdata/bad")

// readAll does what a program does with a plan's text.
func readAll(file string, src []byte) ([]*Plan, error) {
	root, err := Parse(file, src)
	if err != nil {
		return nil, err
	}
	points, err := Points(root)
	if err != nil {
		return nil, err
	}
	var plans []*Plan
	for _, p := range points {
		plan, err := ReadPlan(p.Root)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

func TestBadPlansAreRefusedWithTheExpectedMessage(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d bad plans found (%v), want at least 30", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = readAll(filepath.Base(file), src)
			if err == nil {
				t.Fatal("the plan was accepted")
			}
			var e *Error
			if !errors.As(err, &e) || e.Pos.Line < 1 || e.Pos.Column < 1 {
				t.Errorf("the error has no place: %#v", e)
			}
			expectFile(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func expectFile(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestCRLFAndByteOrderMarkReadLikeLF(t *testing.T) {
	src, err := os.ReadFile("testdata/good/groups.yaml")
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

// hostileBytes is the size of most hostile texts: large enough that what is quadratic shows, small enough for a quick test.
const hostileBytes = MaxBytes / 8

// hostile are texts that cost a careless reader its memory, its stack or its time.
func hostile() map[string]string {
	fill := func(piece string) string { return strings.Repeat(piece, hostileBytes/len(piece)-20) }
	return map[string]string{
		"brackets": "a: " + fill("["), "braces": "a: " + fill("{a: "), "dashes": fill("- "), "pairs": fill("a: "),
		"anchors": "a: " + fill("&a "), "tags": "a: " + fill("!a "), "questions": fill("? "), "colons": fill(": "),
		"commas": "a: [" + fill("x,") + "]", "one word": "a: " + fill("x"), "one key": fill("x") + ": 1",
		"one quote": `a: "` + fill("x") + `"`, "open quote": `a: "` + fill("x"), "lines": fill("a\n"), "blank lines": fill("\n"),
		"comments": fill("# x\n"), "words": "a: " + fill("x "), "keys": "a: {" + fill("k,") + "}",
		"documents": fill("---\n"), "block text": "a: |\n" + fill("  x\n"), "quotes": "a: [" + fill("'',") + "]",
		"long keys": strings.Repeat(strings.Repeat("k", MaxKey)+": {", 30) + fill("a,")[:hostileBytes-30*(MaxKey+3)-100] + strings.Repeat("}", 30),
		"spaces":    "a:" + fill(" ") + "b", "hashes": "a: " + fill("#"), "escapes": `a: "` + fill(`\x41`) + `"`, "percent": fill("%"),
		"plain in brackets": "a: [" + fill("x ") + "]", "folded plain": "a: x\n" + fill("  y\n"), "ends": "a: " + fill("]"),
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
			if err == nil && (n.size() > MaxNodes || n.depth() > MaxDepth) {
				t.Errorf("%d nodes, %d levels were accepted", n.size(), n.depth())
			}
		})
	}
	if _, err := Parse("large.yaml", make([]byte, MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "1 MiB") {
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

func readFiles(t testing.TB, pattern string) [][]byte {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var list [][]byte
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, src)
	}
	return list
}

// checkMessage checks that an error has a place and is fit for a terminal.
func checkMessage(t testing.TB, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T has no place: %v", err, err)
	}
	text := err.Error()
	if len(text) > 30_000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' }) {
		t.Fatalf("message of %d bytes: %q", len(text), text[:min(len(text), 3000)])
	}
}

const smallPlan = `data: toy
model: {kind: mlp}
architecture: {kind: ps}
nodes: [{name: server}, {name: fast, count: 2}]
network: {links: [{between: [server, fast], delay: 1ms}]}
stop: {epochs: 1}
`

func readGoodText(t testing.TB) *Node {
	n, err := Parse("small.yaml", []byte(smallPlan))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

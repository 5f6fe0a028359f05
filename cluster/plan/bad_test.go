package plan

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

var update = flag.Bool("update", false, "rewrite the expected messages in testdata/bad")

// readAll does what a program does with a plan's text.
func readAll(file string, src []byte) ([]*Plan, error) {
	root, err := syntax.Parse(file, src)
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
			var e *syntax.Error
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
	var e *syntax.Error
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

func readGoodText(t testing.TB) *syntax.Node {
	n, err := syntax.Parse("small.yaml", []byte(smallPlan))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

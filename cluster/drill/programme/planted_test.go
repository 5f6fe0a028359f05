package programme_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/drill/programme"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// plant is a mistake in a file of the module: a piece of text in place of another. Some of them
// were real ones, which the programme has found.
type plant struct{ name, file, right, wrong string }

var plants = []plant{
	{"staleness off by one", "actors/consistency/clocks.go", "bound: m.Bound(), ahead: m.Ahead()",
		"bound: m.Bound() + 1, ahead: m.Ahead()"},
	{"copies of messages that were given up are taken", "cluster/door/sessions.go", "if f.mute && c.letter.taken {",
		"if false {"},
	{"a missing message is acknowledged", "actors/session/receiver.go", "a := Ack{Next: r.next}",
		"a := Ack{Next: r.next + Number(min(len(r.early), 1))}"},
	{"a message is handed over before one that is missing", "actors/session/receiver.go",
		"if len(r.early) == 0 || !r.early[0].here {", "if len(r.early) == 0 {"},
	{"waits grow by what was waited for in vain", "actors/session/sender.go",
		"s.wait.extend(min(trip, 2*max(s.wait.smoothed, s.idle)))", "s.wait.measure(trip)"},
	{"a pause ends the one that lasts longer", "cluster/sim/membership.go", "n.resumes = max(n.resumes, r.now+d)",
		"n.resumes = r.now + d"},
	{"a node that is away gets its results", "cluster/sim/membership.go", "	n.life++\n", ""},
	{"a repeat at the first instant is none", "cluster/link/edge.go", "e.arrive(max(departure+delay, 1), delay)",
		"e.arrive(departure+delay, delay)"},
	{"what nobody takes is not counted", "cluster/link/edge.go",
		"func (e *Edge) Discard(size int) {\n\te.underway--\n\te.stats.Dropped++\n",
		"func (e *Edge) Discard(size int) {\n\te.underway--\n"},
}

// copied is a copy of the module's source files.
func copied(t *testing.T) string {
	t.Helper()
	root, dir := filepath.Join("..", "..", ".."), t.TempDir()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		name, failure := filepath.Rel(root, path)
		if err != nil || failure != nil || name == ".git" {
			if name == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// command runs a program in a folder, and kills it when it takes too long.
func command(t *testing.T, dir, name string, args ...string) (out []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return cmd.Output()
}

// Each mistake that is planted into a copy of the module breaks an invariant of some plan, or the
// program.
func TestProgrammeCatchesPlantedMistakes(t *testing.T) {
	if simtest.Brief() {
		t.Skip("builds a program for each mistake; GRADWIRE_LENGTHY=1 runs it")
	}
	dir := copied(t)
	for _, p := range plants {
		file := filepath.Join(dir, p.file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), p.right) != 1 {
			t.Errorf("%s: %s does not have %q once", p.name, p.file, p.right)
			continue
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), p.right, p.wrong, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, "gradwire.test")
		if out, err := command(t, dir, "go", "build", "-buildvcs=false", "-o", program, "./cmd/gradwire"); err != nil {
			t.Errorf("%s: %v\n%s", p.name, err, out)
		} else {
			t.Logf("%s: %s", p.name, caught(t, dir, program))
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// caught says by what a program with a mistake was caught, and fails the test if it was not.
func caught(t *testing.T, dir, program string) string {
	t.Helper()
	out, err := command(t, dir, program, "drill", "--seeds", "4000", "--format", "json")
	var r programme.Report
	if failure := json.Unmarshal(out, &r); failure != nil && err != nil {
		return "the program failed: " + err.Error()
	}
	if len(r.Failures) == 0 {
		t.Errorf("not caught in %d seeds", r.Seeds)
		return "not caught"
	}
	return r.Err().Error()
}

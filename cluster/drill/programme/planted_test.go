package programme_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	{"a step counts twice", "cluster/record/collector.go", "\tn.steps++\n", "\tn.steps += 2\n"},
	{"random streams depend on what ran before", "actors/random.go",
		"func Source(seed uint64, owner, purpose string) *rand.PCG {\n\th := fnv.New64a()\n",
		"var calls byte\n\nfunc Source(seed uint64, owner, purpose string) *rand.PCG {\n\th := fnv.New64a()\n" +
			"\tcalls++\n\t_, _ = h.Write([]byte{calls})\n"},
}

// copied is a copy of the module's source files.
func copied(t *testing.T) string {
	t.Helper()
	root, dir := filepath.Join("..", "..", ".."), t.TempDir()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		name, failure := filepath.Rel(root, path)
		switch {
		case err != nil || failure != nil:
			return cmp.Or(err, failure)
		case name == ".git" && d.IsDir():
			return filepath.SkipDir
		case name == ".git": // of a worktree
			return nil
		case d.IsDir():
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

// command runs a program in a folder. The error is what it wrote about its failure, or that it took
// too long and was killed.
func command(t *testing.T, dir, name string, args ...string) (out []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err = cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it was killed: %w", context.Cause(ctx))
	case errors.As(err, &exit):
		return out, fmt.Errorf("%w: %.300s", err, exit.Stderr)
	}
	return out, err
}

// Each mistake that is planted into a copy of the module breaks an invariant of some plan.
func TestProgrammeCatchesPlantedMistakes(t *testing.T) {
	if simtest.Brief() {
		t.Skip("builds a program for each mistake; GRADWIRE_LENGTHY=1 runs it")
	}
	dir := copied(t)
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			file := filepath.Join(dir, p.file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), p.right) != 1 {
				t.Fatalf("%s does not have %q once", p.file, p.right)
			}
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(strings.Replace(string(text), p.right, p.wrong, 1))
			defer write(string(text))
			program := filepath.Join(dir, "gradwire.test")
			_, err = command(t, dir, "go", "build", "-buildvcs=false", "-o", program, "./cmd/gradwire")
			if err != nil {
				t.Fatal(err)
			}
			t.Log(caught(t, dir, program))
		})
	}
}

// caught says by what a program with a mistake was caught, and fails the test if it was not.
func caught(t *testing.T, dir, program string) string {
	t.Helper()
	const seeds = 4000
	for from, n := 1, 8; from <= seeds; from, n = from+n, min(2*n, seeds-from-n+1) {
		out, err := command(t, dir, program, "drill", "--seeds", strconv.Itoa(n), "--from", strconv.Itoa(from),
			"--format", "json")
		var r programme.Report
		if failure := json.Unmarshal(out, &r); failure != nil {
			t.Errorf("no report: %v", err)
			return "not known"
		}
		if len(r.Failures) > 0 {
			f := &r.Failures[0]
			return fmt.Sprintf("seed %d: %s: %s", f.Seed, f.Invariant, f.How)
		}
	}
	t.Errorf("not caught in %d seeds", seeds)
	return "not caught"
}

package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// A program of TestCheckpointsAreReadByOtherBuilds writes a checkpoint of each architecture into a folder, or
// continues from the checkpoints in a folder. One of these variables names the folder.
const (
	writesTo  = "GRADWIRE_WRITES_CHECKPOINTS"
	readsFrom = "GRADWIRE_READS_CHECKPOINTS"
)

// otherFolder returns the folder of an architecture's checkpoints.
func otherFolder(dir string, i int) *checkpoint.Folder {
	return checkpoint.NewFolder(filepath.Join(dir, fmt.Sprint(i)), 1)
}

// otherStage returns a run of an architecture in real time, with checkpoints.
func otherStage(t *testing.T, dir string, i int, from *checkpoint.State) (*Stage, *live.World, error) {
	t.Helper()
	s := stagedPlan(t, base, "checkpoint={every: 30ms}", "architecture="+architectures[i])
	s.saves = &checkpoint.Run{Folder: otherFolder(dir, i), From: from, Told: func(time.Duration) {}}
	w, err := s.Live(live.Config{KeepRuntime: true})
	return s, w, err
}

func writeCheckpoints(t *testing.T, dir string) {
	for i, architecture := range architectures {
		ctx, cancel := context.WithCancelCause(t.Context())
		s, w, err := otherStage(t, dir, i, nil)
		if err != nil {
			t.Fatalf("%s: %v", architecture, err)
		}
		s.saves.Folder.Written = func() { cancel(errCut) }
		_, err = w.Run(ctx)
		if err := s.saves.Folder.Wait(); err != nil || s.saves.Folder.Newest() == "" {
			t.Errorf("%s is not saved: %v", architecture, err)
		}
		if err != nil && !errors.Is(err, errCut) {
			t.Errorf("%s: %v", architecture, err)
		}
	}
}

func readCheckpoints(t *testing.T, dir string, want error) {
	for i, architecture := range architectures {
		f := otherFolder(dir, i)
		from, err := f.Read(f.Newest())
		if err != nil {
			t.Errorf("%s: %v", architecture, err)
			continue
		}
		s, w, err := otherStage(t, t.TempDir(), i, &from)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", architecture, err, want)
		}
		if err != nil {
			continue
		}
		if _, err := w.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", architecture, err)
			continue
		}
		d, err := s.Collector.Close(s.result.Last)
		if err != nil || d.Curve[len(d.Curve)-1].Epoch < 1 {
			t.Errorf("%s went on to %v, %v", architecture, d.Curve, err)
		}
	}
}

// declares matches the methods State of actors and of their parts.
var declares = regexp.MustCompile(`(?m)^func \((\w+) \*(\w+)\) State\((\w+) \*state\.State\) \{`)

// withAField writes an overlay for the go command that adds a first field to most structs with declared state
// in packages of actors. If declared is true, their methods State declare the field.
func withAField(t *testing.T, root string, declared bool) (overlay string) {
	t.Helper()
	dir, replaced, fields := t.TempDir(), map[string]string{}, 0
	err := filepath.WalkDir(filepath.Join(root, "actors"), func(folder string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		texts := make([]string, len(files))
		for i, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				b, failure := os.ReadFile(file)
				texts[i], err = string(b), errors.Join(err, failure)
			}
		}
		before := slices.Clone(texts)
		for _, m := range declares.FindAllStringSubmatch(strings.Join(before, ""), -1) {
			begin, found := fmt.Sprintf("\ntype %s struct {\n", m[2]), false
			if regexp.MustCompile(`\b`+m[2]+`\{\w[^:\n]*\}`).MatchString(strings.Join(before, "")) ||
				strings.Contains(strings.Join(before, ""), m[0]+"\n\tif "+m[1]+" ") {
				continue // its literals lack field names, or its pointer may be nil
			}
			for i, text := range texts {
				found = found || strings.Contains(text, begin)
				texts[i] = strings.Replace(text, begin, begin+"\taddedField int\n", 1)
			}
			if !found {
				continue
			}
			fields++
			for i, text := range texts {
				if declared {
					texts[i] = strings.Replace(text, m[0],
						fmt.Sprintf("%s\n\tstate.Int(%s, \"added\", &%s.addedField)\n", m[0], m[3], m[1]), 1)
				}
			}
		}
		for i, text := range texts {
			if text != before[i] {
				replaced[files[i]] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
				err = errors.Join(err, os.WriteFile(replaced[files[i]], []byte(text), 0o600))
			}
		}
		return err
	})
	text, failure := json.Marshal(map[string]any{"Replace": replaced})
	overlay = filepath.Join(dir, "overlay.json")
	if err := errors.Join(err, failure, os.WriteFile(overlay, text, 0o600)); err != nil || fields < 20 {
		t.Fatalf("%d fields were added, %v", fields, err)
	}
	return overlay
}

// otherProgram builds the tests of this package as another program.
func otherProgram(t *testing.T, overlay, arch string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", path, "-overlay", overlay, ".")
	build.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// otherRuns runs a program that writes or reads the checkpoints in a folder.
func otherRuns(t *testing.T, program []string, variable, dir string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program[0], append(program[1:], "-test.run",
		"^TestCheckpointsAreReadByOtherBuilds$")...)
	c.Env = append(os.Environ(), variable+"="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v, %s=%s\n%s", program, variable, dir, out)
	}
}

// TestCheckpointsAreReadByOtherBuilds continues runs of all architectures in another program: a build with an
// additional field in each actor, and a build for another processor. This program refuses a state with values
// that it does not declare.
func TestCheckpointsAreReadByOtherBuilds(t *testing.T) {
	if dir := os.Getenv(writesTo); dir != "" {
		writeCheckpoints(t, dir)
		return
	}
	if dir := os.Getenv(readsFrom); dir != "" {
		readCheckpoints(t, dir, nil)
		return
	}
	if simtest.Brief() {
		t.Skip("it builds programs; GRADWIRE_LENGTHY=1 runs it")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	writeCheckpoints(t, own)
	t.Run("a field more", func(t *testing.T) {
		other := otherProgram(t, withAField(t, root, true), runtime.GOARCH)
		otherRuns(t, []string{other}, readsFrom, own)
		theirs := t.TempDir()
		otherRuns(t, []string{other}, writesTo, theirs)
		readCheckpoints(t, theirs, state.ErrForeign)
	})
	t.Run("another processor", func(t *testing.T) {
		emulator, err := exec.LookPath("qemu-aarch64")
		if err != nil || runtime.GOARCH == "arm64" {
			t.Skip("there is no emulator of another processor")
		}
		theirs := t.TempDir()
		otherRuns(t, []string{emulator, otherProgram(t, withAField(t, root, false), "arm64")}, writesTo, theirs)
		readCheckpoints(t, theirs, nil)
	})
}

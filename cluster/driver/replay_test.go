package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

func runFolder(dir string, n int) string { return filepath.Join(dir, "runs", fmt.Sprintf("%04d", n)) }

func TestEveryRunOfASweepReplaysToItsDigest(t *testing.T) {
	r := run(t, load(t, small), driver.Options{})
	before := files(t, r.Dir)
	for _, recorded := range r.Runs {
		again, err := driver.Replay(context.Background(), runFolder(r.Dir, recorded.Number),
			driver.Options{Strict: recorded.Number == 1})
		if err != nil {
			t.Fatal(err)
		}
		if !again.Equal || !again.SameBuild || again.Digest != recorded.Digest || again.Recorded != recorded.Digest ||
			again.Seed != recorded.Seed {
			t.Errorf("run %d of digest %s: %+v", recorded.Number, recorded.Digest, again)
		}
	}
	equal(t, "files", before, files(t, r.Dir))
}

func TestReplayFindsARecordThatWasChanged(t *testing.T) {
	r := run(t, load(t, small), driver.Options{})
	digest, other := r.Runs[0].Digest, r.Runs[1].Digest
	for _, c := range []struct {
		name, file, old, new string
		equal, build         bool
	}{
		{"digest", "runs/0000/run.json", digest, other, false, true},
		{"plan", "plan.yaml", "rate: 0.1", "rate: 0.2", false, true},
		{"build", "summary.json", `"goarch": "`, `"goarch": "other than `, true, false},
	} {
		restore := change(t, filepath.Join(r.Dir, filepath.FromSlash(c.file)), c.old, c.new)
		again, err := driver.Replay(context.Background(), runFolder(r.Dir, 0), driver.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if again.Equal != c.equal || again.SameBuild != c.build {
			t.Errorf("%s: %+v", c.name, again)
		}
		restore()
	}
}

// Programs before version 3 of the language spelled out how consistent a parameter server is.
func TestRecordWhosePlanIsOfVersion2IsReplayedAndContinued(t *testing.T) {
	r := run(t, load(t, small), driver.Options{})
	path := filepath.Join(r.Dir, "plan.yaml")
	change(t, path, "version: 4", "version: 2")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := driver.Replay(context.Background(), runFolder(r.Dir, 3), driver.Options{})
	if err != nil || !again.Equal {
		t.Errorf("replayed: %+v, error %v", again, err)
	}
	if err := os.RemoveAll(runFolder(r.Dir, 1)); err != nil {
		t.Fatal(err)
	}
	continued := run(t, load(t, small), driver.Options{Out: r.Dir, Continue: true})
	equal(t, "runs", r.Runs[1].Digest, continued.Runs[1].Digest)
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "plan", string(before), string(after))
	other := load(t, small, "train.batch=64")
	_, err = driver.Run(context.Background(), other, driver.Options{Out: r.Dir, Continue: true})
	if err == nil || !strings.Contains(err.Error(), `was "train: {batch: 32`) {
		t.Errorf("continued by another plan: %v", err)
	}
}

func TestReplayRefusesWhatHasNoDigest(t *testing.T) {
	r := run(t, load(t, small, "sweep={}", "repeats=1"), driver.Options{})
	json := filepath.Join("runs", "0000", "run.json")
	for _, c := range []struct{ name, file, old, new, want string }{
		{"real clock", json, `"clock":"virtual"`, `"clock":"real"`, "clock was \"real\"; only runs in virtual time"},
		{"no such point", json, `"point":{}`, `"point":{"train.batch":7}`, `the plan has no point "train.batch=7"`},
		{"cut off", json, `"seed"`, "\n\"seed\" x", `run.json:2: key "seed" is x, which is no JSON`},
		{"plan", "plan.yaml", "rate: 0.1", "rats: 0.1", "plan.yaml:"},
	} {
		restore := change(t, filepath.Join(r.Dir, c.file), c.old, c.new)
		_, err := driver.Replay(context.Background(), runFolder(r.Dir, 0), driver.Options{})
		var input *driver.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		restore()
	}
	for _, dir := range []string{r.Dir, runFolder(r.Dir, 7), filepath.Join(r.Dir, "runs", "x"), "nowhere"} {
		_, err := driver.Replay(context.Background(), dir, driver.Options{})
		var input *driver.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}

func TestReplayStopsWhenItIsCancelled(t *testing.T) {
	r := run(t, load(t, small, "sweep={}", "repeats=1"), driver.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := driver.Replay(ctx, runFolder(r.Dir, 0), driver.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// change replaces a text in a file that has it once or more, and returns how to undo it.
func change(t *testing.T, path, old, by string) (restore func()) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q:\n%.400s", path, old, text)
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(strings.Replace(string(text), old, by, 1))
	return func() { put(string(text)) }
}

//go:build unix

package cli_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// checkpoints returns the folders of a run's checkpoints, the newest last.
func checkpoints(t *testing.T, run string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(run, "checkpoints", "*.state"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// killSaved kills a program when it has saved its run so often, or has finished it.
func killSaved(t *testing.T, p *program, times int) {
	t.Helper()
	seen := map[string]bool{}
	look := func() int {
		for _, name := range checkpoints(t, "out/runs/0000") {
			seen[name] = true
		}
		return len(seen)
	}
	enough := look() + times
	p.start(t)
	await(t, "checkpoints", func() bool { return look() >= enough || exists("out/runs/0000/run.json")() })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
}

// expectSame fails where two records differ in more than the time that they took.
func expectSame(t *testing.T, one, other string, files ...string) {
	t.Helper()
	wall := regexp.MustCompile(`"wall_s": ?[0-9.e-]+`)
	for _, file := range files {
		a, err := os.ReadFile(filepath.Join(one, file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(other, file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(wall.ReplaceAll(a, nil), wall.ReplaceAll(b, nil)) {
			t.Errorf("%s differs", file)
		}
	}
}

// A process is killed again and again, at whatever instant, and each goes on where the one before
// has saved the run.
func TestRunOfProcessesThatAreKilledEndsLikeThatOfOne(t *testing.T) {
	turns.Take(t, 1, 3)
	plan := edit(t, small, "stop: {epochs: 2}", "stop: {epochs: 400}") +
		"record: events\ncheckpoint: {every: 1s, keep: 2}\n"
	enter(t, edit(t, plan, "every: 0.5 epochs", "every: 20 epochs"))
	whole := newProgram(t, "run", "plan.yaml", "--out", "whole")
	whole.start(t)
	if status := whole.end(t); status.ExitStatus() != cli.ExitDone {
		t.Fatal(whole.errs.String())
	}
	how, went := []string{"run", "plan.yaml", "--out", "out"}, 0
	for kill := range 5 {
		p := newProgram(t, how...)
		killSaved(t, p, 1+2*kill)
		if strings.Contains(p.errs.String(), "run 0 goes on from its checkpoint at ") {
			went++
		}
		how = []string{"run", "plan.yaml", "--from-checkpoint", "--continue", "out"}
	}
	if went == 0 {
		t.Error("no process went on from a checkpoint")
	}
	code, _, errs := gradwire(t, how...)
	expectCode(t, cli.ExitDone, code, errs)
	expectSame(t, "whole", "out", "plan.yaml", "curve.csv", "links.csv", "updates.csv", "runs/0000/run.json",
		"runs/0000/events.jsonl", "runs/0000/model.safetensors")
	// Of a process that is killed when it has saved the run some may be left.
	for _, left := range []string{"", "out/runs/0000/checkpoints/00.state"} {
		if left != "" {
			if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o700), os.WriteFile(left, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			code, _, errs := gradwire(t, "run", "plan.yaml", "--continue", "out")
			expectCode(t, cli.ExitDone, code, errs)
		}
		if left := checkpoints(t, "out/runs/0000"); len(left) > 0 {
			t.Errorf("a finished run has checkpoints: %v", left)
		}
	}
}

// Another build of the program resumes a run from its checkpoint, and so does a run command with a renamed
// copy of the plan. Without --from-checkpoint the run is repeated. All results are the same.
func TestRunOfAnotherProgramGoesOn(t *testing.T) {
	turns.Take(t, 0, 3)
	plan := edit(t, small, "stop: {epochs: 2}", "stop: {epochs: 400}") + "checkpoint: {every: 1s, keep: 1}\n"
	enter(t, plan)
	p := newProgram(t, "run", "plan.yaml", "--out", "out")
	p.start(t)
	await(t, "checkpoint", func() bool { return len(checkpoints(t, "out/runs/0000")) > 0 })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	own, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("other", append(own, 0), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := errors.Join(os.CopyFS("out2", os.DirFS("out")), os.CopyFS("out3", os.DirFS("out"))); err != nil {
		t.Fatal(err)
	}
	const went = "run 0 goes on from its checkpoint at "
	other := newProgram(t, "run", "plan.yaml", "--continue", "out2", "--from-checkpoint")
	other.Path = "./other"
	other.start(t)
	if status := other.end(t); status.ExitStatus() != cli.ExitDone {
		t.Fatal(other.errs.String())
	}
	if told := other.errs.String(); !strings.Contains(told, went) {
		t.Errorf("told:\n%s", told)
	}
	write(t, "renamed/plan.yaml", "# a note\n"+plan)
	code, _, errs := gradwire(t, "run", "renamed/plan.yaml", "--continue", "out", "--from-checkpoint")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.Contains(errs, went) {
		t.Errorf("told:\n%s", errs)
	}
	code, _, errs = gradwire(t, "run", "--continue", "out3")
	expectCode(t, cli.ExitDone, code, errs)
	if strings.Contains(errs, went) || !strings.Contains(errs, "run 0 is repeated from its start") {
		t.Errorf("told:\n%s", errs)
	}
	for _, out := range []string{"out2", "out3"} {
		expectSame(t, "out", out, "curve.csv", "runs/0000/run.json", "runs/0000/model.safetensors")
	}
}

func TestRunGoesOnFromTheNewestCheckpointThatIsWhole(t *testing.T) {
	turns.Take(t, 2, 3)
	enter(t, edit(t, small, "stop: {epochs: 2}", "stop: {epochs: 400}")+"checkpoint: {every: 1s}\n")
	p := newProgram(t, "run", "plan.yaml", "--out", "out")
	p.start(t)
	await(t, "three checkpoints", func() bool { return len(checkpoints(t, "out/runs/0000")) >= 3 })
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	names := checkpoints(t, "out/runs/0000")
	newest, second := names[len(names)-1], names[len(names)-2]
	changed := changeBit(t, newest, rand.New(rand.NewPCG(1, 2)))
	if err := os.Truncate(filepath.Join(second, "state.pb"), 1000); err != nil {
		t.Fatal(err)
	}
	code, _, errs := gradwire(t, "run", "plan.yaml", "--continue", "out", "--from-checkpoint")
	expectCode(t, cli.ExitDone, code, errs)
	for _, want := range []string{
		filepath.Base(newest) + ": the checkpoint is damaged: " + changed + ": its SHA-256 differs",
		filepath.Base(second) + ": the checkpoint is damaged: state.pb: it has 1000 bytes of ",
		"run 0 goes on from its checkpoint at ",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not told in:\n%s", want, errs)
		}
	}
}

// A run in real time is killed, and the next process goes on where it was: no step is missing in
// the record, and few are there twice.
func TestRunInRealTimeOfProcessesThatAreKilledCountsEachStepOnce(t *testing.T) {
	turns.Take(t, 2, 3)
	enter(t, edit(t, small, "stop: {epochs: 2}", "stop: {steps: 400}")+"record: events\ncheckpoint: {every: 200ms}\n")
	how := "--out"
	for kill := range 3 {
		p := newProgram(t, "run", "plan.yaml", "--clock", "real", how, "out")
		killSaved(t, p, 2)
		if kill > 0 && !strings.Contains(p.errs.String(), "run 0 goes on from its checkpoint at ") {
			t.Errorf("told:\n%s", p.errs.String())
		}
		how = "--continue"
	}
	code, _, errs := gradwire(t, "run", "plan.yaml", "--clock", "real", "--continue", "out")
	expectCode(t, cli.ExitDegraded, code, errs)
	run, data, err := record.OpenRun("out/runs/0000").Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Incidents) == 0 || !strings.Contains(run.Incidents[0].What, "went on from its state here") {
		t.Errorf("%+v", run.Incidents)
	}
	events, err := os.ReadFile("out/runs/0000/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	pushes := int64(0)
	for _, l := range data.Links {
		if l.To == "server" {
			pushes += l.Messages
		}
	}
	// A busy machine ends the run some steps late, and the gradients of the last steps need not
	// have left. Each of three interruptions can have one step of each of two workers counted twice
	// in one of the three figures.
	steps, written := int64(data.Steps), int64(bytes.Count(events, []byte(`"event":"step"`)))
	least, most := min(steps, pushes, written), max(steps, pushes, written)
	if least < 400-2 || least > 500 || most-least > 2*3+2 {
		t.Errorf("%d steps, %d pushes and %d steps among the events, want 400", steps, pushes, written)
	}
}

// A checkpoint by a later version stops the run, because that version can resume it. A checkpoint by an
// earlier version, which may no longer be installed anywhere, makes the run start over.
func TestCheckpointsOfOtherVersionsAreRefusedByName(t *testing.T) {
	turns.Take(t, 1, 3)
	enter(t, edit(t, small, "stop: {epochs: 2}", "stop: {time: 4s}")+"checkpoint: {every: 200ms, keep: 1}\n")
	killSaved(t, newProgram(t, "run", "plan.yaml", "--clock", "real", "--out", "out"), 1)
	names := checkpoints(t, "out/runs/0000")
	if len(names) == 0 {
		t.Skip("the run ended before it was killed")
	}
	newest := names[len(names)-1]
	for _, name := range names[:len(names)-1] {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	manifest := filepath.Join(newest, "manifest.json")
	b, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	write(t, manifest, strings.Replace(string(b), "gradwire checkpoint 5", "gradwire checkpoint 9", 1))
	resum(t, newest)
	code, _, errs := gradwire(t, "run", "plan.yaml", "--clock", "real", "--continue", "out")
	if code == cli.ExitDone || code == cli.ExitDegraded ||
		!strings.Contains(errs, "the checkpoint was written by a later version of gradwire") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if len(checkpoints(t, "out/runs/0000")) != 1 {
		t.Error("the checkpoint is gone")
	}
	if err := os.RemoveAll(newest); err != nil {
		t.Fatal(err)
	}
	write(t, newest, "gradwire checkpoint 3\nand the rest")
	code, _, errs = gradwire(t, "run", "plan.yaml", "--clock", "real", "--continue", "out")
	expectCode(t, cli.ExitDegraded, code, errs)
	if !strings.Contains(errs, "the checkpoint was written by an earlier version of gradwire") ||
		!strings.Contains(errs, "it begins anew") {
		t.Errorf("told:\n%s", errs)
	}
}

// --continue without --clock real refuses an interrupted run in real time and keeps its checkpoints, though it
// would remove those of a run in virtual time.
func TestInterruptedRunInRealTimeKeepsItsCheckpoints(t *testing.T) {
	enter(t, edit(t, small, "stop: {epochs: 2}", "stop: {time: 4s}")+"checkpoint: {every: 200ms, keep: 1}\n")
	killSaved(t, newProgram(t, "run", "plan.yaml", "--clock", "real", "--out", "out"), 1)
	if len(checkpoints(t, "out/runs/0000")) == 0 {
		t.Skip("the run ended before it was killed")
	}
	for _, more := range [][]string{nil, {"--from-checkpoint"}} {
		code, _, errs := gradwire(t, append([]string{"run", "plan.yaml", "--continue", "out"}, more...)...)
		expectCode(t, cli.ExitInput, code, errs)
		if !strings.Contains(errs, "go on with --clock real") || len(checkpoints(t, "out/runs/0000")) == 0 {
			t.Errorf("%v: told\n%s", more, errs)
		}
	}
}

// changeBit changes a random bit of one of a checkpoint's files, and names the file.
func changeBit(t *testing.T, name string, random *rand.Rand) (file string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(name, "[^m]*")) // not the manifest
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	file = files[random.IntN(len(files))]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[random.IntN(len(b))] ^= 1 << random.IntN(8)
	write(t, file, string(b))
	return filepath.Base(file)
}

// resum recomputes the checksums in the manifest of a changed checkpoint.
func resum(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(name, "manifest.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sums := regexp.MustCompile(`"name": "(.*)",\s*"bytes": \d+,\s*"sha256": "(.*)"`)
	text := string(b[:bytes.LastIndex(b, []byte(",\n \"sha256\""))])
	for _, m := range sums.FindAllStringSubmatch(text, -1) {
		content, err := os.ReadFile(filepath.Join(name, m[1]))
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, m[2], fmt.Sprintf("%x", sha256.Sum256(content)), 1)
	}
	write(t, path, text+fmt.Sprintf(",\n \"sha256\": \"%x\"\n}\n", sha256.Sum256([]byte(text))))
}

// gradwire refuses a checkpoint with one changed bit and a correct checksum, wherever the bit is: the
// run begins again and has the same result.
func TestRunDoesNotGoOnFromACheckpointWithAChangedBit(t *testing.T) {
	enter(t, edit(t, small, "stop: {epochs: 2}", "stop: {epochs: 60}")+"checkpoint: {every: 1s, keep: 1}\n")
	code, _, errs := gradwire(t, "run", "plan.yaml", "--out", "whole")
	expectCode(t, cli.ExitDone, code, errs)
	p := newProgram(t, "run", "plan.yaml", "--out", "out")
	killSaved(t, p, 1)
	names := checkpoints(t, "out/runs/0000")
	if len(names) == 0 {
		t.Skip("the run ended before it was killed")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for try := range 12 {
		folder := fmt.Sprintf("changed%d", try)
		if err := os.CopyFS(folder, os.DirFS("out")); err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(names[len(names)-1], "out", folder, 1)
		file := changeBit(t, changed, random)
		resum(t, changed)
		code, _, errs := gradwire(t, "run", "plan.yaml", "--continue", folder, "--from-checkpoint")
		expectCode(t, cli.ExitDone, code, errs)
		if !strings.Contains(errs, "the checkpoint comes from elsewhere or was changed") {
			t.Errorf("a bit of %s: told\n%s", file, errs)
		}
		expectSame(t, "whole", folder, "curve.csv", "runs/0000/run.json", "runs/0000/model.safetensors")
	}
}

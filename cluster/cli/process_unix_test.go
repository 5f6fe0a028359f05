//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/record"
)

// program is gradwire in a separate process.
type program struct {
	*exec.Cmd
	out, errs bytes.Buffer
}

func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0], args...)} //nolint:gosec // the test itself
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stdout, p.Stderr = &p.out, &p.errs
	return p
}

func (p *program) start(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
}

// end waits for the end of the process.
func (p *program) end(t *testing.T) syscall.WaitStatus {
	t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.Sys().(syscall.WaitStatus)
}

// await waits until a condition holds, but not forever.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(25 * time.Millisecond) // many conditions make a connection
	defer ticker.Stop()
	deadline := time.After(3 * time.Minute)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("no %s within three minutes", what)
		}
	}
}

func exists(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}

func TestInterruptKeepsFinishedRunsAndContinueMakesTheRest(t *testing.T) {
	enter(t, edit(t, small, "samples: 1500", "samples: 8000")+"repeats: 8\n")
	p := newProgram(t, "run", "plan.yaml", "--out", "out", "--jobs", "1")
	p.start(t)
	await(t, "finished run", exists("out/runs/0000/run.json"))
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := p.end(t); !status.Exited() || status.ExitStatus() != cli.ExitFailed {
		t.Fatalf("status %v: %s", status, p.errs.String())
	}
	s, err := record.ReadSummary("out")
	if err != nil || s.Complete || len(s.Runs) == 0 || len(s.Runs) == s.RunsPlanned {
		t.Fatalf("%d of %d runs, complete: %v, %v", len(s.Runs), s.RunsPlanned, s.Complete, err)
	}
	if !strings.Contains(p.errs.String(), "runs are finished and kept; go on with --continue out") {
		t.Errorf("printed:\n%s\n%s", p.out.String(), p.errs.String())
	}
	code, _, errs := gradwire(t, "run", "--continue", "out")
	expectCode(t, cli.ExitDone, code, errs)
	code, _, errs = gradwire(t, "run", "plan.yaml", "--out", "whole")
	expectCode(t, cli.ExitDone, code, errs)
	for _, file := range []string{"plan.yaml", "curve.csv", "links.csv", "updates.csv"} {
		a, err := os.ReadFile(filepath.Join("out", file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join("whole", file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs between a continued plan and one run in one go", file)
		}
	}
}

func TestInterruptEndsACommandThatIsBlocked(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := newProgram(t, "run", "-") // reads the plan from a pipe that stays empty
		input, err := p.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = input.Close() }()
		p.Stderr = nil
		notes, err := p.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		p.start(t)
		// More than a pipe holds: the program has begun to read, and waits for the rest.
		if _, err := input.Write(bytes.Repeat([]byte("#\n"), 1<<16)); err != nil {
			t.Fatal(err)
		}
		if err := p.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(notes)
		const want = "stopping cleanly; interrupt again to stop at once\nstopped; nothing was finished, and " +
			"there is nothing to continue\n"
		if status := p.end(t); err != nil || string(text) != want || status.ExitStatus() != cli.ExitFailed {
			t.Errorf("%v: %q, %v, status %v", signal, text, err, status)
		}
	}
}

func TestFullDiskFailsAndLeavesNoSummaryThatLooksWhole(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	mountSmall(t, disk, "64k")
	enter(t, small+"repeats: 30\n")
	for _, jobs := range []string{"1", "2"} {
		dir := filepath.Join(disk, "out"+jobs)
		code, out, errs := gradwire(t, "run", "plan.yaml", "--out", dir, "--jobs", jobs)
		expectCode(t, cli.ExitFailed, code, errs)
		if !strings.Contains(errs, "no space left on device") || !strings.Contains(errs, disk) {
			t.Errorf("told: %s", errs)
		}
		if strings.Contains(out, "\nOpen ") {
			t.Errorf("printed: %s", out)
		}
		if s, err := record.ReadSummary(dir); err == nil && s.Complete {
			t.Errorf("a summary that looks whole: %+v", s)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// mountSmall mounts a disk of a size at a folder. It skips the test where that cannot be done.
func mountSmall(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir) //nolint:gosec // of this test
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("a small disk can only be made by root on Linux (this is %s): %v: %s", runtime.GOOS, err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// fillDisk leaves no room on the disk of a folder.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"errors"
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
	if !strings.Contains(p.errs.String(), "runs are finished and kept; go on with --continue out") ||
		!strings.Contains(p.out.String(), "record in out") {
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

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	enter(t, edit(t, small, "{set: synthetic-traffic, samples: 1500}", "{set: nsl-kdd}"))
	// Whoever reads a pipe that nobody writes to waits, whatever its context says.
	if err := syscall.Mkfifo("KDDTrain+.txt", 0o600); err != nil {
		t.Skipf("no named pipe can be made: %v", err)
	}
	p := newProgram(t, "run", "plan.yaml", "--data", ".", "--out", "out")
	p.Stderr = nil
	told, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.start(t)
	pipe, err := os.OpenFile("KDDTrain+.txt", os.O_WRONLY, 0) // returns when the program reads
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil || line != "stopping cleanly; interrupt again to stop at once\n" {
		t.Fatalf("told %q, %v", line, err)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := p.end(t); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("status %v", status)
	}
}

func TestFullDiskFailsAndLeavesNoSummaryThatLooksWhole(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("a small disk can only be made by root on Linux (this is %s): %v: %s", runtime.GOOS, err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", disk).Run() })
	enter(t, small+"repeats: 30\n")
	for _, jobs := range []string{"1", "2"} {
		dir := filepath.Join(disk, "out"+jobs)
		code, out, errs := gradwire(t, "run", "plan.yaml", "--out", dir, "--jobs", jobs)
		expectCode(t, cli.ExitFailed, code, errs)
		if !strings.Contains(errs, "no space left on device") || !strings.Contains(errs, disk) {
			t.Errorf("told: %s", errs)
		}
		if strings.Contains(out, "record in") {
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

package holders_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/archive"
	"github.com/gradwire/gradwire/cluster/holders"
	"github.com/gradwire/gradwire/cluster/record"
)

// badDisk is a holder's disk that fails in one step, or in all.
type badDisk struct {
	mu   sync.Mutex
	step string // name of the failing step, or "all"; empty for none
	err  error
}

var _ holders.Disk = (*badDisk)(nil)

// failAt makes a step fail from now on.
func (d *badDisk) failAt(step string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step, d.err = step, err
}

// fault returns the error of a step; nil if it succeeds.
func (d *badDisk) fault(step string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.step == step || d.step == "all" {
		return &os.PathError{Op: step, Path: "disk", Err: d.err}
	}
	return nil
}

func (d *badDisk) MakeFolder(path string) error {
	if err := d.fault("folder"); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o750)
}

func (d *badDisk) WriteFile(path string, text []byte) error {
	if err := d.fault("note"); err != nil {
		return err
	}
	return record.WriteFile(path, text)
}

func (d *badDisk) Unpack(from io.Reader, dir string) error {
	if err := d.fault("files"); err != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(from, 1<<10)) // a disk with room for 1 kB
		return err
	}
	return archive.Unpack(from, dir, archive.Accepted)
}

func (d *badDisk) Rename(from, to string) error {
	if err := d.fault("rename"); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// steps are the steps of storing a copy: checking the plan, making the folder, writing the files of
// runs and checkpoints, moving them into place, and writing the note. refusals are
// the errors of a disk.
var (
	steps    = []string{"ready", "folder", "files", "rename", "note", "all"}
	refusals = []error{syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT}
)

// moments are the times from which a disk fails.
var moments = []string{"from the start", "after the plan", "after a run", "after a checkpoint"}

// forEachFault runs a test for each step, each of some moments, and each other holder as the victim,
// whose disk fails in that step once the test calls refuse with that moment.
func forEachFault(t *testing.T, some []string,
	test func(t *testing.T, c *cluster, victim string, refuse func(now string))) {
	n := 0
	for _, step := range steps {
		for _, when := range some {
			for _, victim := range []string{"b", "c"} {
				err := refusals[n%len(refusals)]
				n++
				t.Run(fmt.Sprintf("%s of %s %s, %v", step, victim, when, err), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						c := newCluster(t, uint64(n), "a", "b", "c")
						defer c.close()
						test(t, c, victim, func(now string) {
							if now == when {
								time.Sleep(2 * time.Second)
								c.at(victim).disk.failAt(step, err)
							}
						})
					})
				})
			}
		}
	}
}

// work submits to process a, makes two runs and saves a checkpoint, and calls refuse at each moment.
func (c *cluster) work(refuse func(now string)) *process {
	a := c.at("a")
	refuse(moments[0])
	if names, note := a.submit("1"); len(names) != 3 {
		c.t.Fatalf("held by %v: %s", names, note)
	}
	refuse(moments[1])
	a.mustAttempt()
	a.mustMake(0)
	refuse(moments[2])
	a.Saved("1")
	refuse(moments[3])
	a.mustAttempt()
	a.mustMake(1)
	return a
}

// mustMake makes a run, which must have a number and commit within ten seconds.
func (p *process) mustMake(want int) {
	p.c.t.Helper()
	began := time.Now()
	if run, err := p.make(p.c.t.Context(), "1"); err != nil || run != want || time.Since(began) > 10*time.Second {
		p.c.t.Errorf("%s makes run %d after %v, %v", p.name, run, time.Since(began), err)
	}
}

// mustAttempt records an attempt, which must succeed.
func (p *process) mustAttempt() {
	p.c.t.Helper()
	if err := p.Attempt(p.c.t.Context(), "1"); err != nil {
		p.c.t.Errorf("%s attempts a run: %v", p.name, err)
	}
}

// A holder's disk fails in any step at any moment, and the conductor dies: the other holder goes on
// with all finished runs, to the end, and says why the first holder has no copy.
func TestHealthyHolderGoesOnWhateverTheOtherRefuses(t *testing.T) {
	forEachFault(t, moments, func(t *testing.T, c *cluster, victim string, refuse func(now string)) {
		a, other := c.work(refuse), map[string]string{"b": "c", "c": "b"}[victim]
		time.Sleep(3 * time.Second)
		// A holder that fails to check the plan only later keeps its copy.
		whole := c.at(victim).disk.step == "ready" && a.Lacking("1") == nil
		says := fmt.Sprintf("%s: %v", victim, c.at(victim).disk.err)
		if lacking := a.Lacking("1"); !whole && (len(lacking) != 1 || !strings.HasPrefix(lacking[0], says)) {
			t.Errorf("%v lack a copy, want %s", lacking, says)
		}
		c.kill("a")
		p := c.successor("1", "a")
		if p.name != other && !whole || p.text("1", 0) != "0 by a 1" || p.text("1", 1) != "1 by a 1" {
			t.Errorf("%s goes on with runs %q and %q", p.name, p.text("1", 0), p.text("1", 1))
		}
		p.mustAttempt()
		p.mustMake(2)
		if lacking := p.Lacking("1"); !slices.Contains(lacking, "a: away") {
			t.Errorf("%v lack a copy", lacking)
		}
		if err := p.finish(t.Context(), "1"); err != nil {
			t.Error(err)
		}
	})
}

// Process a loses the record while another holder has no copy: the third one goes on.
func TestHealthyHolderGoesOnWhenTheRecordIsLost(t *testing.T) {
	forEachFault(t, moments[:1], func(t *testing.T, c *cluster, _ string, refuse func(now string)) {
		a := c.work(refuse)
		time.Sleep(3 * time.Second)
		if err := os.RemoveAll(a.out()); err != nil {
			t.Fatal(err)
		}
		if !a.HandOver("1") {
			t.Fatal("a cannot hand it over")
		}
		p := c.successor("1", "a")
		if p.text("1", 0) != "0 by a 1" || p.text("1", 1) != "1 by a 1" {
			t.Errorf("%s goes on with runs %q and %q", p.name, p.text("1", 0), p.text("1", 1))
		}
		p.mustAttempt()
		p.mustMake(2)
	})
}

// A holder without a copy gets one once its disk has room again.
func TestHolderWithoutACopyGetsOneWhenItsDiskHasRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("b").disk.failAt("all", syscall.EROFS)
		a := c.work(func(string) {})
		c.at("b").disk.failAt("", nil)
		time.Sleep(10 * time.Second)
		if lacking := a.Lacking("1"); lacking != nil || len(c.copies("b")) != 1 || !a.noted("copies 3 of 3") {
			t.Errorf("%v lack a copy", lacking)
		}
		c.kill("c")
		c.kill("a")
		c.start("c")
		c.successor("1", "a").mustMake(2)
	})
}

// If no other process can store a copy, a submission has no holders, and the note says why.
func TestSubmissionThatNoOtherProcessCanHoldSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		for _, name := range []string{"b", "c"} {
			c.at(name).disk.failAt("all", syscall.ENOSPC)
		}
		names, note := c.at("a").submit("1")
		if names != nil || strings.Count(note, "no space left on device") != 2 {
			t.Errorf("held by %v, %q", names, note)
		}
	})
}

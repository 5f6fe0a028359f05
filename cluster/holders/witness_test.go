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

// badDisk refuses some steps of what a holder writes.
type badDisk struct {
	mu   sync.Mutex
	step string // "all", or the one that is refused; empty for none
	err  error
}

var _ holders.Disk = (*badDisk)(nil)

// breaks has the disk refuse a step from now on.
func (d *badDisk) breaks(step string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step, d.err = step, err
}

func (d *badDisk) refuses(step string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.step == step || d.step == "all" {
		return &os.PathError{Op: step, Path: "disk", Err: d.err}
	}
	return nil
}

func (d *badDisk) MakeFolder(path string) error {
	if err := d.refuses("folder"); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o750)
}

func (d *badDisk) WriteFile(path string, text []byte) error {
	if err := d.refuses("note"); err != nil {
		return err
	}
	return record.WriteFile(path, text)
}

func (d *badDisk) Unpack(from io.Reader, dir string) error {
	if err := d.refuses("files"); err != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(from, 1<<10)) // as far as there is room
		return err
	}
	return archive.Unpack(from, dir, archive.Accepted)
}

func (d *badDisk) Rename(from, to string) error {
	if err := d.refuses("rename"); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// steps are those of a copy: the plan, its folder, the files of runs and checkpoints, their place, and
// the note with the promise. refusals are what a disk says.
var (
	steps    = []string{"ready", "folder", "files", "rename", "note", "all"}
	refusals = []error{syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT}
)

// later are the moments at which a disk can begin to refuse.
var later = []string{"from the start", "after the plan", "after a run", "after a checkpoint"}

// eachRefusal runs a test for each step that a disk can refuse, at each moment, by each holder.
func eachRefusal(t *testing.T, moments []string,
	test func(t *testing.T, c *cluster, victim string, refuse func(when string))) {
	n := 0
	for _, step := range steps {
		for _, when := range moments {
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
								c.at(victim).disk.breaks(step, err)
							}
						})
					})
				})
			}
		}
	}
}

// begin submits, makes a run and saves, while a disk begins to refuse.
func (c *cluster) begin(refuse func(when string)) *process {
	a := c.at("a")
	refuse(later[0])
	if names, note := a.submit("1"); len(names) != 3 {
		c.t.Fatalf("held by %v: %s", names, note)
	}
	refuse(later[1])
	a.attempts()
	a.makes(0)
	refuse(later[2])
	a.Saved("1")
	refuse(later[3])
	a.attempts()
	a.makes(1)
	return a
}

// makes makes the run of a number, which counts soon.
func (p *process) makes(want int) {
	p.c.t.Helper()
	began := time.Now()
	if run, err := p.make(p.c.t.Context(), "1"); err != nil || run != want || time.Since(began) > 10*time.Second {
		p.c.t.Errorf("%s makes run %d after %v, %v", p.name, run, time.Since(began), err)
	}
}

func (p *process) attempts() {
	p.c.t.Helper()
	if err := p.Attempt(p.c.t.Context(), "1"); err != nil {
		p.c.t.Errorf("%s begins: %v", p.name, err)
	}
}

// A holder refuses any step at any time, and the conductor dies: the other holder goes on with all
// that has finished, to the end, and says why there are not more copies.
func TestHealthyHolderGoesOnWhateverTheOtherRefuses(t *testing.T) {
	eachRefusal(t, later, func(t *testing.T, c *cluster, victim string, refuse func(when string)) {
		a, other := c.begin(refuse), map[string]string{"b": "c", "c": "b"}[victim]
		time.Sleep(3 * time.Second)
		// One that cannot try the plan any more has its copy still.
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
		p.attempts()
		p.makes(2)
		if lacking := p.Lacking("1"); !slices.Contains(lacking, "a: away") {
			t.Errorf("%v lack a copy", lacking)
		}
		if err := p.finish(t.Context(), "1"); err != nil {
			t.Error(err)
		}
	})
}

// The record is lost under its process while another holder has no copy: the third goes on.
func TestHealthyHolderGoesOnWhenTheRecordIsLost(t *testing.T) {
	eachRefusal(t, later[:1], func(t *testing.T, c *cluster, _ string, refuse func(when string)) {
		a := c.begin(refuse)
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
		p.attempts()
		p.makes(2)
	})
}

// A witness starts again and has forgotten its promise: it lets nobody have the lease until the
// owner, by the votes of others, lets it vote again.
func TestWitnessThatStartsAgainAbstains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("b").disk.breaks("all", syscall.ENOSPC)
		a := c.begin(func(string) {})
		cut := func(from, to string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.cut[[2]string{from, to}] = true
		}
		cut("a", "c")
		time.Sleep(4 * time.Second) // the lease is b's to give
		c.kill("b")
		c.start("b")
		time.Sleep(10 * time.Second)
		if c.at("b").Holds("1") {
			t.Error("b votes though it has forgotten what it has promised")
		}
		c.mu.Lock()
		clear(c.cut)
		c.mu.Unlock()
		time.Sleep(5 * time.Second)
		if _, err := a.make(t.Context(), "1"); err != nil || !c.at("b").Holds("1") {
			t.Errorf("%v; b holds it: %v", err, c.at("b").Holds("1"))
		}
	})
}

// A disk that has room again gets a copy.
func TestWitnessBecomesAHolderWhenItsDiskHasRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("b").disk.breaks("all", syscall.EROFS)
		a := c.begin(func(string) {})
		c.at("b").disk.breaks("", nil)
		time.Sleep(10 * time.Second)
		if lacking := a.Lacking("1"); lacking != nil || len(c.copies("b")) != 1 || !a.noted("copies 3 of 3") {
			t.Errorf("%v lack a copy", lacking)
		}
		c.kill("c")
		c.kill("a")
		c.start("c")
		c.successor("1", "a").makes(2)
	})
}

// Where nobody else can store a copy, there are no holders, and the note says why.
func TestSubmissionThatNobodyElseCanHoldSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		for _, name := range []string{"b", "c"} {
			c.at(name).disk.breaks("all", syscall.ENOSPC)
		}
		names, note := c.at("a").submit("1")
		if names != nil || strings.Count(note, "no space left on device") != 2 {
			t.Errorf("held by %v, %q", names, note)
		}
	})
}

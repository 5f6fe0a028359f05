package holders_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/refusal"
)

// smallDisk mounts a disk of 64 kB at a folder. It skips the test where that cannot be done.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk can only be made by root on Linux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
}

// fill leaves no room on a disk.
func fill(dir string) error {
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// faults are what can be wrong with the folder of a holder.
var faults = []struct {
	name  string
	disk  bool // it is a disk of its own
	cause func(dir, notes string) error
	says  string
}{
	{"full", true, func(dir, _ string) error { return fill(dir) }, "no space left on device"},
	{"read only", true, func(dir, _ string) error {
		return exec.Command("mount", "-o", "remount,ro", dir).Run()
	}, "read-only file system"},
	{"a file in its place", false, func(_, notes string) error {
		return errors.Join(os.RemoveAll(notes), os.WriteFile(notes, nil, 0o600))
	}, "not a directory"},
}

// broken begins a submission with one run at process a, and then breaks the folder of a holder.
func broken(t *testing.T, i int, names ...string) (c *cluster, victim string) {
	t.Helper()
	c = newCluster(t, 1)
	for _, name := range names {
		if dir := filepath.Join(c.dir, name); faults[i].disk && name != "a" {
			smallDisk(t, dir)
		}
	}
	for _, name := range names {
		c.start(name)
	}
	a := c.at("a")
	held, note := a.submit("1")
	if note != "" {
		t.Fatal(note)
	}
	if _, err := a.make(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // both have it
	victim = held[2]
	dir := filepath.Join(c.dir, victim)
	if err := faults[i].cause(dir, filepath.Join(dir, ".held-"+victim)); err != nil {
		t.Fatal(err)
	}
	return c, victim
}

func TestHolderThatCannotWriteIsNamedAtOnceAndReplaced(t *testing.T) {
	for i, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, victim := broken(t, i, "a", "b", "c", "d")
				defer c.close()
				a := c.at("a")
				began := time.Now()
				if _, err := a.make(t.Context(), "1"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				says := victim + ": " + fault.says
				if lacking := a.Lacking("1"); len(lacking) != 1 || !strings.HasPrefix(lacking[0], says) {
					t.Errorf("%v lack a copy, want %s", lacking, says)
				}
				if !a.noted("copies 2 of 3, " + says) {
					t.Errorf("the log does not say %q", says)
				}
				for range 400 {
					if held := a.heldBy("1"); held != nil && !slices.Contains(held, victim) {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				t.Logf("%s is replaced after %v", victim, time.Since(began))
				if held := a.heldBy("1"); len(held) != 3 || slices.Contains(held, victim) || a.Lacking("1") != nil {
					t.Errorf("held by %v; lacking: %v", held, a.Lacking("1"))
				}
			})
		})
	}
}

// The conductor dies while the disk of a holder is full: the third process goes on, and says that its
// runs do not survive it.
func TestOwnerWithTheOnlyCopyGoesOnAndSaysSo(t *testing.T) {
	for i, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, victim := broken(t, i, "a", "b", "c")
				defer c.close()
				c.kill("a")
				other := "b"
				if victim == "b" {
					other = "c"
				}
				p := c.successor("1", "a")
				if run, err := p.make(t.Context(), "1"); err != nil || run != 1 || p.name != other {
					t.Errorf("%s makes run %d, %v", p.name, run, err)
				}
				says := "copies 1 of 3, a: away, " + victim + ": " + fault.says
				time.Sleep(2 * time.Second)
				if !p.noted(says) || !p.noted("does not survive process "+other) {
					t.Errorf("%s does not say %q", other, says)
				}
			})
		})
	}
}

func TestHolderWhoseCopyIsDeletedGetsAllOfItAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		if _, err := a.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		copies := filepath.Join(c.dir, "b", ".held-b", "1")
		if err := os.RemoveAll(copies); err != nil {
			t.Fatal(err)
		}
		if _, err := a.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for _, run := range []string{"0000", "0001"} {
			if _, err := os.Stat(filepath.Join(copies, "runs", run, "run.json")); err != nil {
				t.Error(err)
			}
		}
	})
}

// A holder whose disk is emptied while the submission ends gets a copy all the same.
func TestHolderThatIsEmptiedAtTheEndGetsACopy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		if _, err := a.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // both have it
		c.kill("b")
		if err := errors.Join(a.finish(t.Context(), "1"), os.RemoveAll(filepath.Join(c.dir, "b"))); err != nil {
			t.Fatal(err)
		}
		b := c.start("b")
		time.Sleep(10 * time.Second)
		if b.Copy("1") == nil || a.Lacking("1") != nil {
			t.Errorf("b has %v; lacking %v", c.copies("b"), a.Lacking("1"))
		}
	})
}

// A process whose record is gone yields it to the copy of another one. As long as it has the
// record, or does not answer, a copy stays a copy.
func TestCopyBecomesTheRecordWhereTheRecordIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a, b := c.at("a"), c.at("b")
		a.submit("1")
		if err := a.finish(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		a.done["1"] = true
		time.Sleep(time.Second)
		claim := func(why string) {
			t.Helper()
			var later *refusal.AgainError
			if _, err := b.Claim(t.Context(), "1"); !errors.As(err, &later) || !strings.Contains(err.Error(), why) {
				t.Errorf("b claims the record: %v, want %s", err, why)
			}
		}
		claim("is at process a")
		c.kill("a")
		claim("is away")
		if err := os.RemoveAll(filepath.Join(c.dir, "a")); err != nil {
			t.Fatal(err)
		}
		a = c.start("a")
		a.done = map[string]bool{}
		if all := b.Copies(); len(all) != 1 || all[0].State != "done" || !all[0].Copy {
			t.Fatalf("b tells of %v", all)
		}
		m, err := b.Claim(t.Context(), "1")
		if err != nil || m.End.State != "done" || b.Copy("1") != nil {
			t.Fatalf("%v, %v", m, err)
		}
		text, err := os.ReadFile(filepath.Join(b.out(), m.Folder, "summary.json"))
		if err != nil || string(text) != "by a" {
			t.Errorf("summary %q, %v", text, err)
		}
		b.Remove("1")
		time.Sleep(time.Second)
		if c.at("c").Copy("1") != nil || len(c.copies("c")) > 0 {
			t.Errorf("c has %v", c.copies("c"))
		}
	})
}

// A holder tells of what it holds, whoever carries it out, and since when nothing was heard.
func TestHolderTellsSinceWhenTheOwnerIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		if _, err := a.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		c.mu.Lock()
		c.cut[[2]string{"a", "b"}], c.cut[[2]string{"a", "c"}] = true, true
		silent := time.Now()
		c.cutAt = silent
		c.mu.Unlock()
		time.Sleep(8 * time.Second)
		for _, name := range []string{"b", "c"} {
			all := c.at(name).Held()
			if len(all) != 1 {
				t.Fatalf("%s tells of %v", name, all)
			}
			m := all[0]
			if off := time.Unix(0, m.Away).Sub(silent).Abs(); off > 2*time.Second || m.Process != "a" || m.Done != 1 ||
				m.State != "running" || !strings.Contains(m.Why, "has not heard of it since") {
				t.Errorf("%s tells %v, off by %v", name, m, off)
			}
		}
		if all := a.Held(); len(all) > 0 {
			t.Errorf("a, which carries it out, tells of %v", all)
		}
	})
}

// heldBy are the holders of a submission that is carried out here, once they have changed.
func (p *process) heldBy(id string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holders[id]
}

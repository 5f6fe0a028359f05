package holders_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// heldBy waits until three processes that are there hold a submission, as its owner sees it.
func (c *cluster) heldBy(id string, owner *process) []string {
	c.t.Helper()
	for range 1200 {
		owner.mu.Lock()
		names := owner.holders[id]
		owner.mu.Unlock()
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return owner.gone(name, 0) }) {
			return names
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("submission %s is not held by three processes again within a minute: %v", id, owner.holders[id])
	return nil
}

func TestSubmissionSurvivesManyLossesOneAfterTheOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c", "d", "e", "f")
		defer c.close()
		owner := c.at("a")
		names, _ := owner.submit("1")
		made := 0
		for loss := range 4 {
			if run, err := owner.make(t.Context(), "1"); err != nil || run != made {
				t.Fatalf("run %d, %v", run, err)
			}
			made++
			victim := owner.name
			if loss%2 == 1 {
				victim = names[slices.IndexFunc(names, func(name string) bool { return name != owner.name })]
			}
			began := time.Now()
			if c.kill(victim); victim == owner.name {
				owner = c.successor("1", victim)
			}
			if loss == 3 {
				break // two are left
			}
			names = c.heldBy("1", owner)
			if took := time.Since(began); len(names) != 3 || slices.Contains(names, victim) || took > 16*time.Second {
				t.Errorf("%s is gone; held by %v after %v", victim, names, took)
			}
		}
		for run := range made {
			if text := owner.text("1", run); text == "" {
				t.Errorf("run %d is lost", run)
			}
		}
		if run, err := owner.make(t.Context(), "1"); err != nil || run != made {
			t.Errorf("run %d, %v", run, err)
		}
		c.start("a") // which holds it no longer, and did
		time.Sleep(20 * time.Second)
		if c.at("a").Holds("1") == !slices.Contains(c.heldBy("1", owner), "a") {
			t.Errorf("a holds it: %v; held by %v", c.at("a").Holds("1"), c.heldBy("1", owner))
		}
	})
}

func TestHolderThatIsBackInTimeIsNotReplacedAndOneThatIsNotForgetsItsCopy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c", "d")
		defer c.close()
		a := c.at("a")
		names, _ := a.submit("1")
		other := names[1]
		c.kill(other)
		time.Sleep(9 * time.Second)
		c.start(other)
		time.Sleep(10 * time.Second)
		if a.replaced > 0 || !c.at(other).Holds("1") {
			t.Errorf("held by %v", a.holders["1"])
		}
		c.kill(other)
		if names := c.heldBy("1", a); slices.Contains(names, other) {
			t.Errorf("held by %v", names)
		}
		for range 2 { // in its next life as well, which reads what this one has noted
			c.start(other)
			time.Sleep(5 * time.Second)
			if left := c.copies(other); c.at(other).Holds("1") || len(left) > 0 {
				t.Errorf("%s has copies %v", other, left)
			}
			c.kill(other)
		}
		c.start(other)
		if answer := c.offer(other, names[2]); !strings.Contains(answer.Error, "its owner is another process: a") {
			t.Errorf("%s has forgotten what it has promised a: %v", other, answer)
		}
		c.kill(names[2])
		if names := c.heldBy("1", a); !slices.Contains(names, other) || !c.at(other).Holds("1") {
			t.Errorf("held by %v", names)
		}
	})
}

// offer has a process be sent a copy in the first term.
func (c *cluster) offer(to, from string) *protos.CopyAnswer {
	c.t.Helper()
	here, there := net.Pipe()
	c.at(to).Take(there, from)
	answer := &protos.CopyAnswer{}
	head := &protos.CopyHead{From: from, Whole: true, Version: &protos.Version{Term: 1},
		Plan: &protos.HeldPlan{Id: "1", Folder: "plan-1", Submitted: &protos.SubmitPlan{}}}
	err := request.Write(here, head)
	if err := errors.Join(err, request.Read(bufio.NewReader(here), answer), here.Close()); err != nil {
		c.t.Fatal(err)
	}
	return answer
}

func TestUnfitProcessDoesNotBecomeAHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		names, _ := a.submit("1")
		for _, name := range []string{"d", "e"} {
			c.start(name).suits(os.ErrNotExist)
		}
		c.kill(names[1])
		time.Sleep(20 * time.Second)
		if a.replaced > 0 || len(c.copies("d"))+len(c.copies("e")) > 0 {
			t.Errorf("held by %v", a.holders["1"])
		}
		c.at("e").suits(nil)
		time.Sleep(2 * time.Minute)
		if names := c.heldBy("1", a); !slices.Contains(names, "e") {
			t.Errorf("held by %v", names)
		}
	})
}

func TestProcessThatLeavesHandsItsSubmissionsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c", "d", "e")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		if _, err := a.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var leaving sync.WaitGroup
		leaving.Go(func() { c.leave("a") })
		next := c.successor("1", "a")
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s goes on after %v", next.name, took)
		}
		leaving.Wait()
		if run, err := next.make(t.Context(), "1"); err != nil || run != 1 {
			t.Errorf("run %d, %v", run, err)
		}
		names := c.heldBy("1", next)
		if took := time.Since(began); took > 3*time.Second || slices.Contains(names, "a") {
			t.Errorf("held by %v after %v", names, took)
		}
		other := names[slices.IndexFunc(names, func(name string) bool { return name != next.name })]
		began = time.Now()
		c.leave(other)
		names = c.heldBy("1", next)
		if took := time.Since(began); took > 3*time.Second || slices.Contains(names, other) {
			t.Errorf("held by %v after %v", names, took)
		}
	})
}

// A process that was replaced as a holder while it was away, and that had ended the submission in its
// own record, yields to the owner: its record must not count as an end.
func TestRecordOfAReplacedOwnerIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c", "d")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		a.done["1"] = true // as its ledger says, although the registry has not recorded the end
		c.kill("a")
		b := c.successor("1", "a")
		names := c.heldBy("1", b)
		c.mu.Lock()
		for _, other := range []string{"b", "c", "d"} { // so that a hears of the owner alone, not of the registry
			c.cut[[2]string{"a", other}] = other != b.name
		}
		c.mu.Unlock()
		a = c.start("a")
		time.Sleep(20 * time.Second)
		if slices.Contains(names, "a") || a.done["1"] || a.Holds("1") {
			t.Errorf("held by %v; a has ended it: %v, holds it: %v", names, a.done["1"], a.Holds("1"))
		}
	})
}

// An owner whose other holders have left goes on alone, without a word of them.
func TestOwnerGoesOnWhenAllOthersHaveLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		c.leave("b")
		c.leave("c")
		for want := range 2 {
			if run, err := a.make(t.Context(), "1"); err != nil || run != want {
				t.Errorf("run %d, %v", run, err)
			}
		}
		if err := a.finish(t.Context(), "1"); err != nil || a.Holds("1") {
			t.Errorf("the end: %v", err)
		}
	})
}

// All processes take their leave at a time, as when all machines are switched off.
func TestSubmissionIsThereAfterAllHaveLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("a").submit("1")
		began := time.Now()
		for _, name := range []string{"a", "b", "c"} {
			c.at(name).work.Go(func() { c.at(name).Leave(t.Context()) })
		}
		time.Sleep(5 * time.Second)
		for _, name := range []string{"a", "b", "c"} {
			c.kill(name)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("they have left after %v", took)
		}
		for _, name := range []string{"c", "b", "a"} {
			c.start(name)
		}
		if run, err := c.successor("1", "").make(t.Context(), "1"); err != nil || run != 0 {
			t.Errorf("run %d, %v", run, err)
		}
	})
}

// The upper bits of a run's number are the term.
func TestHolderThatIsAloneForLongDoesNotRaiseTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("a").submit("1")
		c.kill("a")
		c.kill("b")
		time.Sleep(6 * time.Hour)
		c.start("b")
		if next := c.successor("1", "a"); next.term > 10 {
			t.Errorf("%s goes on in term %d", next.name, next.term)
		}
	})
}

func TestOthersHearOfTheEndThoughItHasNotBeenWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		cut := func(cut bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.cut[[2]string{"a", "b"}], c.cut[[2]string{"a", "c"}] = cut, cut
		}
		cut(true)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := a.finish(ctx, "1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end is known: %v", err)
		}
		cut(false)
		time.Sleep(10 * time.Second)
		if a.Holds("1") || c.at("b").Copy("1") == nil || c.at("c").Copy("1") == nil {
			t.Errorf("a holds it still: %v", a.Holds("1"))
		}
	})
}

func TestRecordIsAtOtherHoldersAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		if _, err := a.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if err := a.finish(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.kill("a")
		c.kill("b")
		b := c.start("b")
		left := b.Copies()
		if len(left) != 1 || left[0].State != "done" || left[0].Process != "b" || b.Copy("1") == nil {
			t.Fatalf("b tells of %v", left)
		}
		files := map[string]string{"summary.json": "by a", "runs/0000/model": "0 by a 1", "plan.yaml": "name: 1"}
		for name, want := range files {
			if text, err := os.ReadFile(filepath.Join(left[0].Folder, name)); err != nil || string(text) != want {
				t.Errorf("%s holds %q, %v", name, text, err)
			}
		}
		a = c.start("a")
		a.Remove("1")
		time.Sleep(time.Second)
		if len(c.copies("b"))+len(c.copies("c")) > 0 || b.Copy("1") != nil {
			t.Errorf("copies %v, %v", c.copies("b"), c.copies("c"))
		}
	})
}

func TestCopiesOfRecordsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		for i := range 103 {
			id := string([]byte{'a' + byte(i/26), 'a' + byte(i%26)})
			a.submit(id)
			if err := a.finish(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := len(c.copies("b")); n != 100 {
			t.Errorf("b has %d copies", n)
		}
		if first := c.at("b").Copy("aa"); first != nil {
			t.Errorf("b has %v", first)
		}
	})
}

package rt

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// started returns a clock that runs until the end of the test.
func started(t *testing.T) *Clock {
	t.Helper()
	c, err := NewClock(0, func(reason any) { t.Errorf("a call panicked with %v", reason) })
	if err != nil {
		t.Fatal(err)
	}
	c.Begin()
	t.Cleanup(c.Stop)
	return c
}

func TestClockCallsInTheOrderOfInstantsThenOfEntries(t *testing.T) {
	c := started(t)
	var got []int
	done := make(chan struct{})
	c.At(0, func() { // the rest is entered while this call goes on
		for i, at := range []time.Duration{5, 3, 3, 1, 5, 0, 3} {
			c.At(at*time.Millisecond, func() { got = append(got, i) })
		}
		c.At(6*time.Millisecond, func() { close(done) })
	})
	<-done
	if want := []int{5, 3, 1, 2, 6, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("called in the order %v, want %v", got, want)
	}
}

func TestClockNeverCallsEarly(t *testing.T) {
	c := started(t)
	var group sync.WaitGroup
	for i := range 200 {
		group.Add(1)
		due := c.Now() + time.Duration(i)*50*time.Microsecond
		c.At(due, func() {
			if now := c.Now(); now < due {
				t.Errorf("called at %v, due at %v", now, due)
			}
			group.Done()
		})
	}
	group.Wait()
}

func TestEarlierEntryWakesASleepingClock(t *testing.T) {
	c := started(t)
	c.At(time.Hour, func() { t.Error("called an hour early") })
	for range 50 {
		called := make(chan struct{})
		c.At(0, func() { close(called) })
		<-called // or the test times out
	}
}

func TestClockStandsUntilItBegins(t *testing.T) {
	c, err := NewClock(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Now() != 0 {
		t.Errorf("it is %v before the run", c.Now())
	}
	called := make(chan struct{})
	c.At(0, func() { close(called) })
	c.Begin()
	<-called
	c.Stop()
}

func TestStoppedClockCallsNothingAndLeavesItsSleeperAlone(t *testing.T) {
	c, err := NewClock(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Begin()
	var group sync.WaitGroup
	for range 4 { // entries compete with the stop
		group.Go(func() {
			for range 1000 {
				c.CancelTimer(c.At(c.Now()+time.Hour, func() {}))
			}
		})
	}
	c.Stop()
	group.Wait()
	if id := c.At(0, func() { t.Error("called after the stop") }); id != 0 {
		t.Errorf("timer %d of a stopped clock, want 0", id)
	}
}

func TestPanicInACallIsReportedAndTheClockGoesOn(t *testing.T) {
	reasons := make(chan any, 1)
	c, err := NewClock(0, func(reason any) { reasons <- reason })
	if err != nil {
		t.Fatal(err)
	}
	c.Begin()
	defer c.Stop()
	c.At(0, func() { panic("oh") })
	if reason := <-reasons; reason != "oh" {
		t.Errorf("reported %v", reason)
	}
	called := make(chan struct{})
	c.At(0, func() { close(called) })
	<-called
}

// A running call may still deliver a message, so the clock is not idle until it returns.
func TestClockAtWorkIsNotIdle(t *testing.T) {
	c := started(t)
	works, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	c.At(0, func() {
		close(works)
		<-goOn
	})
	<-works
	if c.Idle() {
		t.Error("the clock is idle while a call runs")
	}
	close(goOn)
	c.Watch(0, func() { close(done) })
	<-done
	if !c.Idle() {
		t.Error("the clock is not idle while only a watcher runs")
	}
}

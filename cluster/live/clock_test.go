package live

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// started returns a clock that runs until the end of the test.
func started(t *testing.T) *clock {
	t.Helper()
	c, err := newClock(func(reason any) { t.Errorf("a call panicked with %v", reason) })
	if err != nil {
		t.Fatal(err)
	}
	c.begin()
	t.Cleanup(c.stop)
	return c
}

func TestClockCallsInTheOrderOfInstantsThenOfEntries(t *testing.T) {
	c := started(t)
	var got []int
	done := make(chan struct{})
	c.at(0, func() { // the rest is entered while this call goes on
		for i, at := range []time.Duration{5, 3, 3, 1, 5, 0, 3} {
			c.at(at*time.Millisecond, func() { got = append(got, i) })
		}
		c.at(6*time.Millisecond, func() { close(done) })
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
		due := c.now() + time.Duration(i)*50*time.Microsecond
		c.at(due, func() {
			if now := c.now(); now < due {
				t.Errorf("called at %v, due at %v", now, due)
			}
			group.Done()
		})
	}
	group.Wait()
}

func TestEarlierEntryWakesASleepingClock(t *testing.T) {
	c := started(t)
	c.at(time.Hour, func() { t.Error("called an hour early") })
	for range 50 {
		called := make(chan struct{})
		c.at(0, func() { close(called) })
		<-called // or the test times out
	}
}

func TestClockStandsUntilItBegins(t *testing.T) {
	c, err := newClock(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.now() != 0 {
		t.Errorf("it is %v before the run", c.now())
	}
	called := make(chan struct{})
	c.at(0, func() { close(called) })
	c.begin()
	<-called
	c.stop()
}

func TestStoppedClockCallsNothingAndLeavesItsSleeperAlone(t *testing.T) {
	c, err := newClock(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.begin()
	var group sync.WaitGroup
	for range 4 { // entries compete with the stop
		group.Go(func() {
			for range 1000 {
				c.CancelTimer(c.at(c.now()+time.Hour, func() {}))
			}
		})
	}
	c.stop()
	group.Wait()
	if id := c.at(0, func() { t.Error("called after the stop") }); id != 0 {
		t.Errorf("timer %d of a stopped clock, want 0", id)
	}
}

func TestPanicInACallIsReportedAndTheClockGoesOn(t *testing.T) {
	reasons := make(chan any, 1)
	c, err := newClock(func(reason any) { reasons <- reason })
	if err != nil {
		t.Fatal(err)
	}
	c.begin()
	defer c.stop()
	c.at(0, func() { panic("oh") })
	if reason := <-reasons; reason != "oh" {
		t.Errorf("reported %v", reason)
	}
	called := make(chan struct{})
	c.at(0, func() { close(called) })
	<-called
}

func TestStoppedPoolBeginsNothingMore(t *testing.T) {
	p := &pool{}
	if err := p.start(1); err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	err := errors.Join(
		p.submit(steps, func() { close(begun); <-release }),
		p.submit(steps, func() { t.Error("a queued computation was begun after the stop") }))
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	time.AfterFunc(10*time.Millisecond, func() { close(release) })
	p.stop()
	for range 2 * maxQueued { // more than the queue holds
		if err := p.submit(steps, func() { t.Error("computed after the stop") }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoolComputesEverythingOnce(t *testing.T) {
	p := &pool{}
	if err := p.start(2); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for i := range maxQueued {
		group.Add(1)
		if err := p.submit(class(i)%classes, func() {
			defer group.Done()
			mu.Lock()
			defer mu.Unlock()
			seen[i]++
		}); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	p.stop()
	for i := range maxQueued {
		if seen[i] != 1 {
			t.Fatalf("computation %d was done %d times", i, seen[i])
		}
	}
}

// The oracle sorts.
func TestLatenessAgreesWithSortedData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-5, 1<<rapid.IntRange(1, 42).Draw(t, "bits")).Draw(t, "lateness"))
		}), 1, 200).Draw(t, "data")
		var l lateness
		for i, d := range data {
			l.add(d)
			data[i] = max(d, 0)
		}
		slices.Sort(data)
		s := l.summary()
		if s.Count != int64(len(data)) || s.Max != data[len(data)-1] {
			t.Fatalf("%+v of %v", s, data)
		}
		for _, q := range []struct {
			got  time.Duration
			rank int
		}{{s.P50, (len(data) + 1) / 2}, {s.P99, (99*len(data) + 99) / 100}} {
			exact := data[q.rank-1]
			if q.got < exact || q.got > exact+exact/8+8 {
				t.Fatalf("quantile %v, exactly %v: not at most an eighth above", q.got, exact)
			}
		}
	})
}

func TestBucketsFollowOneAnother(t *testing.T) {
	for b := range 8*40 - 1 {
		if bucket(upper(b)) != b || bucket(upper(b)+1) != b+1 {
			t.Fatalf("bucket %d ends at %v, which is in bucket %d; the next value is in %d", b, upper(b), bucket(upper(b)), bucket(upper(b)+1))
		}
	}
	if fmt.Sprint((&lateness{}).summary()) != "{0 0s 0s 0s}" {
		t.Error("lateness of nothing is not zero")
	}
}

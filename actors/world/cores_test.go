package world_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/world"
)

// busy is a second, dumb implementation of Cores: it keeps every job that was ever
// booked and looks for the earliest instant at which enough cores are idle and no
// job before it has yet to start.
type busy struct {
	cores int
	jobs  []booked
}

type booked struct {
	start, end time.Duration
	cores      int
}

func (b *busy) book(now time.Duration, n int, d time.Duration) time.Duration {
	n = min(max(n, 1), b.cores)
	start := now
	for _, j := range b.jobs {
		start = max(start, j.start)
	}
	for b.used(start) > b.cores-n {
		next := time.Duration(math.MaxInt64)
		for _, j := range b.jobs {
			if j.end > start {
				next = min(next, j.end)
			}
		}
		start = next
	}
	b.jobs = append(b.jobs, booked{start, start + d, n})
	return start + d
}

// used counts the cores that are taken at an instant and after it.
func (b *busy) used(at time.Duration) int {
	n := 0
	for _, j := range b.jobs {
		if j.end > at {
			n += j.cores
		}
	}
	return n
}

func TestCoresBookFirstInFirstOutOnTheEarliestIdleCores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-1, 5).Draw(t, "cores")
		cores, dumb := world.NewCores(n), busy{cores: max(n, 1)}
		now := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "jobs") {
			now += time.Duration(rapid.IntRange(0, 5).Draw(t, "pause"))
			take := rapid.IntRange(-1, 7).Draw(t, "take")
			d := time.Duration(rapid.IntRange(0, 12).Draw(t, "time"))
			if got, want := cores.Book(now, take, d), dumb.book(now, take, d); got != want {
				t.Fatalf("at %d a job of %d on %d of %d cores ends at %d, want %d", now, d, take, n, got, want)
			}
		}
	})
}

func TestBookingBeyondTheEndOfTimeStaysThere(t *testing.T) {
	c := world.NewCores(1)
	const century = 100 * 365 * 24 * time.Hour
	end := time.Duration(0)
	for range 5 {
		next := c.Book(end, 1, century)
		if next < end {
			t.Fatalf("a job after %v ends at %v", end, next)
		}
		end = next
	}
	if end != math.MaxInt64 {
		t.Errorf("ends at %v", end)
	}
}

func BenchmarkBook(b *testing.B) {
	c := world.NewCores(8)
	b.ReportAllocs()
	now := time.Duration(0)
	for b.Loop() {
		now++
		c.Book(now, 1, 5)
	}
}

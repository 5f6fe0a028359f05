package queue_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/queue"
)

// What a slice would hold comes out of a ring, however pushes and pops follow each other.
func TestRingKeepsTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var r queue.Ring[int]
	var want []int
	for i := range 10_000 {
		if random.IntN(1000) < 500+i%100-50 {
			r.Push(i)
			want = append(want, i)
		} else if len(want) > 0 {
			if front, got := r.Front(), r.Pop(); got != want[0] || front != got {
				t.Fatalf("operation %d: got %d, at the front was %d, want %d", i, got, front, want[0])
			}
			want = want[1:]
		}
		if r.Len() != len(want) {
			t.Fatalf("operation %d: length %d, want %d", i, r.Len(), len(want))
		}
	}
}

func TestRingThatHasItsSizeAllocatesNothing(t *testing.T) {
	var r queue.Ring[*int]
	for range 100 {
		r.Push(nil)
	}
	if n := testing.AllocsPerRun(1000, func() { r.Push(r.Pop()) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What comes out of a calendar is what a stable sort of its entries would give.
func TestCalendarKeepsTheOrderOfInstantsThenOfEntries(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var c queue.Calendar[int]
	type due struct {
		at     time.Duration
		number uint64
		id     uint64
	}
	var want []due
	for i := 1; i < 10_000; i++ {
		if random.IntN(100) < 50+i%10-5 {
			d := due{at: time.Duration(random.IntN(50)), number: uint64(i)}
			item, id := c.Enter(d.at)
			*item, d.id = i, id
			at, _ := slices.BinarySearchFunc(want, d, func(a, b due) int {
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
			})
			want = slices.Insert(want, at, d)
			continue
		}
		if number := c.Number(); number != uint64(i) {
			t.Fatalf("operation %d has number %d", i, number)
		}
		if len(want) == 0 {
			continue
		}
		if found := c.Find(want[0].id); c.First() != want[0].at || found == nil || *found != int(want[0].number) {
			t.Fatalf("operation %d: the first is at %v, its item %v, want %+v", i, c.First(), found, want[0])
		}
		at, number, item := c.Next()
		if at != want[0].at || number != want[0].number || *item != int(number) {
			t.Fatalf("operation %d: got %d at %v with %d, want %+v", i, number, at, *item, want[0])
		}
		*item = 0
		if c.Find(want[0].id) != nil {
			t.Fatalf("operation %d: what was taken out is found", i)
		}
		if want = want[1:]; c.Len() != len(want) {
			t.Fatalf("operation %d: length %d, want %d", i, c.Len(), len(want))
		}
	}
	if c.Find(0) != nil {
		t.Error("an entry has number 0")
	}
}

func TestMailboxHandsOutTheMostUrgent(t *testing.T) {
	var m queue.Mailbox[string]
	m.User.Push("user")
	m.Control.Push("control")
	m.System.Push("system")
	for _, step := range []struct {
		held   bool
		want   string
		system bool
	}{{false, "system", true}, {true, "", false}, {false, "control", false}, {true, "", false}, {false, "user", false},
		{false, "", false}} {
		got, system, ok := m.Next(step.held)
		if got != step.want || system != step.system || ok != (step.want != "") {
			t.Errorf("held %v: got %q, system %v, %v; want %q", step.held, got, system, ok, step.want)
		}
	}
}

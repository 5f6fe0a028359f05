package queue_test

import (
	"math/rand/v2"
	"testing"

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

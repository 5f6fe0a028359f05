package protos_test

import (
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

func pushes() *protos.Messages[*protos.Push] {
	return protos.NewMessages(func() *protos.Push { return &protos.Push{} })
}

func TestLastReleaseOfAMessageReleasesItsTensors(t *testing.T) {
	var pool protos.TensorPool
	v, w := pool.Get(1), pool.Get(2)
	m := protos.NewMessage(&protos.Push{}, v, w)
	v.Retain() // a receiver keeps it
	m.Retain(2)
	m.Release()
	m.Release()
	if v.Sole() || pool.Get(2) == w {
		t.Error("tensors were released before the last reference to their message")
	}
	m.Release()
	if !v.Sole() || pool.Get(2) != w {
		t.Error("the last release of a message did not release its tensors")
	}
}

func TestTakenTensorIsSoleUnlessOthersHoldTheMessage(t *testing.T) {
	var pool protos.TensorPool
	for others := range 2 {
		v, w := pool.Get(1), pool.Get(2)
		m := protos.NewMessage(&protos.Push{}, v, w).Retain(others)
		if taken := m.Take(0); taken != v || v.Sole() != (others == 0) {
			t.Errorf("with %d other holders of the message the right tensor was taken: %v, it is sole: %v", others,
				taken == v, v.Sole())
		}
		for range 1 + others {
			m.Release()
		}
		if !v.Sole() || pool.Get(2) != w {
			t.Errorf("with %d other holders the last release left the wrong tensors", others)
		}
	}
}

func TestMessageReleasedOrRetainedAfterItsLastReleasePanics(t *testing.T) {
	m := protos.NewMessage(&protos.Push{})
	m.Release()
	expectPanic(t, "released more often", m.Release)
	pooled, _ := pushes().Get()
	pooled.Release()
	expectPanic(t, "retained after its last release", func() { pooled.Retain(1) })
	expectPanic(t, "negative", func() { protos.NewMessage(&protos.Push{}).Retain(-1) })
}

func TestReleasedMessageIsHandedOutAgainWithoutItsTensors(t *testing.T) {
	p := pushes()
	m, head := p.Get(protos.NewTensor(nil), protos.NewTensor(nil))
	if len(m.Tensors) != 2 || m.Head != proto.Message(head) {
		t.Fatalf("got a message of %d tensors", len(m.Tensors))
	}
	m.Release()
	again, _ := p.Get()
	if again != m || len(again.Tensors) != 0 {
		t.Errorf("the same message: %v, with %d tensors, want the same with none", again == m, len(again.Tensors))
	}
	if other, _ := p.Get(); other == m {
		t.Error("a message that is held was handed out")
	}
	again.Release()
}

func TestBroadcastReachesManyReceiversOnce(t *testing.T) {
	const receivers, rounds = 5, 200
	messages, tensors := pushes(), protos.TensorPool{Poison: true}
	var group sync.WaitGroup
	for round := range rounds {
		m, head := messages.Get(tensors.Copy([]float32{float32(round)}))
		head.Step = uint64(round)
		m.Retain(receivers - 1)
		for range receivers {
			group.Go(func() {
				defer m.Release()
				if got := m.Head.(*protos.Push).Step; got != uint64(round) || m.Tensors[0].Data[0] != float32(round) {
					t.Errorf("round %d arrived as step %d with %v", round, got, m.Tensors[0].Data)
				}
			})
		}
	}
	group.Wait()
}

func TestMessageCycleAllocatesNothing(t *testing.T) {
	messages, tensors := pushes(), protos.TensorPool{}
	cycle := func() {
		m, head := messages.Get(tensors.Get(100), tensors.Get(50))
		head.Node, head.Step, head.Version, head.Samples = 1, 2, 3, 4
		m.Retain(1)
		m.Release()
		m.Release()
	}
	cycle()
	if allocs := testing.AllocsPerRun(100, cycle); allocs != 0 {
		t.Errorf("%v allocations a cycle", allocs)
	}
}

func TestControlIsTheProtocolOfTheCoordinatorAlone(t *testing.T) {
	for head, want := range map[proto.Message]bool{
		&protos.Start{}: true, &protos.Progress{}: true, &protos.RoundDone{}: true,
		&protos.TakeSnapshot{}: true, &protos.Snapshot{}: true,
		&protos.Push{}: false, &protos.Parameters{}: false, &protos.Chunk{}: false, nil: false,
	} {
		if got := protos.IsControl(head); got != want {
			t.Errorf("%T is control: %v, want %v", head, got, want)
		}
	}
}

func BenchmarkMessageCycle(b *testing.B) {
	messages, tensors := pushes(), protos.TensorPool{}
	b.ReportAllocs()
	for b.Loop() {
		m, head := messages.Get(tensors.Get(2084))
		head.Step++
		m.Release()
	}
}

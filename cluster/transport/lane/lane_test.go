package lane_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/cluster/queue"
	"github.com/gradwire/gradwire/cluster/transport/lane"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// A lane beside a list of all frames: what is begun, written and taken in any order is released
// when it is both written and taken, and what is not taken is sent again, before what waits.
func TestFramesAreKeptUntilTheyAreWrittenAndTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*protos.Tensor
		packet := func() *wire.Packet {
			v := protos.NewTensor(make([]float32, 1))
			all = append(all, v)
			return packetOf(t, len(all)-1, v.Retain())
		}
		first := rapid.Uint64Range(0, 5).Draw(t, "first")
		k := lane.From(first)
		begun, written, taken := 0, 0, 0
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				k.Push(packet())
				begun++
			case 1:
				n := rapid.IntRange(0, begun-written).Draw(t, "written")
				written += n
				k.Wrote(uint64(n))
			case 2:
				taken += rapid.IntRange(0, begun-taken).Draw(t, "taken")
				k.Take(first + uint64(taken))
			}
			for i, v := range all {
				if v.Sole() != (i < min(written, taken)) {
					t.Fatalf("frame %d of %d written and %d taken: released %v", i, written, taken, v.Sole())
				}
			}
			if k.Begun() != first+uint64(begun) || k.Taken() != first+uint64(taken) ||
				k.Len() != begun-min(written, taken) || k.Fits(packetOf(t, 0), 0) != (k.Len() == 0) {
				t.Fatalf("%d begun, %d taken, %d kept", k.Begun(), k.Taken(), k.Len())
			}
		}
		var waiting queue.Ring[*wire.Packet]
		waits := rapid.IntRange(0, 5).Draw(t, "waiting")
		for range waits {
			waiting.Push(packet())
		}
		taken += rapid.IntRange(0, begun-taken).Draw(t, "taken at last")
		again := 0
		k.Requeue(first+uint64(taken), &waiting, func(*wire.Packet) { again++ })
		if again != begun-taken || waiting.Len() != again+waits || k.Len() != 0 || k.Begun() != first+uint64(taken) {
			t.Fatalf("%d of %d go again, %d wait", again, begun-taken, waiting.Len())
		}
		for i := taken; waiting.Len() > 0; i++ {
			f, err := waiting.Front().Frame()
			if err != nil || f.Head.(*protos.Chunk).Index != uint32(i) {
				t.Fatalf("%v where frame %d was to be, %v", f.Head, i, err)
			}
			k.Push(waiting.Pop())
		}
		k.Lose()
		for i, v := range all {
			if !v.Sole() {
				t.Fatalf("frame %d is still held", i)
			}
		}
	})
}

func packetOf(t *rapid.T, index int, tensors ...*protos.Tensor) *wire.Packet {
	p, err := wire.Pack(&wire.Frame{Kind: wire.User, Head: &protos.Chunk{Index: uint32(index)}, Tensors: tensors},
		wire.Bulk)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

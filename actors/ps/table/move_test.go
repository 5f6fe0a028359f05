package table

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// half is a sparse shard with some pushes behind it.
func half(t testing.TB) (*Layout, *shard) {
	t.Helper()
	l, err := NewLayout([]*Table{{Name: "t", Keys: 1000, Width: 2, Sparse: true, Shards: 2,
		Update: Optimizer(optim.Momentum{Rate: optim.Constant(0.5), Momentum: 0.5})}}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newShard(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []uint64{900, 500, 700} {
		head := &protos.Access{Push: true, First: first, Last: first + 1}
		_, _, _, err := s.access(&protos.TensorPool{}, head, []*protos.Tensor{
			protos.NewTensor([]float32{1, 2, 3, float32(first)})}, &protos.Accessed{}, false)
		if err != nil {
			t.Fatal(err)
		}
	}
	return l, s
}

func TestShardThatIsPackedAndUnpackedIsTheSame(t *testing.T) {
	l, s := half(t)
	head, tensors := s.pack(&protos.TensorPool{})
	to, err := newShard(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.unpack(head, tensors); err != nil {
		t.Fatal(err)
	}
	for _, first := range []uint64{500, 700, 900} {
		i, j := s.rows[first], to.rows[first]
		if !slices.Equal(s.values[2*i:2*i+4], to.values[2*j:2*j+4]) ||
			!slices.Equal(s.slots[0][2*i:2*i+4], to.slots[0][2*j:2*j+4]) || to.version != 3 {
			t.Errorf("key %d: %v and %v, version %d", first, s.values, to.values, to.version)
		}
	}
}

// Whatever is changed about a packed shard, it is taken in or refused, and never the reason of a
// panic.
func TestPackedShardsThatWereChangedAreRefusedOrTakenIn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l, s := half(t)
		head, tensors := s.pack(&protos.TensorPool{})
		fits := true
		switch rapid.IntRange(0, 3).Draw(r, "what") {
		case 0:
			head.Keys = rapid.Uint64().Draw(r, "keys")
			fits = head.Keys == 6
		case 1:
			head.Slots = rapid.Uint32Range(0, 3).Draw(r, "slots")
			fits = head.Slots == 1
		case 2:
			n := rapid.IntRange(0, 2).Draw(r, "tensor")
			tensors = slices.Delete(tensors, n, n+1)
			fits = false
		case 3:
			words := bytesOf(nil, tensors[2].Data)
			at := rapid.IntRange(0, len(words)-1).Draw(r, "at")
			words[at] = rapid.Byte().Draw(r, "byte")
			tensors[2] = protos.NewTensor(wordsOf(words))
		}
		to, err := newShard(l, 1)
		if err != nil {
			r.Fatal(err)
		}
		if err := to.unpack(head, tensors); err == nil != fits && (fits == false || head.Keys != 6) {
			r.Fatalf("taken in: %v", err)
		}
		if !slices.IsSorted(to.keys) || len(to.keys) > 0 && (to.keys[0] < 500 || to.keys[len(to.keys)-1] > 999) {
			r.Fatalf("keys %v", to.keys)
		}
	})
}

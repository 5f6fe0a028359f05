package wire_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

func pack(t testing.TB, f *wire.Frame, c wire.Class) *wire.Packet {
	t.Helper()
	p, err := wire.Pack(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPacketIsTheEncodedFrameAndKeepsItsTensors(t *testing.T) {
	f := example()
	tensors := slices.Clone(f.Tensors)
	p := pack(t, f, wire.Eager)
	encoded := encode(t, f)
	if head := p.Head[wire.Headroom:]; !bytes.Equal(head, encoded[:len(head)]) ||
		len(head)+p.Values != len(encoded) || p.Size() != wire.Headroom+len(encoded) {
		t.Errorf("%d bytes of head and %d of values, the frame has %d", len(head), p.Values, len(encoded))
	}
	got, err := p.Frame()
	if err != nil || !equal(f, &got) || got.Head == f.Head {
		t.Fatalf("got %+v, %v, sent %+v", got, err, f)
	}
	f.Tensors[0] = nil
	p.Recycle()
	for i, v := range got.Tensors {
		if v != tensors[i] || v == nil || !v.Sole() {
			t.Errorf("tensor %d is another one, or its reference was lost or copied", i)
		}
	}
}

func TestReleasedPacketGivesItsTensorsBack(t *testing.T) {
	v := protos.NewTensor([]float32{1})
	f := example()
	f.Tensors = []*protos.Tensor{v.Retain()}
	pack(t, f, wire.Bulk).Release()
	if !v.Sole() {
		t.Error("a reference is left")
	}
}

func TestFrameThatCannotBePackedKeepsItsTensors(t *testing.T) {
	f := example()
	f.Target = strings.Repeat("x", wire.MaxHead)
	if _, err := wire.Pack(f, wire.Bulk); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	if !f.Tensors[0].Sole() {
		t.Error("the tensor was released or retained")
	}
}

func TestLatenessAndRunAreKnownLast(t *testing.T) {
	for _, late := range []time.Duration{-time.Second, 0, 1999, time.Millisecond, wire.MaxLate, time.Hour} {
		p := pack(t, example(), wire.Bulk)
		p.SetLate(late)
		p.SetRun(1 << 40)
		want := example()
		want.Late, want.Run = min(max(late, 0), wire.MaxLate).Truncate(time.Microsecond), 1<<40
		if got, err := p.Frame(); err != nil || !equal(&got, want) {
			t.Errorf("late by %v: got %+v, %v", late, got, err)
		}
	}
}

func TestOnlySmallSystemAndControlFramesAreUrgent(t *testing.T) {
	for _, test := range []struct {
		kind    wire.Kind
		tensors int
		urgent  bool
	}{{wire.User, 0, false}, {wire.System, 0, true}, {wire.Control, 0, true}, {wire.Control, 1, false}} {
		f := &wire.Frame{Kind: test.kind, Target: "t", Head: &protos.TakeSnapshot{}}
		for range test.tensors {
			f.Tensors = append(f.Tensors, protos.NewTensor(nil))
		}
		want := wire.Eager
		if test.urgent {
			want = wire.Urgent
		}
		if got := pack(t, f, wire.Eager).Class; got != want {
			t.Errorf("kind %d with %d tensors is of class %d, want %d", test.kind, test.tensors, got, want)
		}
	}
}

func TestManyGoroutinesPackAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 100 {
				f := &wire.Frame{Kind: wire.User, Target: "b", Head: &protos.Chunk{Index: uint32(i)}}
				p, err := wire.Pack(f, wire.Bulk)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := p.Frame(); err != nil || got.Head.(*protos.Chunk).Index != uint32(i) {
					t.Errorf("goroutine %d: %+v, %v", i, got, err)
				}
				p.Release()
			}
		})
	}
	group.Wait()
}

func BenchmarkPack(b *testing.B) {
	f := &wire.Frame{Kind: wire.User, Target: "b/actor", SenderAddress: "a", SenderID: "a/actor",
		Head: &protos.Chunk{Index: 7, Rank: -1}, Tensors: []*protos.Tensor{protos.NewTensor(make([]float32, 2084))}}
	b.ReportAllocs()
	for b.Loop() {
		p := pack(b, f, wire.Bulk)
		if _, err := p.Frame(); err != nil {
			b.Fatal(err)
		}
		p.Recycle()
	}
}

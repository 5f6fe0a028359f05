package transport_test

import (
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

func frame(tensors ...*protos.Tensor) *wire.Frame {
	return &wire.Frame{
		Kind: wire.User, Target: "b/actor", SenderAddress: "a", SenderID: "a/actor",
		Head: &protos.Chunk{Index: 7, Rank: -1}, Tensors: tensors,
	}
}

func TestHeadIsDecodedAnewAndTensorsChangeHands(t *testing.T) {
	var m transport.Memory
	var got *wire.Frame
	if err := m.Listen("b", func(f *wire.Frame) { got = f }); err != nil {
		t.Fatal(err)
	}
	v := protos.NewTensor([]float32{1, 2})
	sent := frame(v)
	if err := m.Send("b", sent); err != nil {
		t.Fatal(err)
	}
	if got == nil {
		t.Fatal("not handled when Send returned")
	}
	if got.Kind != sent.Kind || got.Target != sent.Target || got.SenderAddress != sent.SenderAddress ||
		got.SenderID != sent.SenderID {
		t.Errorf("got %+v, sent %+v", got, sent)
	}
	if got.Head == sent.Head || !proto.Equal(got.Head, sent.Head) {
		t.Errorf("head %v, the same object: %v, want an equal one", got.Head, got.Head == sent.Head)
	}
	if len(got.Tensors) != 1 || got.Tensors[0] != v || !v.Sole() {
		t.Error("the tensor did not change hands with its reference")
	}
	sent.Tensors[0] = nil
	if got.Tensors[0] != v {
		t.Error("the receiver's list of tensors is the sender's")
	}
}

func TestAddressCanBeTakenOnce(t *testing.T) {
	var m transport.Memory
	for _, address := range []string{"a", "b"} {
		if err := m.Listen(address, func(*wire.Frame) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Listen("b", func(*wire.Frame) {}); err == nil || !strings.Contains(err.Error(), "address b is taken") {
		t.Errorf("error %v, want that the address is taken", err)
	}
}

func TestFrameThatCannotBeSentGivesItsTensorsBack(t *testing.T) {
	var m transport.Memory
	if err := m.Listen("b", func(*wire.Frame) { t.Error("handled") }); err != nil {
		t.Fatal(err)
	}
	large := frame()
	large.Target = strings.Repeat("x", wire.MaxHead)
	for _, test := range []struct {
		address string
		f       *wire.Frame
		want    string
	}{
		{"c", frame(), "nobody listens at c"},
		{"b", large, "to b: "},
	} {
		v := protos.NewTensor([]float32{1})
		test.f.Tensors = []*protos.Tensor{v.Retain()}
		if err := m.Send(test.address, test.f); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
		if !v.Sole() {
			t.Errorf("%s: the tensor was not released", test.want)
		}
	}
}

func TestManyNodesSendAtOnce(t *testing.T) {
	var m transport.Memory
	var mu sync.Mutex
	sum := 0
	if err := m.Listen("b", func(f *wire.Frame) {
		mu.Lock()
		defer mu.Unlock()
		sum += int(f.Head.(*protos.Chunk).Index)
	}); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if err := m.Send("b", frame()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if sum != 8*100*7 {
		t.Errorf("handled %d, want %d", sum, 8*100*7)
	}
}

func BenchmarkSend(b *testing.B) {
	var m transport.Memory
	if err := m.Listen("b", func(*wire.Frame) {}); err != nil {
		b.Fatal(err)
	}
	f := frame(protos.NewTensor(make([]float32, 2084)))
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Send("b", f); err != nil {
			b.Fatal(err)
		}
	}
}

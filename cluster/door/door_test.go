package door_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

const a, b, c, d = 0, 1, 2, 3

const ms = time.Millisecond

// house is a door with its network and pool.
type house struct {
	*door.Door
	network *link.Network
	pool    *protos.TensorPool
}

func open(strict bool, edge link.Config) house {
	h := house{network: link.New(1, []string{"a", "b", "c", "d"}), pool: &protos.TensorPool{Poison: true}}
	h.network.SetDefault(edge)
	h.Door = door.New(h.network, []string{"a", "b", "c", "d"}, strict, h.pool)
	return h
}

// pass takes a message from a to an actor of a node.
func (h house) pass(t testing.TB, now time.Duration, to int32, kind wire.Kind, message any) door.Parcel {
	t.Helper()
	p, err := h.Pass(now, a, to, "x", kind, message)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// frame is what a message from a to an actor of b becomes for another process. Its size is the
// parcel's.
func (h house) frame(t testing.TB, kind wire.Kind, message any) wire.Frame {
	t.Helper()
	h.Encodes = true
	p := h.pass(t, 0, b, kind, message)
	h.Encodes = false
	if p.Message != nil || p.Packet.Size()-wire.Headroom != p.Size {
		t.Errorf("size %d, a frame of %d bytes, and beside it a %T", p.Size, p.Packet.Size()-wire.Headroom, p.Message)
	}
	f, err := p.Packet.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func chunk(tensors ...*protos.Tensor) *protos.Message {
	return protos.NewMessage(&protos.Chunk{Index: 7}, tensors...)
}

// both runs a test with and without strict mode.
func both(t *testing.T, test func(t *testing.T, strict bool)) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict=%v", strict), func(t *testing.T) { test(t, strict) })
	}
}

func TestMessageWithoutWireFormIsRefusedWithItsTypeAndWay(t *testing.T) {
	large := chunk()
	for range wire.MaxTensors + 1 {
		large.Tensors = append(large.Tensors, protos.NewTensor(nil))
	}
	header := map[string]string{"key": "value"}
	for what, test := range map[string]struct {
		message any
		want    string
	}{
		"string":          {"hello", "string has no wire form"},
		"nil":             {nil, "no wire form"},
		"bare head":       {&protos.Chunk{}, "wrap it with protos.NewMessage"},
		"message by copy": {[]byte("x"), "[]uint8 has no wire form"},
		"no head":         {protos.NewMessage(nil), "without a head"},
		"header":          {&actor.MessageEnvelope{Header: header, Message: chunk()}, "headers"},
		"in an envelope":  {&actor.MessageEnvelope{Message: 7, Sender: actor.NewPID("a", "y")}, "int has no wire form"},
		"started":         {&actor.Started{}, "no wire form"},
		"too large":       {large, "at most 1024"},
	} {
		both(t, func(t *testing.T, strict bool) {
			h := open(strict, link.Config{})
			_, err := h.Pass(0, a, b, "b/actor", wire.User, test.message)
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.HasPrefix(err.Error(), "a to b/b/actor: ") {
				t.Errorf("%s: error %v, want a refusal with %q that names the way", what, err, test.want)
			}
			if used := h.network.Used(); len(used) != 0 {
				t.Errorf("%s: a refused message was counted: %+v", what, used[0].Stats)
			}
		})
	}
}

func TestHeadThatCannotBeEncodedIsRefusedWithItsWay(t *testing.T) {
	both(t, func(t *testing.T, strict bool) {
		h := open(strict, link.Config{})
		h.Encodes = true
		_, err := h.Pass(0, a, b, "actor", wire.User, protos.NewMessage(&protos.PlaceRun{Submission: "\xff"}))
		if err == nil || !strings.HasPrefix(err.Error(), "a to b/actor: ") || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("error %v, want a refusal that names the way and says what is wrong", err)
		}
	})
}

func TestSenderIsRebuiltAtTheDoor(t *testing.T) {
	both(t, func(t *testing.T, strict bool) {
		h := open(strict, link.Config{})
		for _, test := range []struct{ sender, want *actor.PID }{
			{actor.NewPID("a", "a/worker"), actor.NewPID("a", "a/worker")},
			{actor.NewPID("c", "c/worker"), actor.NewPID("c", "c/worker")}, // forwarded
			{actor.NewPID("nonhost", "future$1"), actor.NewPID("a", "future$1")},
			{nil, nil},
		} {
			p := h.pass(t, 0, b, wire.User, &actor.MessageEnvelope{Message: chunk(), Sender: test.sender})
			f := h.frame(t, wire.User, &actor.MessageEnvelope{Message: chunk(), Sender: test.sender})
			if test.want == nil {
				if f.SenderID != "" || f.SenderAddress != "" {
					t.Errorf("no sender became %s/%s", f.SenderAddress, f.SenderID)
				}
				continue
			}
			got := p.Message.(*actor.MessageEnvelope).Sender
			if got == test.sender || !got.Equal(test.want) {
				t.Errorf("sender %v, same PID %v, want a new %v", got, got == test.sender, test.want)
			}
			if f.SenderAddress != test.want.Address || f.SenderID != test.want.Id {
				t.Errorf("the frame's sender is %s/%s, want %v", f.SenderAddress, f.SenderID, test.want)
			}
		}
	})
}

func TestSizeIsThatOfTheFrame(t *testing.T) {
	h := open(false, link.Config{})
	v := protos.NewTensor(make([]float32, 10))
	m := chunk(v.Retain())
	f := h.frame(t, wire.User, &actor.MessageEnvelope{
		Message: m.Retain(1), Sender: actor.NewPID("a", "a/worker"),
	})
	m.Release() // the sender has one reference, the packet's frame another one
	v.Release() // this test's reference
	if f.Tensors[0] != v || !v.Sole() {
		t.Error("the packet has no reference to the tensor, or several")
	}
}

func TestPacketOfALostOrDiscardedMessageIsReleased(t *testing.T) {
	both(t, func(t *testing.T, strict bool) {
		for _, edge := range []link.Config{{Loss: link.Loss{Probability: 1, Drop: true}}, {}} {
			h := open(strict, edge)
			h.Encodes = true
			v := protos.NewTensor([]float32{1})
			p := h.pass(t, 0, b, wire.User, chunk(v.Retain()))
			if !p.Lost && p.Discard() != nil || !v.Sole() {
				t.Errorf("lost %v: a reference is left, or the message was written", p.Lost)
			}
		}
	})
}

func TestControlIsCountedApartAndSkipsTheLink(t *testing.T) {
	both(t, func(t *testing.T, strict bool) {
		// Nothing gets through this link, and its delays are random.
		edge := link.Config{Delay: link.Uniform{Min: 10 * ms, Max: 30 * ms}, Rate: rate.Constant(10),
			Loss: link.Loss{Probability: 1, Drop: true}}
		h, untouched := open(strict, edge), open(strict, edge)
		control := h.pass(t, ms, b, wire.User, protos.NewMessage(&protos.TakeSnapshot{}))
		if control.Emulated() || control.Lost || control.Arrival != ms || control.HasDownlink() {
			t.Errorf("a control message: %+v, want it to arrive at once", control)
		}
		system := h.pass(t, ms, b, wire.System, &actor.Watch{Watcher: actor.NewPID("a", "y")})
		if system.Emulated() || system.Lost || system.Arrival != ms+20*ms {
			t.Errorf("a system message: %+v, want it to arrive after the mean delay", system)
		}
		for _, p := range []*door.Parcel{&control, &system} {
			if err := p.Arrive(p.Arrival); err != nil {
				t.Error(err)
			}
		}
		stats := h.network.Edge(a, b).Stats()
		if want := (link.Stats{Control: 2, ControlBytes: int64(control.Size + system.Size)}); stats != want {
			t.Errorf("counted %+v, want %+v", stats, want)
		}
		now, then := link.Config{Delay: edge.Delay}, ms
		h.network.SetDefault(now)
		untouched.network.SetDefault(now)
		first, other := h.pass(t, then, b, wire.User, chunk()), untouched.pass(t, then, b, wire.User, chunk())
		if first.Arrival != other.Arrival {
			t.Errorf("after control messages the first delay is %v, without them %v", first.Arrival, other.Arrival)
		}
	})
}

func TestPoisonPillTravelsTheLinkLikeAnyUserMessage(t *testing.T) {
	h := open(true, link.Config{Delay: link.Constant{Delay: 5 * ms}})
	p := h.pass(t, ms, b, wire.User, &actor.PoisonPill{})
	if !p.Emulated() || p.Arrival != 6*ms || h.network.Edge(a, b).Stats().Sent != 1 {
		t.Errorf("%+v, want a message on the link", p)
	}
	if f := h.frame(t, wire.User, &actor.PoisonPill{}); !door.Protoactor(f.Head) {
		t.Errorf("the frame carries a %T", f.Head)
	}
}

func TestLostMessageGivesItsTensorsBack(t *testing.T) {
	both(t, func(t *testing.T, strict bool) {
		h := open(strict, link.Config{Loss: link.Loss{Probability: 1, Drop: true}})
		v := h.pool.Copy([]float32{1, 2})
		m := chunk(v.Retain())
		p := h.pass(t, 0, b, wire.User, &actor.MessageEnvelope{Message: m, Sender: actor.NewPID("a", "y")})
		if !p.Lost || !v.Sole() {
			t.Errorf("lost: %v, given back: %v, want both", p.Lost, v.Sole())
		}
		v.Release()
		balanced(t, h.pool, []*protos.Tensor{v})
	})
}

// balanced fails the test unless all tensors, of one length, have come back to their pool.
func balanced(t *testing.T, pool *protos.TensorPool, tensors []*protos.Tensor) {
	t.Helper()
	missing := map[*protos.Tensor]bool{}
	for _, v := range tensors {
		missing[v] = true
	}
	for range 2 * len(tensors) { // in strict mode the pool holds as many decoded ones
		delete(missing, pool.Get(len(tensors[0].Data)))
	}
	if len(missing) > 0 {
		t.Errorf("%d of %d tensors did not come back to their pool", len(missing), len(tensors))
	}
}

func TestBroadcastOfOneMessageIsDeliveredToAllAndGivenBack(t *testing.T) {
	both(t, func(t *testing.T, strict bool) {
		h := open(strict, link.Config{Delay: link.Uniform{Min: ms, Max: 5 * ms}})
		v := h.pool.Copy([]float32{1, 2, 3})
		m := chunk(v)
		m.Retain(2)
		var parcels []door.Parcel
		tensors := []*protos.Tensor{v}
		for _, to := range []int32{b, c, d} {
			parcels = append(parcels, h.pass(t, 0, to, wire.User, m))
		}
		for i := range parcels {
			if err := parcels[i].Arrive(parcels[i].Arrival); err != nil {
				t.Fatal(err)
			}
			got := parcels[i].Message.(*protos.Message)
			if strict == (got == m) {
				t.Errorf("the original was delivered: %v, with strict %v", got == m, strict)
			}
			if !proto.Equal(got.Head, m.Head) || fmt.Sprint(got.Tensors[0].Data) != "[1 2 3]" {
				t.Errorf("receiver %d got %v with %v", i, got.Head, got.Tensors[0].Data)
			}
			tensors = append(tensors, got.Tensors[0])
			got.Release()
		}
		balanced(t, h.pool, tensors)
	})
}

func TestStrictModeFindsAWriteAfterSending(t *testing.T) {
	for _, end := range []struct {
		name string
		end  func(p *door.Parcel) error
	}{
		{"arrive", func(p *door.Parcel) error { return p.Arrive(p.Arrival) }},
		{"discard", (*door.Parcel).Discard},
	} {
		t.Run(end.name, func(t *testing.T) {
			h := open(true, link.Config{Delay: link.Constant{Delay: ms}})
			first, second := h.pool.Copy([]float32{1}), h.pool.Copy([]float32{2, 3})
			m := chunk(first, second)
			m.Retain(2)
			var parcels []door.Parcel
			for _, to := range []int32{b, c, d} {
				parcels = append(parcels, h.pass(t, 0, to, wire.User, m))
			}
			if err := end.end(&parcels[0]); err != nil {
				t.Errorf("before the write: %v", err)
			}
			second.Data[1] = 9
			for i := range parcels[1:] {
				err := end.end(&parcels[i+1])
				if err == nil || !strings.Contains(err.Error(),
					"tensor 1 of a gradwire.Chunk was written after it had been sent") {
					t.Errorf("after the write: error %v", err)
				}
			}
		})
	}
}

func TestStrictModeDeliversWhatWasDecoded(t *testing.T) {
	h := open(true, link.Config{Delay: link.Constant{Delay: ms}})
	original := chunk(h.pool.Copy([]float32{1, 2}))
	p := h.pass(t, 0, b, wire.User, &actor.MessageEnvelope{Message: original, Sender: actor.NewPID("a", "y")})
	envelope := p.Message.(*actor.MessageEnvelope)
	got := envelope.Message.(*protos.Message)
	if got == original || got.Head == original.Head || got.Tensors[0] == original.Tensors[0] {
		t.Error("what is delivered shares memory with what was sent")
	}
	original.Head.(*protos.Chunk).Index = 99 // heads are small: they are copied at the door
	if got.Head.(*protos.Chunk).Index != 7 {
		t.Error("a change of the head after sending arrived")
	}
}

// traffic is what was sent through a house at random.
type traffic struct {
	house
	now      time.Duration
	onTheWay []door.Parcel
	tensors  []*protos.Tensor
}

// send sends a tensor to one to three nodes.
func (x *traffic) send(t *rapid.T) {
	x.now += time.Duration(rapid.IntRange(0, 3).Draw(t, "wait")) * ms
	v := protos.NewTensor([]float32{1, 2})
	x.tensors = append(x.tensors, v.Retain())
	m := chunk(v)
	n := rapid.IntRange(1, 3).Draw(t, "receivers")
	m.Retain(n - 1)
	for to := range int32(n) {
		p, err := x.Pass(x.now, a, to+1, "x", wire.User, m)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Lost {
			x.onTheWay = append(x.onTheWay, p)
		}
	}
}

// Whatever becomes of messages, each edge accounts for all of them and every tensor
// comes back.
func TestEdgesAndPoolsBalanceWhateverBecomesOfMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		strict := rapid.Bool().Draw(t, "strict")
		x := traffic{house: open(strict, link.Config{Delay: link.Uniform{Min: ms, Max: 5 * ms},
			Loss: link.Loss{Probability: 0.3, Drop: true}})}
		t.Repeat(map[string]func(*rapid.T){
			"send": x.send,
			"end": func(t *rapid.T) {
				if len(x.onTheWay) == 0 {
					t.Skip()
				}
				p := x.onTheWay[0]
				x.onTheWay = x.onTheWay[1:]
				if rapid.Bool().Draw(t, "there") {
					if err := p.Arrive(p.Arrival); err != nil {
						t.Fatal(err)
					}
					p.Message.(*protos.Message).Release()
				} else if err := p.Discard(); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				inFlight := int64(0)
				for _, e := range x.network.Used() {
					inFlight += e.InFlight()
				}
				if inFlight != int64(len(x.onTheWay)) {
					t.Fatalf("%d in flight by the edges' counts, %d in truth", inFlight, len(x.onTheWay))
				}
			},
		})
		for i := range x.onTheWay {
			if err := x.onTheWay[i].Discard(); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range x.tensors {
			if !v.Sole() {
				t.Fatalf("tensor %d was not given back", i)
			}
		}
	})
}

func TestNodesAreFoundByTheirAddress(t *testing.T) {
	h := open(false, link.Config{})
	if i, ok := h.Node("c"); !ok || i != c {
		t.Errorf("c is node %d, %v", i, ok)
	}
	if _, ok := h.Node("nonhost"); ok {
		t.Error("a node that is not there was found")
	}
}

func TestTypeDependsOnTheHeadAlone(t *testing.T) {
	h := open(false, link.Config{})
	bare := h.pass(t, 0, b, wire.User, chunk())
	asked := h.pass(t, 0, b, wire.User, &actor.MessageEnvelope{Message: chunk(), Sender: actor.NewPID("a", "y")})
	other := h.pass(t, 0, b, wire.User, &actor.PoisonPill{})
	if bare.Type() != asked.Type() || bare.Type() == other.Type() {
		t.Errorf("types %x, %x and %x, want the first two equal", bare.Type(), asked.Type(), other.Type())
	}
}

func TestPassingTheDoorAllocatesNothing(t *testing.T) {
	h := open(false, link.Config{Delay: link.Constant{Delay: ms}})
	messages := protos.NewMessages(func() *protos.Chunk { return &protos.Chunk{} })
	pass := func() {
		m, _ := messages.Get(h.pool.Get(10))
		p, err := h.Pass(0, a, b, "x", wire.User, m)
		if err != nil || p.Arrive(p.Arrival) != nil {
			t.Fatal(err)
		}
		m.Release()
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

func BenchmarkPass(bench *testing.B) {
	for _, strict := range []bool{false, true} {
		bench.Run(fmt.Sprintf("strict=%v", strict), func(bench *testing.B) {
			h := open(strict, link.Config{Delay: link.Constant{Delay: ms}})
			h.pool.Poison = false
			messages := protos.NewMessages(func() *protos.Chunk { return &protos.Chunk{} })
			bench.ReportAllocs()
			for bench.Loop() {
				m, _ := messages.Get(h.pool.Get(2084))
				p := h.pass(bench, 0, b, wire.User, m)
				if err := p.Arrive(p.Arrival); err != nil {
					bench.Fatal(err)
				}
				p.Message.(*protos.Message).Release()
			}
		})
	}
}

package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// example is a frame with everything in it.
func example() *wire.Frame {
	return &wire.Frame{
		Kind: wire.User, Run: 7, Target: "server/server", SenderAddress: "fast", SenderID: "fast/worker",
		Head: &protos.Push{Node: 1, Step: 300, Version: 1 << 40, Samples: 32},
		Tensors: []*protos.Tensor{protos.NewTensor([]float32{1, -2.5, float32(math.NaN())}), protos.NewTensor(nil),
			protos.NewTensor([]float32{4})},
	}
}

func encode(t testing.TB, f *wire.Frame) []byte {
	t.Helper()
	b, err := wire.Encode(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// equal compares frames bit by bit, so that a NaN equals itself.
func equal(f, g *wire.Frame) bool {
	if f.Kind != g.Kind || f.InSession != g.InSession || f.Session != g.Session ||
		f.Run != g.Run || f.Late != g.Late || f.Target != g.Target ||
		f.SenderAddress != g.SenderAddress || f.SenderID != g.SenderID ||
		!proto.Equal(f.Head, g.Head) || len(f.Tensors) != len(g.Tensors) {
		return false
	}
	for i, v := range f.Tensors {
		w := g.Tensors[i]
		if len(v.Data) != len(w.Data) {
			return false
		}
		for j := range v.Data {
			if math.Float32bits(v.Data[j]) != math.Float32bits(w.Data[j]) {
				return false
			}
		}
	}
	return true
}

func frames() *rapid.Generator[*wire.Frame] {
	return rapid.Custom(func(t *rapid.T) *wire.Frame {
		text := rapid.StringN(0, 200, -1)
		number := rapid.Uint64()
		f := &wire.Frame{
			Run:           number.Draw(t, "run"),
			Late:          time.Duration(rapid.Uint16().Draw(t, "late")) * time.Microsecond,
			Target:        text.Draw(t, "target"),
			SenderAddress: text.Draw(t, "sender address"),
			SenderID:      text.Draw(t, "sender id"),
			Head: rapid.SampledFrom([]proto.Message{
				&protos.Push{Node: int32(number.Draw(t, "rank")), Step: number.Draw(t, "step"),
					Version: number.Draw(t, "version")},
				&protos.Parameters{Version: number.Draw(t, "version")},
				&protos.Start{},
				&actor.Watch{Watcher: actor.NewPID(text.Draw(t, "address"), text.Draw(t, "id"))},
				&actor.PoisonPill{},
			}).Draw(t, "head"),
		}
		f.Kind = rapid.SampledFrom([]wire.Kind{wire.KindOf(f.Head), wire.System}).Draw(t, "kind")
		if f.Kind == wire.User && rapid.Bool().Draw(t, "in session") {
			f.InSession, f.Session = true, headers().Draw(t, "session")
		}
		for _, bits := range rapid.SliceOfN(rapid.SliceOfN(rapid.Uint32(), 0, 20), 0, 5).Draw(t, "tensors") {
			v := protos.NewTensor(make([]float32, len(bits)))
			for i, b := range bits {
				v.Data[i] = math.Float32frombits(b)
			}
			f.Tensors = append(f.Tensors, v)
		}
		return f
	})
}

func TestDecodedFrameIsTheEncodedOneAndSizeIsItsLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := frames().Draw(t, "frame")
		b, err := wire.Encode([]byte("before"), f)
		if err != nil {
			t.Fatal(err)
		}
		b = b[len("before"):]
		if n := wire.Size(f); n != len(b) {
			t.Fatalf("size %d, encoded %d bytes", n, len(b))
		}
		g, err := wire.Decode(b, &protos.TensorPool{})
		if err != nil {
			t.Fatal(err)
		}
		if !equal(f, &g) {
			t.Fatalf("%+v was decoded as %+v", f, g)
		}
	})
}

func TestFrameIsLaidOutAsDocumented(t *testing.T) {
	f := &wire.Frame{Kind: wire.System, Run: 9, Late: 258_999, Target: "a", SenderAddress: "b", SenderID: "c",
		Head: &protos.Start{View: 5}, Tensors: []*protos.Tensor{protos.NewTensor([]float32{1})}}
	want := "GW\x04\x02" + "\x1b\x00\x00\x00" + "\x01\x00" + "\x02\x01" + "\x09\x00\x00\x00\x00\x00\x00\x00" + // prefix
		"\x01\x00\x00\x00" + "\x01a\x01b\x01c" + "\x0egradwire.Start" + "\x08\x05" + // head
		"\x00\x00\x80\x3f"
	if got := string(encode(t, f)); got != want {
		t.Errorf("encoded\n%q, want\n%q", got, want)
	}
}

func TestLatenessTravelsFromNoneToItsLargest(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{-time.Second: 0, time.Microsecond - 1: 0,
		time.Hour: wire.MaxLate} {
		f := example()
		f.Late = late
		if g, err := wire.Decode(encode(t, f), &protos.TensorPool{}); err != nil || g.Late != want {
			t.Errorf("a lateness of %v became %v, error %v; want %v", late, g.Late, err, want)
		}
	}
}

func TestHeadCanBeReadBeforeTheTensors(t *testing.T) {
	f := example()
	b, err := wire.AppendHead(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := wire.DecodePrefix(b)
	if err != nil {
		t.Fatal(err)
	}
	g, lengths, err := new(wire.Decoder).Head(p, b[wire.PrefixSize:])
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(lengths) != "[3 0 1]" || g.Target != f.Target || !proto.Equal(g.Head, f.Head) || g.Tensors != nil {
		t.Errorf("decoded %+v with tensors of %v values", g, lengths)
	}
}

// refused fails the test unless a frame is refused with an error that says where.
func refused(t *testing.T, b []byte, what string) {
	t.Helper()
	_, err := wire.Decode(b, &protos.TensorPool{})
	if err == nil || !strings.HasPrefix(err.Error(), "wire: ") || !strings.Contains(err.Error(), "offset ") {
		t.Errorf("%s: error %v, want one with an offset", what, err)
	}
}

func TestEveryTruncationAndEveryAdditionIsRefused(t *testing.T) {
	b := encode(t, example())
	for n := range b {
		refused(t, b[:n], fmt.Sprintf("%d of %d bytes", n, len(b)))
	}
	refused(t, append(b, 0), "one byte too many")
}

// A changed letter of a name or bit of a value is another valid frame; integrity is the
// connection's matter. What must not happen is that a change is dropped or misread.
func TestEveryBitFlipIsRefusedOrReadAsItStands(t *testing.T) {
	b := encode(t, example())
	fixed := wire.PrefixSize + 3*4 // prefix and lengths of the tensors
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		// The cut above the number of tensors, lateness and run are numbers.
		if number := i >= 8*8+11 && i/8 < wire.PrefixSize; i/8 < fixed && !number {
			refused(t, c, fmt.Sprintf("bit %d of byte %d", i%8, i/8))
			continue
		}
		f, err := wire.Decode(c, &protos.TensorPool{})
		if err != nil {
			refused(t, c, fmt.Sprintf("bit %d of byte %d", i%8, i/8))
			continue
		}
		if again := encode(t, &f); bytes.Equal(again, b) {
			t.Errorf("bit %d of byte %d makes no difference", i%8, i/8)
		}
	}
}

func TestHostileFramesAreRefusedWithoutAllocatingWhatTheyClaim(t *testing.T) {
	head := func(tensors int, rest string) []byte {
		b := []byte("GW\x04\x01")
		b = binary.LittleEndian.AppendUint32(b, uint32(len(rest)))
		b = binary.LittleEndian.AppendUint16(b, uint16(tensors))
		return append(append(b, make([]byte, 10)...), rest...)
	}
	many := strings.Repeat("\xff\xff\xff\x0f", wire.MaxTensors)
	for what, test := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":     {nil, "offset 0"},
		"other magic": {[]byte("HTTP/1.1 200 OK, then"), "offset 0"},
		"other version": {[]byte("GW\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
			"offset 2"},
		"no kind": {[]byte("GW\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
			"offset 3"},
		"head of 4 GiB": {[]byte("GW\x04\x01\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
			"offset 4"},
		"65,535 tensors": {[]byte("GW\x04\x01\x00\x00\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
			"offset 8"},
		"head of the limit": {[]byte("GW\x04\x01\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
			"offset 20"},
		"lengths cut":          {head(2, "\x01\x00\x00\x00"), "offset 24"},
		"huge tensor":          {head(1, "\xff\xff\xff\xff"), "offset 20"},
		"huge sum of tensors":  {head(wire.MaxTensors, many), "offset 24"},
		"large tensor missing": {head(1, "\x00\x00\x00\x10\x00\x00\x00\x0egradwire.Chunk"), "offset 42"},
		"long text":            {head(0, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "offset 20"},
		"overflowing text":     {head(0, strings.Repeat("\xff", 20)), "offset 20"},
		"unknown type":         {head(0, "\x00\x00\x00\x03abc"), "offset 24"},
		"no type":              {head(0, "\x00\x00\x00\x00"), "offset 24"},
		"control as user":      {head(0, "\x00\x00\x00\x0egradwire.Start"), "offset 0"},
		"broken protobuf":      {head(0, "\x00\x00\x00\x0egradwire.Start\x08"), "offset 38"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := wire.Decode(test.b, &protos.TensorPool{})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), test.want+":") &&
			!strings.Contains(err.Error(), test.want+" ") {
			t.Errorf("%s: error %v, want %s", what, err, test.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: %d bytes allocated for a frame of %d", what, n, len(test.b))
		}
	}
}

func TestFramesBeyondALimitAreNotEncoded(t *testing.T) {
	over := protos.NewTensor(make([]float32, 1<<20))
	frame := func(change func(f *wire.Frame)) *wire.Frame {
		f := example()
		change(f)
		return f
	}
	for what, f := range map[string]*wire.Frame{
		"tensors": frame(func(f *wire.Frame) { f.Tensors = make([]*protos.Tensor, wire.MaxTensors+1) }),
		"values":  frame(func(f *wire.Frame) { f.Tensors = make([]*protos.Tensor, wire.MaxValues>>20+1) }),
		"head":    frame(func(f *wire.Frame) { f.Target = strings.Repeat("x", wire.MaxHead) }),
	} {
		for i := range f.Tensors {
			if f.Tensors[i] == nil {
				f.Tensors[i] = over
			}
		}
		before := []byte("before")
		b, err := wire.AppendHead(before, f)
		if !errors.Is(err, wire.ErrTooLarge) || string(b) != "before" {
			t.Errorf("too large in %s: error %v and %d bytes, want %v", what, err, len(b), wire.ErrTooLarge)
		}
		if _, err := wire.Measure(f); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("too large in %s: measured with error %v, want %v", what, err, wire.ErrTooLarge)
		}
	}
	if _, err := wire.Encode(nil, frame(func(f *wire.Frame) { f.Kind = 3 })); err == nil ||
		!strings.Contains(err.Error(), "kind 3") {
		t.Errorf("kind 3: error %v", err)
	}
}

func TestFrameAtTheLimitPasses(t *testing.T) {
	f := example()
	f.Tensors = nil
	for range wire.MaxTensors {
		f.Tensors = append(f.Tensors, protos.NewTensor([]float32{1}))
	}
	f.Target = ""
	size, err := wire.Measure(f)
	if err != nil {
		t.Fatal(err)
	}
	// its length takes 3 bytes, not 1
	f.Target = strings.Repeat("x", wire.MaxHead-(size-wire.PrefixSize-4*wire.MaxTensors)-2)
	g, err := wire.Decode(encode(t, f), &protos.TensorPool{})
	if err != nil || !equal(f, &g) {
		t.Errorf("a frame at the limits came back with error %v", err)
	}
	f.Target += "x"
	if _, err := wire.Measure(f); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("one byte more: error %v, want %v", err, wire.ErrTooLarge)
	}
}

func TestRefusedFrameTakesNothingFromThePool(t *testing.T) {
	var pool protos.TensorPool
	v := pool.Get(3)
	v.Release()
	b := encode(t, example())
	if _, err := wire.Decode(b[:len(b)-1], &pool); err == nil {
		t.Fatal("a truncated frame was decoded")
	}
	if pool.Get(3) != v {
		t.Error("a frame that was refused took a tensor")
	}
}

func TestSizeAllocatesNothing(t *testing.T) {
	f := example()
	if n := testing.AllocsPerRun(100, func() {
		_ = wire.Size(f)
		_, _ = wire.Measure(f)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	b := encode(t, f)
	if n := testing.AllocsPerRun(100, func() { b, _ = wire.Encode(b[:0], f) }); n != 0 {
		t.Errorf("%v allocations to encode into a buffer that is large enough", n)
	}
}

// FuzzDecode: whatever comes in, there is an error or a frame that survives the way
// back and forth.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, example()))
	f.Add(encode(f, &wire.Frame{Kind: wire.System, Target: "a/b", Head: &actor.Watch{Watcher: actor.NewPID("x", "y")}}))
	f.Add(encode(f, &wire.Frame{Kind: wire.User, Head: &protos.Chunk{Index: 1},
		Tensors: []*protos.Tensor{protos.NewTensor(nil)}}))
	f.Add(encode(f, inSession()))
	ack := wire.Acknowledgement("b/actor", session.Header{Node: 1, Answers: true, Alone: true,
		Ack: session.Ack{Next: 7, Seen: 1}})
	f.Add(encode(f, &ack))
	f.Add([]byte("GW\x04\x01\xff\xff\xff\xff\xff\xff\x00\x00"))
	f.Add([]byte("GW\x04\x01\x04\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var pool protos.TensorPool
		g, err := wire.Decode(b, &pool)
		if err != nil {
			if !strings.Contains(err.Error(), "offset ") {
				t.Fatalf("error %q names no offset", err)
			}
			return
		}
		again, err := wire.Encode(nil, &g)
		if err != nil {
			t.Fatalf("decoded but not encoded: %v", err)
		}
		if len(again) != wire.Size(&g) {
			t.Fatalf("size %d, encoded %d bytes", wire.Size(&g), len(again))
		}
		h, err := wire.Decode(again, &pool)
		if err != nil || !equal(&g, &h) {
			t.Fatalf("decoded %+v, then %+v with error %v", g, h, err)
		}
	})
}

// gradient is a frame as a worker of the 93-21-5 network sends it.
func gradient() *wire.Frame {
	f := example()
	f.Tensors = []*protos.Tensor{protos.NewTensor(make([]float32, 93*21+21+21*5+5))}
	return f
}

func BenchmarkSize(b *testing.B) {
	f := gradient()
	b.ReportAllocs()
	for b.Loop() {
		_ = wire.Size(f)
	}
}

func BenchmarkEncode(b *testing.B) {
	f := gradient()
	buffer := encode(b, f)
	b.SetBytes(int64(len(buffer)))
	b.ReportAllocs()
	for b.Loop() {
		buffer, _ = wire.Encode(buffer[:0], f)
	}
}

func BenchmarkDecode(b *testing.B) {
	buffer := encode(b, gradient())
	var pool protos.TensorPool
	b.SetBytes(int64(len(buffer)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := wire.Decode(buffer, &pool)
		if err != nil {
			b.Fatal(err)
		}
		f.Tensors[0].Release()
	}
}

package transport

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/transport/lane"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

func newStream(b []byte, limit int) *stream {
	return &stream{in: bufio.NewReaderSize(bytes.NewReader(b), readAhead), tensors: &protos.TensorPool{}, limit: limit}
}

// written returns what a connection would write for frames, in batches.
func written(t testing.TB, frames ...*wire.Frame) (stream []byte) {
	t.Helper()
	b := batch{chunk: chunk}
	for _, f := range frames {
		p, err := wire.Pack(f, wire.Bulk)
		if err != nil {
			t.Fatal(err)
		}
		if p.Class == wire.Urgent {
			b.whole(p)
		} else {
			b.begin(p, 0)
		}
		for {
			for _, part := range b.parts {
				stream = append(stream, part...)
			}
			b.written()
			if b.open == nil {
				break
			}
			b.goOn()
		}
	}
	return stream
}

func example(tensors ...int) *wire.Frame {
	f := &wire.Frame{Kind: wire.User, Target: "t", Head: &protos.Chunk{Index: 3}}
	for i, n := range tensors {
		v := protos.NewTensor(make([]float32, n))
		for j := range v.Data {
			v.Data[j] = float32(i + j%1000)
		}
		f.Tensors = append(f.Tensors, v)
	}
	return f
}

// encoded is the whole frame, as package wire says that it looks.
func encoded(t testing.TB, f *wire.Frame) []byte {
	t.Helper()
	b, err := wire.AppendHead(nil, f)
	for _, v := range f.Tensors {
		if err == nil {
			b, err = binary.Append(b, binary.LittleEndian, v.Data)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is a frame in one piece is what the stream's records carry in several.
func TestRecordsCarryTheEncodedFrame(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		var sizes []int
		for range random.IntN(4) {
			sizes = append(sizes, random.IntN(4)*random.IntN(200_000))
		}
		f := example(sizes...)
		want, b := encoded(t, f), written(t, f)
		var carried []byte
		for rest := b; len(rest) > 0; {
			_, n, err := record(rest[:recordHeader])
			if err != nil || n > chunk+wire.MaxHead {
				t.Fatalf("record of %d bytes: %v", n, err)
			}
			carried = append(carried, rest[recordHeader:recordHeader+n]...)
			rest = rest[recordHeader+n:]
		}
		if !bytes.Equal(carried, want) {
			t.Fatalf("tensors of %v: the records carry %d bytes, the frame has %d", sizes, len(carried), len(want))
		}
		s := newStream(b, 4*wire.MaxValues)
		a, err := s.read()
		if err != nil || !proto.Equal(a.frame.Head, f.Head) || len(a.frame.Tensors) != len(sizes) {
			t.Fatalf("tensors of %v: read %+v, %v", sizes, a, err)
		}
		for i, v := range a.frame.Tensors {
			if !slices.Equal(v.Data, example(sizes...).Tensors[i].Data) {
				t.Fatalf("tensor %d of %v is not what was sent", i, sizes)
			}
		}
		if _, err := s.read(); !errors.Is(err, io.EOF) {
			t.Fatalf("error %v, want the end", err)
		}
	}
}

func TestLargeTensorsArriveInTheMemoryThatIsPostedForThem(t *testing.T) {
	const large = readAhead / 4
	sizes := []int{large, large - 1, 3 * large, large + 1, 0}
	ready := protos.NewTensor(make([]float32, 8*large))
	asked := map[int]int{}
	posted := func(f *wire.Frame, tensor, values int) *protos.Tensor {
		if f.Target != "t" || f.Head.(*protos.Chunk).Index != 3 {
			t.Errorf("asked with the frame %v", f)
		}
		asked[tensor] = values
		switch tensor {
		case 0:
			return ready.View(large, 2*large)
		case 3:
			return ready.View(0, large) // is not of the right size
		}
		return nil
	}
	b := written(t, example(sizes...))
	s := newStream(b, 4*wire.MaxValues)
	s.posted = posted
	a, err := s.read()
	if err != nil || len(a.frame.Tensors) != len(sizes) {
		t.Fatalf("read %+v, %v", a, err)
	}
	for i, v := range a.frame.Tensors {
		if !slices.Equal(v.Data, example(sizes...).Tensors[i].Data) {
			t.Errorf("tensor %d is not what was sent", i)
		}
		if posted := i == 0; posted != (len(v.Data) > 0 && &v.Data[0] == &ready.Data[large]) {
			t.Errorf("tensor %d is in posted memory or not: want %v", i, !posted)
		}
	}
	if want := map[int]int{0: large, 2: 3 * large, 3: large + 1}; !maps.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	a.frame.Release()
	if !ready.Sole() {
		t.Error("a posted tensor is still held")
	}

	s = newStream(b[:len(b)/8], 4*wire.MaxValues)
	s.posted = posted
	if _, err := s.read(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want the one for a connection that breaks inside a tensor", err)
	}
	if s.close(); !ready.Sole() {
		t.Error("what was posted for a frame that never became whole is still held")
	}
}

func TestNothingIsAllocatedForALengthBeyondTheLimit(t *testing.T) {
	b := written(t, example(1_000_000))[:2000]
	claim := make([]byte, recordHeader)
	putRecord(claim, urgentRecord, wire.PrefixSize+wire.MaxHead+1)
	for _, bytes := range [][]byte{b, claim} {
		s := newStream(bytes, 1<<20)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := s.read()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrBad) || after.TotalAlloc-before.TotalAlloc > 1<<16 {
			t.Errorf("error %v after allocating %d bytes", err, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

// FuzzStream reads hostile bytes: every end is an error, no tensor stays behind, and what is
// read could have been sent.
func FuzzStream(f *testing.F) {
	system := &wire.Frame{Kind: wire.System, Target: "t", Head: &protos.View{}}
	f.Add(written(f, example(), example(0, 5, 0), system, example(3)))
	f.Add(written(f, example(chunk/2))[:chunk+100])
	var beat [recordHeader + beatSize]byte
	putRecord(beat[:], beatRecord, beatSize)
	f.Add(append(beat[:], 8, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 16
		s := newStream(b, limit)
		for {
			a, err := s.read()
			if err != nil {
				if !errors.Is(err, ErrBad) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("error %v", err)
				}
				break
			}
			if a.frame == nil {
				continue
			}
			values := 0
			for _, v := range a.frame.Tensors {
				values += 4 * len(v.Data)
				if !v.Sole() {
					t.Fatal("a tensor with two holders")
				}
			}
			if values > limit {
				t.Fatalf("%d bytes of values, the limit is %d", values, limit)
			}
			again, err := newStream(written(t, a.frame), limit).read()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(encoded(t, again.frame), encoded(t, a.frame)) {
				t.Fatal("read again it is another frame")
			}
		}
		s.close()
		if s.partial.frame.Tensors != nil {
			t.Fatal("tensors stay behind")
		}
	})
}

// FuzzGreeting reads hostile greetings.
func FuzzGreeting(f *testing.F) {
	g := greeting{incarnation: 1, attempt: 2, serial: 3, known: 5, taken: lane.Counts{4, 6}, refused: 7,
		name: "a", target: "b", address: "c:1", spoken: protocol.Spoken()}
	f.Add(g.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := getGreeting(b, protocol.Spoken())
		if err == nil && g.spoken == protocol.Spoken() && !bytes.Equal(g.append(nil), b) {
			t.Errorf("%q was read as %+v", b, g)
		}
	})
}

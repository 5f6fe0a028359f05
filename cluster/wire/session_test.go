package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// headers are those of messages in sessions.
func headers() *rapid.Generator[session.Header] {
	return rapid.Custom(func(t *rapid.T) session.Header {
		h := session.Header{
			Node: rapid.Int32Range(0, session.MaxNode-1).Draw(t, "node"),
			From: session.Life(rapid.Uint16().Draw(t, "from")), To: session.Life(rapid.Uint16().Draw(t, "to")),
			Number: session.Number(rapid.Uint32().Draw(t, "number")), Asks: rapid.Bool().Draw(t, "asks"),
		}
		if h.Answers = rapid.Bool().Draw(t, "answers"); h.Answers {
			h.Ack = session.Ack{Next: session.Number(rapid.Uint32().Draw(t, "next")),
				Seen: rapid.Uint64().Draw(t, "seen")}
		}
		return h
	})
}

// inSession is an example of a frame in a session, all of whose bits count.
func inSession() *wire.Frame {
	f := example()
	f.InSession = true
	f.Session = session.Header{Node: 0x01020304, From: 0x0506, To: 0x0708, Number: 0x090a0b0c, Asks: true,
		Answers: true, Ack: session.Ack{Next: 0x0d0e0f10, Seen: 0x1112131415161718}}
	return f
}

func TestHeaderOfASessionIsLaidOutAsDocumented(t *testing.T) {
	f := &wire.Frame{Kind: wire.User, Head: &protos.Chunk{}, InSession: true, Session: inSession().Session}
	want := "GW\x04\x07" + "\x2a\x00\x00\x00" + "\x00\x00" + "\x00\x00" + strings.Repeat("\x00", 8) + // prefix
		"\x04\x03\x02\x61" + "\x06\x05" + "\x08\x07" + "\x0c\x0b\x0a\x09" + // node with flags, lives, number
		"\x10\x0f\x0e\x0d" + "\x18\x17\x16\x15\x14\x13\x12\x11" + // acknowledgement
		"\x00\x00\x00" + "\x0egradwire.Chunk"
	if got := string(encode(t, f)); got != want {
		t.Errorf("encoded\n%q, want\n%q", got, want)
	}
	if n := wire.Size(f); n != len(want) {
		t.Errorf("size %d, want %d", n, len(want))
	}
}

func TestHeaderOfAPacketInASessionCanBeReplaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := inSession()
		p, err := wire.Pack(f, wire.Eager)
		if err != nil {
			t.Fatal(err)
		}
		f.Session = headers().Draw(t, "header")
		copied := p.Copy()
		copied.SetSession(&f.Session)
		for q, want := range map[*wire.Packet]session.Header{p: inSession().Session, copied: f.Session} {
			g, err := q.Frame()
			if err != nil || !g.InSession || g.Session != want || g.Target != f.Target {
				t.Fatalf("%+v came back as %+v, error %v", want, g, err)
			}
		}
	})
}

// Each bit of the header is refused or read as it stands, and so is each truncation.
func TestDamagedHeaderOfASessionIsRefusedOrReadAsItStands(t *testing.T) {
	b := encode(t, inSession())
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		f, err := wire.Decode(c, &protos.TensorPool{})
		if err != nil {
			refused(t, c, fmt.Sprintf("bit %d of byte %d", i%8, i/8))
		} else if bytes.Equal(encode(t, &f), b) {
			t.Errorf("bit %d of byte %d makes no difference", i%8, i/8)
		}
	}
	for n := range b {
		refused(t, b[:n], fmt.Sprintf("%d of %d bytes", n, len(b)))
	}
}

func TestHeaderThatNoNodeWritesIsRefused(t *testing.T) {
	alone := wire.Acknowledgement("b/actor", session.Header{Answers: true, Alone: true, Ack: session.Ack{Next: 1}})
	good := encode(t, &alone)
	if f, err := wire.Decode(good, &protos.TensorPool{}); err != nil || f.Session != alone.Session {
		t.Fatalf("%+v, error %v", f, err)
	}
	at := wire.PrefixSize
	for what, change := range map[string]func(b []byte){
		"alone without an answer": func(b []byte) { b[at+3] = 0x80 },
		"alone and asks":          func(b []byte) { b[at+3] |= 0x20 },
		"alone with a number":     func(b []byte) { b[at+8] = 1 },
		"answer to nobody":        func(b []byte) { b[at+3] = 0 },
	} {
		b := bytes.Clone(good)
		change(b)
		refused(t, b, what)
	}
	alone.Tensors = []*protos.Tensor{protos.NewTensor(nil)}
	refused(t, encode(t, &alone), "alone with a tensor")
	for what, f := range map[string]*wire.Frame{
		"system":  {Kind: wire.System, Head: &protos.Chunk{}, InSession: true},
		"control": {Kind: wire.Control, Head: &protos.Start{}, InSession: true},
		"node": {Kind: wire.User, Head: &protos.Chunk{}, InSession: true,
			Session: session.Header{Node: math.MaxInt32}},
		"negative": {Kind: wire.User, Head: &protos.Chunk{}, InSession: true, Session: session.Header{Node: -1}},
	} {
		if b, err := wire.Encode(nil, f); err == nil {
			t.Errorf("%s was encoded as %q", what, b)
		}
	}
}

// Package wire is the form that a message has between two nodes: a frame, its
// codec and its size. It is pure: bytes in, values out.
//
// A frame is a fixed prefix of 20 bytes, a head, and the tensors:
//
//	0   'G' 'W'              magic
//	2   version              4
//	3   kind                 User, System or Control, or 7: User, in a session
//	4   length of the head   uint32
//	8   number of tensors    11 bits, and the cut in the 5 bits above them
//	10  lateness             uint16, in microseconds
//	12  run                  uint64, tells the runs of one connection apart
//	20  head: in a session its header, of 24 bytes; then the length of each tensor
//	    (uint32, in values); then target id, sender address, sender id and the name
//	    of the protobuf type, each a uvarint length and its bytes; then the protobuf
//	    message, to the end of the head
//	…   the values of the tensors, float32, one tensor after the other
//
// All numbers are little-endian.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/protos"
)

// Limits of a frame. A frame beyond them is refused by Pack and by Decoder.
const (
	// MaxHead is the largest head in bytes.
	MaxHead = 1 << 20
	// MaxTensors is the largest number of tensors of a frame.
	MaxTensors = 1 << 10
	// MaxValues is the largest number of float32 values of a frame (1 GiB).
	MaxValues = 1 << 28
)

// MaxLate is the largest lateness that a frame tells.
const MaxLate = math.MaxUint16 * time.Microsecond

// Kind says which way a frame goes: through which queue of a mailbox and, from User to the others,
// whether links are emulated for it and whether it passes bulk on a connection.
type Kind uint8

// The kinds of frames. No two are a bit apart.
const (
	// User frames carry messages of actors.
	User Kind = 1
	// System frames carry protoactor's own messages: Watch, Stop, Terminated…
	System Kind = 2
	// Control frames carry messages of the control protocol: see protos.IsControl.
	Control Kind = 4
)

// KindOf is the kind of a message that is not protoactor's own.
func KindOf(head proto.Message) Kind {
	if protos.IsControl(head) {
		return Control
	}
	return User
}

func (k Kind) check() error {
	switch k {
	case User, System, Control:
		return nil
	}
	return fmt.Errorf("frame kind %d, accepted are %d, %d and %d", k, User, System, Control)
}

// PrefixSize is the number of bytes of the fixed part of a frame.
const PrefixSize = 20

const version = 4

// ErrTooLarge is wrapped by errors about frames that exceed a limit.
var ErrTooLarge = errors.New("frame exceeds a limit")

// Frame is a message on its way to an actor of another node.
type Frame struct {
	Kind Kind
	// Run tells the runs that go on between two processes apart; 0 where there is one.
	Run uint64
	// Late is how much later than it was due the frame has left its node. It travels in whole
	// microseconds, MaxLate of it at most.
	Late time.Duration
	// Cut is that of the sender, see Cut.
	Cut Cut
	// Target is the id of the actor on the receiving node.
	Target string
	// SenderAddress and SenderID name who wants the answer; both empty if nobody does.
	SenderAddress, SenderID string
	// Head is the protobuf message.
	Head proto.Message
	// Tensors ride beside it.
	Tensors []*protos.Tensor
	// InSession says that Session is there, which is for User frames only.
	InSession bool
	Session   session.Header
}

// Release gives up the frame's references to its tensors. Code that drops a frame must call it.
func (f *Frame) Release() {
	for _, t := range f.Tensors {
		t.Release()
	}
}

// Size returns the number of bytes of the encoded frame. It does not allocate.
func Size(f *Frame) int {
	values := 0
	for _, t := range f.Tensors {
		values += len(t.Data)
	}
	return PrefixSize + headSize(f) + 4*values
}

// Measure returns the size of the frame, or the error with which Pack would refuse
// it for a limit.
func Measure(f *Frame) (int, error) {
	size := Size(f)
	if size <= MaxHead && len(f.Tensors) <= MaxTensors {
		return size, nil
	}
	err := checkTensors(f)
	if n := headSize(f); err == nil && n > MaxHead {
		err = headTooLarge(n)
	}
	return size, err
}

func headSize(f *Frame) int {
	name := f.Head.ProtoReflect().Descriptor().FullName()
	size := 4 * len(f.Tensors)
	if f.InSession {
		size += session.HeaderSize
	}
	return size + protowire.SizeBytes(len(f.Target)) + protowire.SizeBytes(len(f.SenderAddress)) +
		protowire.SizeBytes(len(f.SenderID)) + protowire.SizeBytes(len(name)) + proto.Size(f.Head)
}

// AppendHead appends the prefix and the head of the frame to b. The values of the
// tensors follow them on the wire as they lie in memory.
func AppendHead(b []byte, f *Frame) ([]byte, error) {
	if err := f.Kind.check(); err != nil {
		return b, fmt.Errorf("wire: %w", err)
	}
	if err := checkTensors(f); err != nil {
		return b, err
	}
	start := len(b)
	kind, err := f.kind()
	if err != nil {
		return b, err
	}
	b = append(b, 'G', 'W', version, kind, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.Tensors))|uint16(f.Cut)<<tensorBits)
	b = binary.LittleEndian.AppendUint16(b, lateness(f.Late))
	b = binary.LittleEndian.AppendUint64(b, f.Run)
	if f.InSession {
		b = append(b, make([]byte, session.HeaderSize)...)
		putSession(b[start+PrefixSize:], &f.Session)
	}
	for _, t := range f.Tensors {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Data)))
	}
	name := string(f.Head.ProtoReflect().Descriptor().FullName())
	for _, s := range [...]string{f.Target, f.SenderAddress, f.SenderID, name} {
		b = protowire.AppendString(b, s)
	}
	b, err = proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, f.Head)
	if err != nil {
		return b[:start], fmt.Errorf("wire: encode %s: %w", name, err)
	}
	n := len(b) - start - PrefixSize
	if n > MaxHead {
		return b[:start], headTooLarge(n)
	}
	binary.LittleEndian.PutUint32(b[start+4:], uint32(n))
	return b, nil
}

// kind is the frame's kind as it stands in its prefix.
func (f *Frame) kind() (byte, error) {
	if !f.InSession {
		return byte(f.Kind), nil
	}
	if f.Kind != User {
		return 0, fmt.Errorf("wire: frame kind %d in a session, accepted is %d", f.Kind, User)
	}
	if err := checkSession(&f.Session); err != nil {
		return 0, fmt.Errorf("wire: %w", err)
	}
	return inSession, nil
}

// lateness is how a frame tells that it is late.
func lateness(late time.Duration) uint16 {
	return uint16(min(max(late, 0), MaxLate) / time.Microsecond)
}

func headTooLarge(n int) error {
	return fmt.Errorf("wire: head of %d bytes, at most %d: %w", n, MaxHead, ErrTooLarge)
}

func checkTensors(f *Frame) error {
	if len(f.Tensors) > MaxTensors {
		return fmt.Errorf("wire: %d tensors in a frame, at most %d: %w", len(f.Tensors), MaxTensors, ErrTooLarge)
	}
	values := 0
	for _, t := range f.Tensors {
		values += len(t.Data)
	}
	if values > MaxValues {
		return fmt.Errorf("wire: %d values in a frame, at most %d: %w", values, MaxValues, ErrTooLarge)
	}
	return nil
}

// Prefix is the decoded fixed part of a frame.
type Prefix struct {
	Kind    Kind
	Run     uint64
	Late    time.Duration
	Cut     Cut
	Head    int
	Tensors int
	// InSession says that the head begins with a session's header.
	InSession bool
}

// DecodePrefix reads the fixed part of a frame from the first PrefixSize bytes of b.
func DecodePrefix(b []byte) (Prefix, error) {
	if len(b) < PrefixSize {
		return Prefix{}, fmt.Errorf("wire: frame ends at offset %d inside its prefix of %d bytes", len(b), PrefixSize)
	}
	p := Prefix{
		Kind:    Kind(b[3]),
		Head:    int(binary.LittleEndian.Uint32(b[4:])),
		Tensors: int(binary.LittleEndian.Uint16(b[8:]) & (1<<tensorBits - 1)),
		Cut:     Cut(binary.LittleEndian.Uint16(b[8:]) >> tensorBits),
		Late:    time.Duration(binary.LittleEndian.Uint16(b[10:])) * time.Microsecond,
		Run:     binary.LittleEndian.Uint64(b[12:]),
	}
	if p.InSession = p.Kind == inSession; p.InSession {
		p.Kind = User
	}
	switch err := p.Kind.check(); {
	case b[0] != 'G' || b[1] != 'W':
		return Prefix{}, fmt.Errorf("wire: offset 0: %q is not the start of a frame, which is \"GW\"", b[:2])
	case b[2] != version:
		return Prefix{}, fmt.Errorf("wire: offset 2: frame version %d, accepted is %d", b[2], version)
	case err != nil:
		return Prefix{}, fmt.Errorf("wire: offset 3: %w", err)
	case p.Head > MaxHead:
		return Prefix{}, fmt.Errorf("wire: offset 4: head of %d bytes, at most %d: %w", p.Head, MaxHead, ErrTooLarge)
	case p.Tensors > MaxTensors:
		return Prefix{}, fmt.Errorf("wire: offset 8: %d tensors, at most %d: %w", p.Tensors, MaxTensors, ErrTooLarge)
	}
	return p, nil
}

// Decoder reads the heads of one connection, whose frames name the same few actors
// and types again and again: it keeps what it has seen, within bounds. The zero value is ready
// for use, by one goroutine.
type Decoder struct {
	texts   map[string]string
	kinds   map[string]protoreflect.MessageType
	lengths []int
	// last is what stood between lengths and message in the latest frame, which most
	// often stands there in the next one too. Its texts say how long they are, so that where
	// the same bytes begin, the same texts end.
	last names
}

// names are the texts of a head.
type names struct {
	bytes                           []byte // as they stand there
	target, senderAddress, senderID string
	message                         string
	kind                            protoreflect.MessageType
}

const (
	// keptTexts bounds how many texts, and how many types, a Decoder keeps.
	keptTexts = 1 << 10
	// keptText is the length of the longest text that it keeps.
	keptText = 256
)

// Head reads the head that follows a prefix, and returns a frame without its tensors and the
// lengths of these, which are good until the next call for a frame with tensors.
func (d *Decoder) Head(p Prefix, b []byte) (Frame, []int, error) {
	if len(b) != p.Head {
		return Frame{}, nil, fmt.Errorf("wire: offset %d: head has %d bytes, its prefix says %d", PrefixSize+len(b),
			len(b), p.Head)
	}
	f := Frame{Kind: p.Kind, Run: p.Run, Late: p.Late, Cut: p.Cut, InSession: p.InSession}
	offset := PrefixSize // of b
	if p.InSession {
		var err error
		if f.Session, err = getSession(b); err != nil {
			return Frame{}, nil, err
		}
		if f.Session.Alone && p.Tensors > 0 {
			return Frame{}, nil, fmt.Errorf("wire: offset %d: an acknowledgement alone with %d tensors", offset,
				p.Tensors)
		}
		b, offset = b[session.HeaderSize:], offset+session.HeaderSize
	}
	lengths, err := decodeLengths(d.lengths[:0], p, b, offset)
	if err != nil {
		return Frame{}, nil, err
	}
	d.lengths = lengths
	n := &d.last
	b, offset = b[4*p.Tensors:], offset+4*p.Tensors
	if n.kind == nil || !bytes.HasPrefix(b, n.bytes) {
		if err := d.read(n, b, offset); err != nil {
			return Frame{}, nil, err
		}
	}
	f.Target, f.SenderAddress, f.SenderID = n.target, n.senderAddress, n.senderID
	f.Head = n.kind.New().Interface()
	if err := proto.Unmarshal(b[len(n.bytes):], f.Head); err != nil {
		return Frame{}, nil, fmt.Errorf("wire: offset %d: decode %s: %w", offset+len(n.bytes), n.message, err)
	}
	if f.Kind != System && f.Kind != KindOf(f.Head) {
		return Frame{}, nil, fmt.Errorf("wire: offset 0: kind %d of a frame with %s, accepted is %d", f.Kind,
			n.message, KindOf(f.Head))
	}
	return f, lengths, nil
}

// read reads the texts at the beginning of b, which stands at an offset of the frame.
func (d *Decoder) read(n *names, b []byte, offset int) error {
	n.kind = nil
	used := 0
	for _, text := range [...]*string{&n.target, &n.senderAddress, &n.senderID, &n.message} {
		value, size := protowire.ConsumeBytes(b[used:])
		if size < 0 {
			return fmt.Errorf("wire: offset %d: head of %d bytes ends too early", offset+used, offset-PrefixSize+len(b))
		}
		*text, used = d.text(value), used+size
	}
	kind, err := d.kind(n.message)
	if err != nil {
		return fmt.Errorf("wire: offset %d: message type %.100q is not known here", offset+used-len(n.message),
			n.message)
	}
	n.bytes, n.kind = append(n.bytes[:0], b[:used]...), kind
	return nil
}

// text returns b as a string.
func (d *Decoder) text(b []byte) string {
	if s, ok := d.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(b) <= keptText && len(d.texts) < keptTexts {
		if d.texts == nil {
			d.texts = map[string]string{}
		}
		d.texts[s] = s
	}
	return s
}

// kind returns the type of a name.
func (d *Decoder) kind(name string) (protoreflect.MessageType, error) {
	if kind, ok := d.kinds[name]; ok {
		return kind, nil
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err == nil && len(d.kinds) < keptTexts {
		if d.kinds == nil {
			d.kinds = map[string]protoreflect.MessageType{}
		}
		d.kinds[name] = kind
	}
	return kind, err
}

// decodeLengths reads the lengths of the tensors, which stand at an offset of the frame, before
// anything is allocated for them.
func decodeLengths(lengths []int, p Prefix, head []byte, offset int) ([]int, error) {
	if len(head) < 4*p.Tensors {
		return nil, fmt.Errorf("wire: offset %d: head of %d bytes ends inside the lengths of %d tensors",
			offset+len(head), p.Head, p.Tensors)
	}
	lengths = slices.Grow(lengths, p.Tensors)[:p.Tensors]
	total := 0
	for i := range lengths {
		lengths[i] = int(binary.LittleEndian.Uint32(head[4*i:]))
		if total += lengths[i]; total > MaxValues {
			return nil, fmt.Errorf("wire: offset %d: more than %d values in a frame: %w", offset+4*i, MaxValues,
				ErrTooLarge)
		}
	}
	return lengths, nil
}

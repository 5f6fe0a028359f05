package transport

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gradwire/gradwire/cluster/naming"
	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/transport/lane"
	"github.com/gradwire/gradwire/cluster/wire"
)

// A connection carries records: a byte that says what it is, three that are zero, the
// length of the body (uint32), and the body. All numbers are little-endian. In the record with
// which a bulk frame begins the three bytes are the lower ones of how many such frames of the other
// side were taken.
//
// A frame without tensors is one record. The values of the tensors of a large
// frame are spread over several, between which whole urgent frames and
// heartbeats may stand, but no other bulk frame.
const (
	helloRecord    = 1 // the caller says who it is; first of all
	welcomeRecord  = 2 // the called accepts
	refusalRecord  = 3 // the called does not, and says why
	urgentRecord   = 4 // a whole frame of the urgent class
	bulkRecord     = 5 // prefix, head and first values of a frame of the bulk class
	moreRecord     = 6 // more values of that frame
	beatRecord     = 7 // heartbeat
	farewellRecord = 8 // the sender has sent its last frame

	recordHeader = wire.Headroom
	beatSize     = 48
	// maxGreeting bounds the body of what is read before a peer is trusted.
	maxGreeting = 1 << 10
)

// ErrBad is wrapped by errors about bytes that no node of this version sends.
var ErrBad = errors.New("bad frame")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBad}, args...)...)
}

func putRecord(b []byte, kind byte, length int) {
	b[0], b[1], b[2], b[3] = kind, 0, 0, 0
	binary.LittleEndian.PutUint32(b[4:], uint32(length))
}

// putRide and ride are what goes with the first record of a bulk frame.
func putRide(b []byte, taken uint32) { b[1], b[2], b[3] = byte(taken), byte(taken>>8), byte(taken>>16) }
func ride(b []byte) uint32           { return uint32(b[1]) | uint32(b[2])<<8 | uint32(b[3])<<16 }

// record reads a header. The length is within the limits of its kind.
func record(b []byte) (kind byte, length int, err error) {
	kind, length = b[0], int(binary.LittleEndian.Uint32(b[4:]))
	if kind != bulkRecord && ride(b) != 0 {
		return 0, 0, bad("reserved bytes of a record are not zero")
	}
	low, high := 0, 0
	switch kind {
	case helloRecord, welcomeRecord, refusalRecord:
		low, high = 1, maxGreeting
	case urgentRecord:
		low, high = wire.PrefixSize, wire.PrefixSize+wire.MaxHead
	case bulkRecord:
		low, high = wire.PrefixSize, wire.PrefixSize+wire.MaxHead+4*wire.MaxValues
	case moreRecord:
		low, high = 1, 4*wire.MaxValues
	case beatRecord:
		low, high = beatSize, beatSize
	case farewellRecord:
	default:
		return 0, 0, bad("record of kind %d", kind)
	}
	if length < low || length > high {
		return 0, 0, bad("record of kind %d and %d bytes, accepted are %d to %d", kind, length, low, high)
	}
	return kind, length, nil
}

// beat is what a heartbeat says. Instants are nanoseconds on the clock of their node.
type beat struct {
	sent    int64       // when this one was sent
	echo    int64       // when the last one that has arrived had been sent; 0 before the first
	held    int64       // for how long that one has been held
	handled uint64      // how many frames of the peer's incarnation have been handled
	taken   lane.Counts // how many have been read
}

func (h *beat) put(b []byte) {
	for i, v := range [...]uint64{uint64(h.sent), uint64(h.echo), uint64(h.held), h.handled,
		h.taken[lane.Urgent], h.taken[lane.Bulk]} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

func getBeat(b []byte) beat {
	v := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return beat{sent: int64(v(0)), echo: int64(v(1)), held: int64(v(2)), handled: v(3),
		taken: lane.Counts{lane.Urgent: v(4), lane.Bulk: v(5)}}
}

// greeting is what a hello and a welcome say.
type greeting struct {
	incarnation uint64         // of who sends it
	attempt     uint64         // counts the calls of a process
	serial      uint64         // counts the connections of a pair: the last one known
	known       uint64         // the incarnation of the other one that is known; 0 if none is
	taken       lane.Counts    // how many frames of that one have been taken
	refused     uint64         // how many of these could not be handled
	name        string         // who sends it
	target      string         // whom it is for
	address     string         // where who sends it can be called; empty if nowhere
	ends        string         // of the connection, as its caller sees them
	memory      string         // where memory to share is offered, or was taken; empty if there is none
	spoken      protocol.Range // the versions that the sender speaks
}

const greetingMagic = "GWcn"

func (g *greeting) append(b []byte) []byte {
	b = append(append(b, greetingMagic...), g.spoken.Newest, g.spoken.Oldest)
	for _, v := range [...]uint64{g.incarnation, g.attempt, g.serial, g.known, g.taken[lane.Urgent],
		g.taken[lane.Bulk], g.refused} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, s := range [...]string{g.name, g.target, g.address, g.ends, g.memory} {
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
	}
	return b
}

// getGreeting decodes a greeting for a node that speaks the versions own. The sender's newest
// version is the first byte after the magic, where builds before protocol.Negotiated have their
// only version; later builds add fields only at the end. getGreeting returns a [protocol.Error]
// without names if own and the sender's versions have none in common.
func getGreeting(b []byte, own protocol.Range) (g greeting, err error) {
	const fixed = len(greetingMagic) + 2 + 7*8
	if len(b) < fixed || string(b[:len(greetingMagic)]) != greetingMagic {
		return g, bad("no greeting of a node")
	}
	b = b[len(greetingMagic):]
	g.spoken = protocol.Range{Oldest: b[1], Newest: b[0]}
	if b[0] < protocol.Negotiated {
		g.spoken = protocol.Of(b[0])
	}
	switch {
	case !g.spoken.Valid():
		return g, bad("protocol %v is not a range of versions", g.spoken)
	case own.Agreed(g.spoken) == 0:
		return g, &protocol.Error{Range: g.spoken, Others: own}
	}
	b = b[2:]
	for _, v := range [...]*uint64{&g.incarnation, &g.attempt, &g.serial, &g.known, &g.taken[lane.Urgent],
		&g.taken[lane.Bulk], &g.refused} {
		*v, b = binary.LittleEndian.Uint64(b), b[8:]
	}
	for _, s := range [...]*string{&g.name, &g.target, &g.address, &g.ends, &g.memory} {
		if len(b) < 2 || len(b)-2 < int(binary.LittleEndian.Uint16(b)) {
			return g, bad("the greeting ends too early")
		}
		end := 2 + int(binary.LittleEndian.Uint16(b))
		*s, b = string(b[2:end]), b[end:]
	}
	if len(b) > 0 && g.spoken.Newest <= own.Newest || g.incarnation == 0 || naming.Problem(g.name) != "" ||
		naming.Problem(g.target) != "" {
		return g, bad("the greeting names no node, no incarnation, or goes on for %d bytes", len(b))
	}
	return g, nil
}

// The reasons for which a call is refused.
const (
	refusedStale  = 1 // a later incarnation of the caller is known
	refusedDouble = 2 // there is, or will be, another connection
	refusedTarget = 3 // the name called is not this node's
	refusedFull   = 4 // too many peers
	// refusedProtocol: the nodes have no version of the protocol in common. The range of the node
	// that refuses follows.
	refusedProtocol = 5
)

var refusals = map[byte]error{
	refusedStale:  errors.New("a later incarnation of this node is known there"),
	refusedDouble: errDouble,
	refusedTarget: errors.New("a node of another name answers there"),
	refusedFull:   errors.New("there are too many peers there"),
}

// refuseProtocol encodes the body of a refusal for refusedProtocol, with this node's range.
func refuseProtocol(own protocol.Range) []byte {
	return []byte{refusedProtocol, own.Newest, own.Oldest}
}

// refusal decodes the body of a refusal into an error, for a node that speaks the versions own.
func refusal(body []byte, own protocol.Range) error {
	if body[0] == refusedProtocol && len(body) > 2 {
		return &protocol.Error{Range: protocol.Range{Oldest: body[2], Newest: body[1]}, Others: own}
	}
	if err := refusals[body[0]]; err != nil {
		return err
	}
	return bad("refusal of kind %d", body[0])
}

var errDouble = errors.New("another connection is there")

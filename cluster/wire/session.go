package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/gradwire/gradwire/actors/session"
)

// inSession is the kind of a User frame, as it stands in the prefix, whose head begins with a
// session's header:
//
//	0   position of the sender's node, 29 bits; then asks, answers, alone   uint32
//	4   life of that node, life of the receiver's                           uint16 each
//	8   number                                                              uint32
//	12  acknowledgement: next, and what is seen behind it                   uint32, uint64
//
// It is two bits apart from the other kinds.
const inSession = 7

// The upper bits of a header's first word.
const (
	asks = 1 << (29 + iota)
	answers
	alone
)

// Acknowledgement is the frame of an acknowledgement that travels alone, to a node by the id of its
// actor.
func Acknowledgement(target string, h session.Header) Frame {
	return Frame{Kind: User, InSession: true, Session: h, Target: target, Head: &emptypb.Empty{}}
}

// putSession writes a header over the first bytes of b.
func putSession(b []byte, h *session.Header) {
	first := uint32(h.Node)
	if h.Asks {
		first |= asks
	}
	if h.Answers {
		first |= answers
	}
	if h.Alone {
		first |= alone
	}
	binary.LittleEndian.PutUint32(b, first)
	binary.LittleEndian.PutUint16(b[4:], uint16(h.From))
	binary.LittleEndian.PutUint16(b[6:], uint16(h.To))
	binary.LittleEndian.PutUint32(b[8:], uint32(h.Number))
	binary.LittleEndian.PutUint32(b[12:], uint32(h.Ack.Next))
	binary.LittleEndian.PutUint64(b[16:], h.Ack.Seen)
}

// getSession reads the header with which the head of a frame begins.
func getSession(b []byte) (session.Header, error) {
	if len(b) < session.HeaderSize {
		return session.Header{}, fmt.Errorf("wire: offset %d: head of %d bytes ends inside the session's header of %d",
			PrefixSize+len(b), len(b), session.HeaderSize)
	}
	first := binary.LittleEndian.Uint32(b)
	h := session.Header{
		Node: int32(first &^ (asks | answers | alone)),
		From: session.Life(binary.LittleEndian.Uint16(b[4:])), To: session.Life(binary.LittleEndian.Uint16(b[6:])),
		Number: session.Number(binary.LittleEndian.Uint32(b[8:])),
		Asks:   first&asks != 0, Answers: first&answers != 0, Alone: first&alone != 0,
		Ack: session.Ack{Next: session.Number(binary.LittleEndian.Uint32(b[12:])),
			Seen: binary.LittleEndian.Uint64(b[16:])},
	}
	if err := checkSession(&h); err != nil {
		return h, fmt.Errorf("wire: offset %d: %w", PrefixSize, err)
	}
	return h, nil
}

// checkSession returns an error for a header that no node writes.
func checkSession(h *session.Header) error {
	switch {
	case h.Node < 0 || h.Node >= session.MaxNode:
		return fmt.Errorf("session of node %d, accepted are 0 to %d", h.Node, session.MaxNode-1)
	case h.Alone && (!h.Answers || h.Asks || h.Number != 0):
		return errors.New("an acknowledgement alone that tells nothing, asks or has a number")
	case !h.Answers && h.Ack != session.Ack{}:
		return errors.New("an acknowledgement of no session")
	}
	return nil
}

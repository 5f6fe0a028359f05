// Package request is what clients and the processes of a cluster say to each other. A client sends a protos.Request over
// a connection of its own and reads one protos.Reply or several; protobuf messages lie there one behind the other, each
// behind its length of 4 bytes, the lowest first. A line to actors goes on with protos.ActorCall and ActorReceipt.
package request

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"
)

// MaxMessage bounds what a client and a process say to each other at a time, in bytes.
const MaxMessage = 4 << 20

// Bounds of texts that actors and the system have a say in, in bytes.
const (
	MaxText = 64 << 10
	// MaxListed is the bound where there may be as many texts as submissions or nodes.
	MaxListed = 1 << 10
)

// Text is a text as a message can carry it. One that is not UTF-8, as errors about files or of actors may be, would keep
// the whole message from being sent.
func Text(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

// Write writes a message behind its length.
func Write(w io.Writer, m proto.Message) error {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 4, 512), m)
	if err != nil {
		return err
	}
	if len(b)-4 > MaxMessage {
		return fmt.Errorf("a message of %d bytes; at most %d can be sent", len(b)-4, MaxMessage)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	_, err = w.Write(b)
	return err
}

// Read reads what say has written.
func Read(r *bufio.Reader, m proto.Message) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > MaxMessage {
		return fmt.Errorf("a message of %d bytes; at most %d are accepted", n, MaxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

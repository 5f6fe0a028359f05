// Package request is the protocol between clients and the processes of a cluster. A client opens a
// connection for each protos.Request and reads one protos.Reply or several. On the connection each
// protobuf message follows its length, 4 bytes, little-endian. A line to actors goes on with
// protos.ActorCall and ActorReceipt.
package request

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// MaxMessage bounds what a client and a process say to each other at a time, in bytes.
const MaxMessage = 4 << 20

// Bounds of texts that actors and the system have a say in, in bytes.
const (
	// MaxText is the bound of a single text.
	MaxText = 64 << 10
	// MaxListed is the bound where there may be as many texts as submissions or nodes.
	MaxListed = 1 << 10
)

// Text is a text as a message can carry it. One that is not UTF-8, as errors about files or of
// actors may be, would keep the whole message from being sent.
func Text(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

// Write writes a message behind its length. It returns an error for one of more than MaxMessage
// bytes.
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

// Read reads what Write has written.
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

// maxCallHead bounds the head of a message to an actor, so that it fits into a frame.
const maxCallHead = wire.MaxHead - 4096

// Seal returns the name of the type of a message's head, and its bytes.
func Seal(m *protos.Message) (name string, head []byte, err error) {
	if m.Head == nil {
		return "", nil, errors.New("a message without a head has no wire form")
	}
	if len(m.Tensors) > wire.MaxTensors {
		return "", nil, fmt.Errorf("a message with %d tensors; at most %d can be sent", len(m.Tensors), wire.MaxTensors)
	}
	if head, err = proto.Marshal(m.Head); err != nil {
		return "", nil, err
	}
	if len(head) > maxCallHead {
		return "", nil, fmt.Errorf("a head of %d bytes; at most %d can be sent", len(head), maxCallHead)
	}
	return string(proto.MessageName(m.Head)), head, nil
}

// Vectors are tensors as they travel between a client and a process, which share their values.
func Vectors(tensors []*protos.Tensor) (vectors []*protos.Vector) {
	for _, t := range tensors {
		vectors = append(vectors, &protos.Vector{Values: t.Data})
	}
	return vectors
}

// Tensors are copies, of a pool, of what has travelled as vectors.
func Tensors(pool *protos.TensorPool, vectors []*protos.Vector) (tensors []*protos.Tensor) {
	for _, v := range vectors {
		tensors = append(tensors, pool.Copy(v.Values))
	}
	return tensors
}

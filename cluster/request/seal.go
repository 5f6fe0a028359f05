package request

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

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

func Vectors(tensors []*protos.Tensor) (vectors []*protos.Vector) {
	for _, t := range tensors {
		vectors = append(vectors, &protos.Vector{Values: t.Data})
	}
	return vectors
}

func Tensors(pool *protos.TensorPool, vectors []*protos.Vector) (tensors []*protos.Tensor) {
	for _, v := range vectors {
		tensors = append(tensors, pool.Copy(v.Values))
	}
	return tensors
}

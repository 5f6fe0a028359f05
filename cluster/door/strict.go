package door

import (
	"fmt"
	"math"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// evidence keeps what was sent until it is delivered, to prove that nobody wrote it.
type evidence struct {
	message *protos.Message
	sums    []uint64
}

// roundTrip encodes and decodes the frame, compares, and lets the decoded message
// travel instead of the original.
func (d *Door) roundTrip(f *wire.Frame, p *Parcel) error {
	packet, err := wire.Pack(f, wire.Eager)
	if err != nil {
		return err
	}
	if size := packet.Size() - wire.Headroom; size != p.Size {
		return fmt.Errorf("strict: a frame of %s has %d bytes, its computed size is %d",
			f.Head.ProtoReflect().Descriptor().FullName(), size, p.Size)
	}
	g, err := packet.Frame()
	packet.Recycle() // the references are the message's
	if err != nil {
		return fmt.Errorf("strict: %w", err)
	}
	if err := same(f, &g); err != nil {
		return err
	}
	original, ok := payload(p.Message).(*protos.Message)
	if !ok {
		return nil
	}
	p.evidence = &evidence{message: original, sums: checksums(f.Tensors)}
	for i, t := range f.Tensors {
		g.Tensors[i] = d.tensors.Copy(t.Data)
	}
	*f = g
	decoded := protos.NewMessage(g.Head, g.Tensors...)
	if _, ok := p.Message.(*actor.MessageEnvelope); ok {
		p.Message = &actor.MessageEnvelope{Message: decoded, Sender: actor.NewPID(g.SenderAddress, g.SenderID)}
	} else {
		p.Message = decoded
	}
	return nil
}

func payload(message any) any {
	if envelope, ok := message.(*actor.MessageEnvelope); ok {
		return envelope.Message
	}
	return message
}

func same(f, g *wire.Frame) error {
	switch {
	case f.Kind != g.Kind, f.Run != g.Run, f.Cut != g.Cut, f.Target != g.Target, f.SenderAddress != g.SenderAddress,
		f.SenderID != g.SenderID, len(f.Tensors) != len(g.Tensors):
		return fmt.Errorf("strict: a frame to %s was decoded as %+v", f.Target, g)
	case !proto.Equal(f.Head, g.Head):
		return fmt.Errorf("strict: head %v was decoded as %v", f.Head, g.Head)
	}
	return nil
}

// check compares the tensors with their checksums at sending and gives the
// sender's reference back.
func (e *evidence) check() error {
	if e == nil {
		return nil
	}
	defer e.message.Release()
	for i, sum := range checksums(e.message.Tensors) {
		if sum != e.sums[i] {
			return fmt.Errorf("strict: tensor %d of a %s was written after it had been sent",
				i, e.message.Head.ProtoReflect().Descriptor().FullName())
		}
	}
	return nil
}

// checksums hashes the bits of each tensor (FNV-1a over 32-bit words).
func checksums(tensors []*protos.Tensor) []uint64 {
	sums := make([]uint64, len(tensors))
	for i, t := range tensors {
		h := uint64(14695981039346656037)
		for _, v := range t.Data {
			h = (h ^ uint64(math.Float32bits(v))) * 1099511628211
		}
		sums[i] = h ^ uint64(len(t.Data))
	}
	return sums
}

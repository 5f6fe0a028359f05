package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/gradwire/gradwire/protos"
)

// Encode appends the whole frame to b.
func Encode(b []byte, f *Frame) ([]byte, error) {
	b, err := AppendHead(b, f)
	if err != nil {
		return b, err
	}
	for _, t := range f.Tensors {
		if b, err = binary.Append(b, binary.LittleEndian, t.Data); err != nil {
			return b, err
		}
	}
	return b, nil
}

// Decode reads a whole frame, which must fill b exactly. Its tensors come from the
// pool, and nothing is taken from there if an error is returned.
func Decode(b []byte, pool *protos.TensorPool) (Frame, error) {
	p, err := DecodePrefix(b)
	if err != nil {
		return Frame{}, err
	}
	rest := b[PrefixSize:]
	if len(rest) < p.Head {
		return Frame{}, fmt.Errorf("wire: frame ends at offset %d inside its head of %d bytes", len(b), p.Head)
	}
	f, lengths, err := new(Decoder).Head(p, rest[:p.Head])
	if err != nil {
		return Frame{}, err
	}
	rest = rest[p.Head:]
	if want := 4 * sum(lengths); len(rest) != want {
		return Frame{}, fmt.Errorf("wire: offset %d: %d bytes of tensors, the head says %d", PrefixSize+p.Head,
			len(rest), want)
	}
	for _, n := range lengths {
		t := pool.Get(n)
		if _, err := binary.Decode(rest, binary.LittleEndian, t.Data); err != nil {
			return Frame{}, err
		}
		f.Tensors = append(f.Tensors, t)
		rest = rest[4*n:]
	}
	return f, nil
}

func sum(lengths []int) int {
	total := 0
	for _, n := range lengths {
		total += n
	}
	return total
}

package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gradwire/gradwire/protos"
)

// Encode appends the whole frame to b.
func Encode(b []byte, f *Frame) ([]byte, error) {
	b, err := AppendHead(b, f)
	if err != nil {
		return b, err
	}
	for _, t := range f.Tensors {
		b = slices.Grow(b, 4*len(t.Data))
		end := len(b)
		b = b[:end+4*len(t.Data)]
		for i, v := range t.Data {
			binary.LittleEndian.PutUint32(b[end+4*i:], math.Float32bits(v))
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
		for i := range t.Data {
			t.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
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

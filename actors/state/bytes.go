package state

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// Encode returns the state as bytes, a protos.SavedState.
func (saved *Saved) Encode() ([]byte, error) {
	m := &protos.SavedState{Root: saved.Root}
	for _, v := range saved.Vectors {
		b := make([]byte, 4*len(v.Data))
		for i, x := range v.Data {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
		}
		m.Vectors = append(m.Vectors, &protos.SavedVector{Name: v.Name, Data: b})
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// Decode returns the state that bytes of Encode hold.
func Decode(b []byte) (*Saved, error) {
	m := &protos.SavedState{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("a state cannot be read: %w", err)
	}
	saved := &Saved{Root: m.GetRoot()}
	for _, v := range m.GetVectors() {
		if len(v.GetData())%4 != 0 {
			return nil, fmt.Errorf("vector %s of a state ends within a value", v.GetName())
		}
		data := make([]float32, len(v.GetData())/4)
		for i := range data {
			data[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.GetData()[4*i:]))
		}
		saved.Vectors = append(saved.Vectors, Vector{v.GetName(), data})
	}
	return saved, nil
}

// All declares several values, by their place.
type All []Declared

// State implements [Declared].
func (all All) State(s *State) {
	for i, of := range all {
		s.Part(fmt.Sprint(i), of)
	}
}

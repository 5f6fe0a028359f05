package table

import (
	"github.com/gradwire/gradwire/protos"
)

// pack gives the shard up for a message that has all of it. The lists that it knows stay behind:
// the next server asks for them again.
func (s *shard) pack(index int, view uint64) *protos.Message {
	head := &protos.TableShard{Shard: uint32(index), Version: s.version, Slots: uint32(len(s.slots)), View: view}
	if !s.table.Sparse {
		tensors := []*protos.Tensor{protos.NewTensor(s.values)}
		for _, slot := range s.slots {
			tensors = append(tensors, protos.NewTensor(slot))
		}
		return protos.NewMessage(head, tensors...)
	}
	rows := s.sorted()
	head.Keys = uint64(len(rows))
	var tensors []*protos.Tensor
	for _, values := range append([][]float32{s.values}, s.slots...) {
		t := protos.NewTensor(make([]float32, len(values)))
		gather(t.Data, values, rows, s.table.Width)
		tensors = append(tensors, t)
	}
	return protos.NewMessage(head, append(tensors, protos.NewTensor(s.listOf(rows, s.first)))...)
}

// unpack takes in what another server has given up.
func (s *shard) unpack(head *protos.TableShard, tensors []*protos.Tensor) error {
	values := len(s.values)
	want := 1 + len(s.slots)
	if s.table.Sparse {
		if head.Keys > uint64(mostRows/s.table.Width) {
			return errFull
		}
		values, want = int(head.Keys)*s.table.Width, want+1
	}
	if int(head.Slots) != len(s.slots) || len(tensors) != want {
		return errShape
	}
	for _, t := range tensors[:1+len(s.slots)] {
		if len(t.Data) != values {
			return errShape
		}
	}
	if s.table.Sparse {
		keys, _, err := keysOf(nil, tensors[want-1].Data, head.Keys, s.first, s.last)
		if err != nil {
			return err
		}
		s.keys = keys
		for row, key := range keys {
			s.rows[key] = int32(row)
			s.order = append(s.order, int32(row))
		}
	}
	s.version = head.Version
	s.values = append(s.values[:0], tensors[0].Data...)
	for i := range s.slots {
		s.slots[i] = append(s.slots[i][:0], tensors[1+i].Data...)
	}
	return nil
}

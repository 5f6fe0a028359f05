package table

import (
	"github.com/gradwire/gradwire/protos"
)

// pack is the head and the tensors of a message that has all of the shard. The lists that it knows
// stay behind: who serves it next asks for them again.
func (s *shard) pack(pool *protos.TensorPool) (head *protos.TableShard, tensors []*protos.Tensor) {
	head = &protos.TableShard{Version: s.version, Slots: uint32(len(s.slots))}
	if !s.table.Sparse {
		tensors = append(tensors, pool.Copy(s.values))
		for _, slot := range s.slots {
			tensors = append(tensors, pool.Copy(slot))
		}
		return head, tensors
	}
	rows := s.sorted()
	head.Keys = uint64(len(rows))
	for _, values := range append([][]float32{s.values}, s.slots...) {
		t := protos.NewTensor(make([]float32, len(values)))
		gather(t.Data, values, rows, s.table.Width)
		tensors = append(tensors, t)
	}
	return head, append(tensors, protos.NewTensor(s.listOf(rows, s.first)))
}

// unpack takes in what another server has packed.
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

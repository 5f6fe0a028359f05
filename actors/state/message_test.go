package state

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// mailbox is an actor with queued messages, a pending request, and a number for each node.
type mailbox struct {
	early []*protos.Message
	ask   *protos.PullShards
	none  *protos.PullShards
	nodes []int
	other *protos.TakeSnapshot // declared under the name of ask, with another type, unless nil
}

func (b *mailbox) State(s *State) {
	s.Messages("early", &b.early)
	if b.other != nil {
		Proto(s, "ask", &b.other)
	} else {
		Proto(s, "ask", &b.ask)
	}
	Proto(s, "none", &b.none)
	Each(s, "nodes", b.nodes, func(s *State, i int, v *int) {
		at := i
		Int(s, "place", &at)
		if Int(s, "value", v); at != i {
			s.Fail(errors.New("out of place"))
		}
	})
}

func TestMessagesAndListsByNodesAreRestored(t *testing.T) {
	shared := protos.NewTensor([]float32{1, 2, 3})
	saved, err := Save(&mailbox{
		early: []*protos.Message{protos.NewMessage(&protos.ShardCopy{Shard: 3}, shared),
			protos.NewMessage(&protos.View{}, shared.View(1, 3))},
		ask:   &protos.PullShards{Node: 2, View: 7},
		nodes: []int{5, 6},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(saved.Vectors) != 2 || len(saved.Vectors[1].Data) != 2 {
		t.Errorf("saved %v, want the vector, and the view's own values", saved.Vectors)
	}
	b := mailbox{none: &protos.PullShards{}, nodes: make([]int, 2)}
	if err := saved.Restore(&b, Into{Pool: new(protos.TensorPool)}); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(b.ask, &protos.PullShards{Node: 2, View: 7}) || b.none != nil || b.nodes[1] != 6 {
		t.Errorf("restored %+v", b)
	}
	if len(b.early) != 2 || b.early[0].Head.(*protos.ShardCopy).Shard != 3 || b.early[1].Tensors[0].Data[1] != 3 {
		t.Errorf("restored the messages %v", b.early)
	}
	for _, b := range []*mailbox{{nodes: make([]int, 3)}, {nodes: make([]int, 2), other: &protos.TakeSnapshot{}}} {
		if err := saved.Restore(b, Into{Pool: new(protos.TensorPool)}); !errors.Is(err, ErrForeign) {
			t.Errorf("the error of a state of another kind is %v", err)
		}
	}
}

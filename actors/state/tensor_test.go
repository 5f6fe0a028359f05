package state_test

import (
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/protos"
)

// held is an actor with a whole tensor, a view of that tensor, and a view of another actor's tensor.
type held struct{ whole, own, received *protos.Tensor }

func (h *held) State(s *state.State) {
	s.Tensor("whole", &h.whole)
	s.Tensor("own", &h.own)
	s.Received("received", &h.received)
}

// A restored view of the actor's own tensor shares its memory again. A view of another actor's tensor
// is saved without the values outside the view.
func TestReceivedRangesAreSavedByTheirOwnValues(t *testing.T) {
	whole, other := protos.NewTensor([]float32{1, 2, 3, 4}), protos.NewTensor([]float32{5, 6, 7, 8})
	saved, err := state.Save(&held{whole, whole.View(1, 3), other.View(2, 3)})
	if err != nil {
		t.Fatal(err)
	}
	var lengths []int
	for _, v := range saved.Vectors {
		lengths = append(lengths, len(v.Data))
	}
	if !slices.Equal(lengths, []int{4, 1}) {
		t.Errorf("vectors of %v values were saved", lengths)
	}
	var again held
	if err := saved.Restore(&again, state.Into{Pool: &protos.TensorPool{}}); err != nil {
		t.Fatal(err)
	}
	if again.own.Data[0] = 9; again.whole.Data[1] != 9 {
		t.Error("a range of the actor's own tensor has become another tensor")
	}
	if !slices.Equal(again.received.Data, []float32{7}) || !again.received.Sole() {
		t.Errorf("the range received became %v", again.received.Data)
	}
}

package train_test

import (
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

func TestUpdateLeavesParametersThatSomebodyReads(t *testing.T) {
	pool := &protos.TensorPool{Poison: true}
	optimizer := optim.SGD{Rate: optim.Constant(0.5)}.New(3)
	gradient := []float32{2, 4, 6}
	first := pool.Copy([]float32{1, 2, 3})
	second := train.Update(pool, optimizer, first, gradient)
	if second != first || !slices.Equal(second.Data, []float32{0, 0, 0}) {
		t.Errorf("parameters that nobody else reads became %v, want zeros in the same memory", second.Data)
	}
	reader := second.Retain()
	third := train.Update(pool, optimizer, second, gradient)
	if !slices.Equal(third.Data, []float32{-1, -2, -3}) || !slices.Equal(reader.Data, []float32{0, 0, 0}) {
		t.Errorf("parameters became %v, and their reader has %v", third.Data, reader.Data)
	}
	if !third.Sole() || !reader.Sole() {
		t.Error("the caller's reference was not given back")
	}
}

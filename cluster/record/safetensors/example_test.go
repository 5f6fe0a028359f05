package safetensors_test

import (
	"bytes"
	"fmt"

	"github.com/gradwire/gradwire/cluster/record/safetensors"
)

// A model as runs/NNNN/model.safetensors has it, and back.
func Example() {
	var file bytes.Buffer
	tensors := []safetensors.Tensor{
		{Name: "weight", Shape: []int{2, 2}}, {Name: "bias", Shape: []int{2}, Offset: 4},
	}
	metadata := map[string]string{"plan": "mine"}
	if err := safetensors.Write(&file, tensors, metadata, []float32{1, 2, 3, 4, 5, 6}); err != nil {
		fmt.Println(err)
		return
	}
	params, tensors, about, err := safetensors.Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(params, len(tensors), about["plan"])
	// Output: [1 2 3 4 5 6] 2 mine
}

package record_test

import (
	"bytes"
	"fmt"

	"github.com/gradwire/gradwire/cluster/record"
)

// A model in safetensors, as runs/NNNN/model.safetensors has it, and back.
func ExampleReadTensors() {
	var file bytes.Buffer
	tensors := []record.Tensor{{Name: "weight", Shape: []int{2, 2}}, {Name: "bias", Shape: []int{2}, Offset: 4}}
	if err := record.WriteTensors(&file, []float32{1, 2, 3, 4, 5, 6}, tensors,
		map[string]string{"plan": "mine"}); err != nil {
		fmt.Println(err)
		return
	}
	params, tensors, about, err := record.ReadTensors(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(params, len(tensors), about["plan"])
	// Output: [1 2 3 4 5 6] 2 mine
}

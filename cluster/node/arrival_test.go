package node

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/protos"
)

// arrivalTask has five samples, three of which belong to its worker.
func arrivalTask() *train.Task {
	set := &datasets.Set{Name: "s", Inputs: 2, Classes: []string{"a", "b"}, X: make([]float32, 10), Y: make([]int32, 5)}
	return &train.Task{Train: set, Shards: [][]int32{make([]int32, 3)}}
}

func TestSamplesThatDoNotFitAreRefused(t *testing.T) {
	a := &arrival{task: arrivalTask(), done: make(chan struct{}), missing: map[int32]int{0: 3}, left: 3}
	message := func(worker, first int32, rows, labels []int32) *protos.Samples {
		return &protos.Samples{Worker: worker, First: first, Rows: rows, Labels: labels}
	}
	values := func(v ...float32) []*protos.Tensor { return []*protos.Tensor{protos.NewTensor(v)} }
	if err := a.add(message(0, 0, []int32{4}, []int32{1}), values(1, 2)); err != nil {
		t.Fatal(err)
	}
	for want, bad := range map[string]struct {
		m       *protos.Samples
		tensors []*protos.Tensor
	}{
		"worker 1 does not live here": {message(1, 0, []int32{0}, []int32{0}), values(1, 2)},
		"1 rows and 1 labels from 0":  {message(0, 0, []int32{0}, []int32{0}), values(1, 2)},
		"3 rows and 3 labels from 1":  {message(0, 1, []int32{0, 1, 2}, []int32{0, 0, 0}), values(1, 2, 3, 4, 5, 6)},
		"0 rows and 0 labels":         {message(0, 1, nil, nil), values()},
		"1 rows and 2 labels":         {message(0, 1, []int32{0}, []int32{0, 1}), values(1, 2)},
		"do not come with as many":    {message(0, 1, []int32{0}, []int32{0}), values(1, 2, 3)},
		"1 rows of 2 inputs":          {message(0, 1, []int32{0}, []int32{0}), nil},
		"row 5 of 5":                  {message(0, 1, []int32{5}, []int32{0}), values(1, 2)},
		"row -1 of 5":                 {message(0, 1, []int32{-1}, []int32{0}), values(1, 2)},
		"label 2 of 2":                {message(0, 1, []int32{0}, []int32{2}), values(1, 2)},
		"label -1 of 2":               {message(0, 1, []int32{0}, []int32{-1}), values(1, 2)},
	} {
		if err := a.add(bad.m, bad.tensors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := a.add(message(0, 1, []int32{0, 2}, []int32{0, 1}), values(5, 6, 7, 8)); err != nil {
		t.Fatal(err)
	}
	<-a.done
	if err := a.add(message(0, 3, []int32{0}, []int32{0}), values(1, 2)); err != nil {
		t.Error(err) // what comes too late is nobody's
	}
}

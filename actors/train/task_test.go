package train_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
)

func TestPlaceOfAWorkerIsThatOfItsName(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		members := make([]actors.Member, 1+random.IntN(30))
		task := &train.Task{}
		for i := range members {
			members[i].Name = fmt.Sprintf("n%d", i)
			if random.IntN(3) > 0 {
				task.Workers = append(task.Workers, members[i].Name)
			}
		}
		view := actors.NewView(1, members, nil, nil)
		for i := range members {
			want := slices.Index(task.Workers, members[i].Name)
			if got, err := task.Worker(view, i); (err != nil) != (want < 0) || err == nil && got != want {
				t.Fatalf("seed %d: node %d is worker %d, %v; want %d of %v", seed, i, got, err, want, task.Workers)
			}
		}
	}
}

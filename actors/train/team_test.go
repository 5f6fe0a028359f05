package train_test

import (
	"testing"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
)

func TestThreadsShareOnlyAnOptimizerWithoutMemory(t *testing.T) {
	rate := optim.Constant(0.1)
	for method, accepted := range map[optim.Method]bool{
		optim.SGD{Rate: rate}: true, optim.SGD{Rate: rate, WeightDecay: 0.1}: true,
		optim.Momentum{Rate: rate}: false, optim.NewAdam(rate): false,
	} {
		if err := train.CheckTeam(method); (err == nil) != accepted {
			t.Errorf("%T: %v", method, err)
		}
	}
}

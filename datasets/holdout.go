package datasets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Streams keep draws apart from others that use the same seed.
const (
	holdoutStream    = 0x686f6c646f757400
	validationStream = 0x76616c6964617465
)

// Holdout splits the rows 0..n-1 at random: round(share·n) of them to test on,
// the others to train on, both in ascending order. The split is a function of
// (n, share, seed). A share outside (0, 1), or one that leaves either part
// empty, is an error.
func Holdout(n int, share float64, seed uint64) (train, test []int32, err error) {
	return holdout(n, share, rand.NewPCG(seed, holdoutStream))
}

// Validation splits the positions 0..n-1 of training samples as Holdout does, with other draws:
// round(share·n) of them serve to choose settings, the rest to train on.
func Validation(n int, share float64, seed uint64) (train, validation []int32, err error) {
	return holdout(n, share, rand.NewPCG(seed, validationStream))
}

func holdout(n int, share float64, source rand.Source) (train, test []int32, err error) {
	if n < 2 || n > MaxSamples {
		return nil, nil, fmt.Errorf("hold-out of %d samples: 2 to %d can be split", n, MaxSamples)
	}
	if !(share > 0 && share < 1) {
		return nil, nil, fmt.Errorf("hold-out share %v: a number between 0 and 1 (both excluded) is needed", share)
	}
	tests := int(math.Round(share * float64(n)))
	if tests == 0 || tests == n {
		return nil, nil, fmt.Errorf("hold-out share %v of %d samples leaves %d to train and %d to test on; both need "+
			"at least 1",
			share, n, n-tests, tests)
	}
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	rng := rand.New(source)
	for i := range tests {
		j := i + rng.IntN(n-i)
		rows[i], rows[j] = rows[j], rows[i]
	}
	test, train = rows[:tests:tests], rows[tests:]
	slices.Sort(test)
	slices.Sort(train)
	return train, test, nil
}

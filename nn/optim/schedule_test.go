package optim_test

import (
	"math"
	"testing"

	"github.com/gradwire/gradwire/nn/optim"
)

func TestSchedulesFollowTheirFormulas(t *testing.T) {
	for _, c := range []struct {
		name     string
		schedule optim.Schedule
		step     int
		want     float64
	}{
		{"constant", optim.Constant(0.3), 1000, 0.3},
		{"step, first", optim.Step{First: 1, Factor: 0.5, Every: 10}, 9, 1},
		{"step, second", optim.Step{First: 1, Factor: 0.5, Every: 10}, 10, 0.5},
		{"step, third", optim.Step{First: 1, Factor: 0.5, Every: 10}, 29, 0.25},
		{"exponential, first", optim.Exponential{First: 2, Decay: 0.9}, 0, 2},
		{"exponential, fourth", optim.Exponential{First: 2, Decay: 0.9}, 3, 2 * 0.9 * 0.9 * 0.9},
		{"inverse, first", optim.Inverse{First: 0.4, Half: 20}, 0, 0.4},
		{"inverse, half", optim.Inverse{First: 0.4, Half: 20}, 20, 0.2},
		{"inverse, quarter", optim.Inverse{First: 0.4, Half: 20}, 60, 0.1},
		{"cosine, first", optim.Cosine{First: 1, Last: 0.2, Steps: 8}, 0, 1},
		{"cosine, quarter", optim.Cosine{First: 1, Last: 0.2, Steps: 8}, 2, 0.2 + 0.4*(1+math.Sqrt2/2)},
		{"cosine, middle", optim.Cosine{First: 1, Last: 0.2, Steps: 8}, 4, 0.6},
		{"cosine, end", optim.Cosine{First: 1, Last: 0.2, Steps: 8}, 8, 0.2},
		{"cosine, after", optim.Cosine{First: 1, Last: 0.2, Steps: 8}, 80, 0.2},
		{"warm-up, first", optim.Warmup{Steps: 4, Then: optim.Constant(2)}, 0, 0.5},
		{"warm-up, last", optim.Warmup{Steps: 4, Then: optim.Constant(2)}, 3, 2},
		{"warm-up, after", optim.Warmup{Steps: 4, Then: optim.Inverse{First: 2, Half: 8}}, 8, 1},
	} {
		if got := c.schedule.Rate(c.step); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: rate %v at step %d, want %v", c.name, got, c.step, c.want)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	good := optim.Constant(0.1)
	for want, v := range map[string]interface{ Validate() error }{
		"-1 is no rate; accepted is a finite number of 0 or more, such as 0.1":       optim.Constant(-1),
		"First is NaN: must be 0 or more":                                            optim.Step{First: math.NaN(), Factor: 1, Every: 1},
		"Factor is 0: must be more than 0":                                           optim.Step{First: 1, Every: 1},
		"Every is 0: must be 1 or more":                                              optim.Step{First: 1, Factor: 0.5},
		"First is -2: must be 0 or more":                                             optim.Exponential{First: -2, Decay: 1},
		"Decay is -0.5: must be more than 0":                                         optim.Exponential{First: 1, Decay: -0.5},
		"Half is 0: must be 1 or more":                                               optim.Inverse{First: 1},
		"Last is +Inf: must be 0 or more":                                            optim.Cosine{First: 1, Last: math.Inf(1), Steps: 1},
		"Steps is 0: must be 1 or more":                                              optim.Cosine{First: 1},
		"Steps is -3: must be 1 or more":                                             optim.Warmup{Steps: -3, Then: good},
		"Then is <nil>: must be a schedule":                                          optim.Warmup{Steps: 3},
		"Then.Half is -1: must be 1 or more":                                         optim.Warmup{Steps: 3, Then: optim.Inverse{Half: -1}},
		"Rate is <nil>: must be a schedule":                                          optim.SGD{},
		"Rate.Then is <nil>: must be a schedule":                                     optim.SGD{Rate: optim.Warmup{Steps: 1}},
		"Rate: -3 is no rate; accepted is a finite number of 0 or more, such as 0.1": optim.SGD{Rate: optim.Constant(-3)},
		"WeightDecay is -1: must be 0 or more":                                       optim.SGD{Rate: good, WeightDecay: -1},
		"Momentum is 1: must be 0 or more, below 1":                                  optim.Momentum{Rate: good, Momentum: 1},
		"Beta1 is NaN: must be 0 or more, below 1":                                   optim.Adam{Rate: good, Beta1: math.NaN()},
		"Beta2 is 1.5: must be 0 or more, below 1":                                   optim.Adam{Rate: good, Beta2: 1.5},
		"Epsilon is 0: must be more than 0":                                          optim.Adam{Rate: good},
	} {
		if err := v.Validate(); err == nil || err.Error() != want {
			t.Errorf("%#v: error %v, want %s", v, err, want)
		}
	}
	for _, v := range []interface{ Validate() error }{
		good, optim.Step{First: 1, Factor: 0.1, Every: 5}, optim.Exponential{First: 1, Decay: 0.99},
		optim.Inverse{First: 1, Half: 9},
		optim.Cosine{First: 1, Steps: 9}, optim.Warmup{Steps: 1, Then: good}, optim.SGD{Rate: good},
		optim.Momentum{Rate: good, Momentum: 0.9}, optim.NewAdam(good),
	} {
		if err := v.Validate(); err != nil {
			t.Errorf("%#v: %v", v, err)
		}
	}
}

// At its horizon a schedule has its final rate, or its first lower one.
func TestRateAtTheHorizonOfASchedule(t *testing.T) {
	cosine := optim.Cosine{First: 1, Last: 0.2, Steps: 8}
	for want, c := range map[int]struct {
		schedule optim.Schedule
		rate     float64
	}{
		8:  {cosine, 0.2},
		5:  {optim.Step{First: 1, Factor: 0.5, Every: 5}, 0.5},
		4:  {optim.Warmup{Steps: 4, Then: optim.Constant(2)}, 2},
		10: {optim.Warmup{Steps: 4, Then: optim.Step{First: 1, Factor: 0.5, Every: 10}}, 0.5},
		2:  {optim.Clocked{Of: cosine, PerStep: 4}, 0.2},
		0:  {optim.Inverse{First: 0.3, Half: 9}, 0.3},
	} {
		if got := optim.Horizon(c.schedule); got != want || c.schedule.Rate(got) != c.rate {
			t.Errorf("%+v: horizon %d, want %d; then the rate is %v, want %v", c.schedule, got, want,
				c.schedule.Rate(got), c.rate)
		}
	}
}

package optim

import (
	"fmt"
	"math"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Schedule gives the learning rate of each step. Steps count from 0. A schedule is a pure function,
// safe for concurrent use; every schedule of this package has a Validate as well, which the
// methods' Validate calls.
type Schedule interface {
	Rate(step int) float64
}

// validator is implemented by schedules, also a program's own, that check their fields.
type validator interface{ Validate() error }

// check returns what is wrong with the fields of v, or with the schedule s that its field name
// holds.
func check(v any, name string, s Schedule) error {
	if err := field.Check(v); err != nil {
		return err
	}
	if s == nil {
		return field.Errorf(v, name, "a schedule")
	}
	if own, ok := s.(validator); ok {
		return field.Within(v, name, own.Validate())
	}
	return nil
}

// Constant is one rate for all steps.
type Constant float64

// Rate implements [Schedule].
func (s Constant) Rate(int) float64 { return float64(s) }

// Validate refuses a rate that is negative or not finite.
func (s Constant) Validate() error {
	if !(s >= 0) || math.IsInf(float64(s), 0) {
		return fmt.Errorf("%v is no rate; accepted is a finite number of 0 or more, such as 0.1", float64(s))
	}
	return nil
}

// Step multiplies the rate by Factor after every Every steps: First·Factor^⌊step/Every⌋. PyTorch
// calls it StepLR.
type Step struct {
	First  float64 `plan:"first,required" range:"0.." doc:"the rate of the first steps"`
	Factor float64 `plan:"factor" range:">0" doc:"by which the rate is multiplied"` // usually below 1
	Every  int     `plan:"every,required" range:"1.." counts:"schedule=steps|epochs|samples" doc:"steps between two changes; or 2 epochs, or 4000 samples"`
}

// Rate implements [Schedule].
func (s Step) Rate(step int) float64 { return s.First * math.Pow(s.Factor, float64(step/s.Every)) }

// Validate names the first field that makes no sense.
func (s Step) Validate() error { return field.Check(s) }

// Exponential multiplies the rate by Decay in every Every steps, a little in each:
// First·Decay^(step/Every). With Every 1, PyTorch calls it ExponentialLR.
type Exponential struct {
	First float64 `plan:"first,required" range:"0.." doc:"the rate of the first step"`
	// Decay is usually a little below 1.
	Decay float64 `plan:"decay,required" range:">0" doc:"factor of the rate from one step to the next, or over every steps"`
	// Every is 1 where it is 0.
	Every int `plan:"every,omitzero" range:"1.." counts:"schedule=steps|epochs|samples" doc:"steps over which the rate is multiplied by decay; or 2 epochs, or 4000 samples; default: 1"`
}

// Rate implements [Schedule].
func (s Exponential) Rate(step int) float64 {
	return s.First * math.Pow(s.Decay, float64(step)/float64(max(s.Every, 1)))
}

// Validate names the first field that makes no sense.
func (s Exponential) Validate() error { return field.Check(s) }

// Inverse lets the rate fall with the inverse of time: First/(1+step/Half). The sum of the rates
// diverges and the sum of their squares converges, the condition of Robbins and Monro, "A
// stochastic approximation method", 1951.
type Inverse struct {
	First float64 `plan:"first,required" range:"0.." doc:"the rate of the first step"`
	Half  int     `plan:"half,required" range:"1.." counts:"schedule=steps|epochs|samples" doc:"the step at which half the first rate is left; or 2 epochs, or 4000 samples"`
}

// Rate implements [Schedule].
func (s Inverse) Rate(step int) float64 { return s.First / (1 + float64(step)/float64(s.Half)) }

// Validate names the first field that makes no sense.
func (s Inverse) Validate() error { return field.Check(s) }

// Cosine lets the rate fall from First to Last along half a cosine, and stays at Last from step
// Steps on: Last + (First−Last)·(1+cos(π·step/Steps))/2. Loshchilov and Hutter, "SGDR: stochastic
// gradient descent with warm restarts", ICLR 2017, equation 5, without restarts; PyTorch calls it
// CosineAnnealingLR.
type Cosine struct {
	First float64 `plan:"first,required" range:"0.." doc:"the rate of the first step"`
	Last  float64 `plan:"last" range:"0.." doc:"the rate from the last step on"`
	Steps int     `plan:"steps,required" range:"1.." counts:"schedule=steps|epochs|samples" doc:"from the first rate to the last; or 2 epochs, or 4000 samples"`
}

// Rate implements [Schedule].
func (s Cosine) Rate(step int) float64 {
	if step >= s.Steps {
		return s.Last
	}
	return s.Last + (s.First-s.Last)*(1+math.Cos(math.Pi*float64(step)/float64(s.Steps)))/2
}

// Validate names the first field that makes no sense.
func (s Cosine) Validate() error { return field.Check(s) }

// Warmup raises the rate linearly to Then's: step s < Steps has (s+1)/Steps of Then's rate at s, so
// the first step already moves and step Steps−1 has the full rate. Then counts from step 0 too.
// Goyal et al., "Accurate, large minibatch SGD", 2017, section 2.2.
type Warmup struct {
	Steps int      `plan:"steps,required" range:"1.." counts:"schedule=steps|epochs|samples" doc:"until the rate reaches what follows; or 2 epochs, or 4000 samples"`
	Then  Schedule `key:"then"`
}

// Rate implements [Schedule].
func (s Warmup) Rate(step int) float64 {
	rate := s.Then.Rate(step)
	if step < s.Steps {
		return rate * float64(step+1) / float64(s.Steps)
	}
	return rate
}

// Validate names the first field that makes no sense.
func (s Warmup) Validate() error { return check(s, "Then", s.Then) }

// Negligible is a learning rate at which a step changes no parameter: with a gradient of 1, the step
// is smaller than the gap between float32 numbers around 1e-4.
const Negligible = 1e-12

// Horizon returns the number of steps after which a warm-up or a cosine ends, or a step schedule
// lowers the rate for the first time. It is 0 for schedules without an end.
func Horizon(s Schedule) int {
	switch s := s.(type) {
	case Step:
		return s.Every
	case Cosine:
		return s.Steps
	case Warmup:
		return max(s.Steps, Horizon(s.Then))
	case Clocked:
		if s.PerStep > 0 {
			return int(min(math.Ceil(float64(Horizon(s.Of))/s.PerStep), math.MaxInt32))
		}
	}
	return 0
}

var (
	_ Schedule = Constant(0)
	_ Schedule = Step{}
	_ Schedule = Exponential{}
	_ Schedule = Inverse{}
	_ Schedule = Cosine{}
	_ Schedule = Warmup{}
)

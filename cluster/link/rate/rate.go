// Package rate describes how many bytes a second can pass a link, an uplink or a downlink: always
// as many, or a process, such as a random walk, a trace, or a mobile line of which only quantiles
// are known.
//
// A process is a function of time and of its random stream alone: what passes, and when somebody
// asks, changes nothing.
package rate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Never is later than everything.
const Never = time.Duration(math.MaxInt64)

// MaxPieces bounds the stretches of constant rate that one message is followed through. One that
// takes more of them never passes.
const MaxPieces = 1 << 24

// Rate describes a rate. A description is plain data, never changed by its use, and may be shared
// by any number of links.
type Rate interface {
	// Validate reports a field that is not accepted, as a *field.Error.
	Validate() error
	// Start returns the process of one link, from the beginning of the run.
	Start(Draws) Process
	// Mean is what is to be expected over a long time, in bytes a second; 0 is no bound.
	Mean() float64
}

// Draws is the random stream of one link: numbered places, from each of which a process draws a few
// numbers before the next call. A place always gives the same numbers, so a restored run starts the
// process anew.
type Draws interface {
	// At goes to a place.
	At(place uint64) *rand.Rand
}

// Process is a rate at work on one link. Its two functions are inverse, and each must be asked in
// an order in which instants do not decrease.
type Process interface {
	// Carried returns how many bytes could have passed before an instant, since the run began.
	Carried(at time.Duration) float64
	// Passed returns the first instant at which that many could have passed, or Never.
	Passed(bytes float64) time.Duration
	// Rate returns what passes at an instant, in bytes a second, and until when, or Never. What
	// passes by the packet flows evenly through the millisecond before each.
	Rate(at time.Duration) (bytes float64, until time.Duration)
}

// Constant is a rate that is always the same, in bytes a second; 0 is no bound. A nil Rate is like
// Constant(0).
type Constant float64

// Validate accepts what is neither negative nor infinite.
func (c Constant) Validate() error {
	if !(c >= 0) || math.IsInf(float64(c), 0) {
		return fmt.Errorf("%g is no rate in bytes a second; 0 is no bound", float64(c))
	}
	return nil
}

// Start returns a process of that rate; one without bound where it is 0.
func (c Constant) Start(Draws) Process { return steady(c) }

// Mean is the rate.
func (c Constant) Mean() float64 { return float64(c) }

type steady float64

func (s steady) Carried(at time.Duration) float64 { return bytes(float64(s), at) }

func (s steady) Passed(b float64) time.Duration {
	if s == 0 {
		return 0
	}
	return after(0, b, float64(s))
}

func (s steady) Rate(time.Duration) (bytes float64, until time.Duration) { return float64(s), Never }

// bytes is what passes in a time.
func bytes(rate float64, d time.Duration) float64 { return float64(rate*float64(d)) / 1e9 }

// after is the instant at which bytes have passed that begin at another one.
func after(from time.Duration, b, rate float64) time.Duration {
	ns := math.Ceil(float64(b*1e9) / rate)
	if !(ns < float64(Never-from)) {
		return Never
	}
	return from + time.Duration(ns)
}

// piece is a stretch of constant rate.
type piece struct {
	from, until time.Duration
	rate        float64
}

// follow is a process that makes its pieces one after the other.
type follow struct {
	piece
	before float64 // bytes that could have passed before the piece
	pieces pieces
}

// pieces makes one piece after the other.
type pieces interface {
	next(from time.Duration) piece
}

func newFollow(p pieces) *follow { return &follow{piece: p.next(0), pieces: p} }

func (f *follow) advance() {
	f.before += bytes(f.rate, f.until-f.from)
	f.piece = f.pieces.next(f.until)
}

// Carried follows the pieces up to an instant.
func (f *follow) Carried(at time.Duration) float64 {
	for at >= f.until {
		f.advance()
	}
	return f.before + bytes(f.rate, max(at-f.from, 0))
}

func (f *follow) Rate(at time.Duration) (bytes float64, until time.Duration) {
	for at >= f.until {
		f.advance()
	}
	return f.rate, f.until
}

// Passed follows the pieces until the bytes have passed.
func (f *follow) Passed(b float64) time.Duration {
	for range MaxPieces {
		if f.until == Never && f.rate == 0 {
			return Never
		}
		if b <= f.before {
			return f.from
		}
		if f.rate > 0 {
			if at := after(f.from, b-f.before, f.rate); at <= f.until {
				return at
			}
		}
		f.advance()
	}
	return Never
}

// RandomWalk is a rate that is uniform at first and shifts after every Every by a uniform amount in
// [−Step, +Step], then moves to the nearest value within [Min, Max].
type RandomWalk struct {
	// FirstMin and FirstMax: Min ≤ FirstMin ≤ FirstMax ≤ Max.
	FirstMin, FirstMax float64 `key:"first"`
	// Step is the greatest shift.
	Step float64 `plan:"step,required" unit:"throughput" doc:"the most by which the rate changes at once"`
	// Every is the time between two shifts.
	Every time.Duration `plan:"every" range:"1ms..8760h" doc:"how long the rate stays as it is"`
	// Min is the least rate. It may be 0: then nothing passes.
	Min float64 `plan:"min,required" unit:"throughput" doc:"the lowest; the walk goes no lower"`
	// Max is at least Min and above 0.
	Max float64 `plan:"max,required" unit:"throughput" doc:"the highest; the walk goes no higher"`
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (w RandomWalk) Validate() error {
	if err := field.Check(w); err != nil {
		return err
	}
	switch {
	case !(w.Step > 0) || math.IsInf(w.Step, 0):
		return field.Errorf(w, "Step", "a rate above 0")
	case !(w.Max >= w.Min && w.Max > 0) || math.IsInf(w.Max, 0):
		return field.Errorf(w, "Max", "a rate above 0, no less than min")
	case !(w.FirstMin >= w.Min && w.FirstMax >= w.FirstMin && w.FirstMax <= w.Max):
		return field.Errorf(w, "FirstMin", "a range within min and max")
	}
	return nil
}

// Mean is the middle of the bounds, to which the walk tends wherever it begins.
func (w RandomWalk) Mean() float64 { return (w.Min + w.Max) / 2 }

// Start returns a process that draws one number for each Every.
func (w RandomWalk) Start(draws Draws) Process {
	return newFollow(&walker{RandomWalk: w, draws: draws})
}

// walker is a RandomWalk at work.
type walker struct {
	RandomWalk
	draws Draws
	count uint64
	value float64
}

func (w *walker) next(from time.Duration) piece {
	u := w.draws.At(w.count).Float64()
	if w.count == 0 {
		w.value = w.FirstMin + float64((w.FirstMax-w.FirstMin)*u)
	} else {
		w.value = min(max(w.value+float64(w.Step*(float64(2*u)-1)), w.Min), w.Max)
	}
	w.count++
	return piece{from, from + w.Every, w.value}
}

// Quantiles is a rate of which little more is known than how often it is how high: in windows of
// a second it is drawn, each independently, from a distribution whose mean and quantiles are those
// given. Nothing passes during one silence in every Length, which begins at an instant that is
// drawn; this is counted among the quantiles.
//
// Between 0, P5, P50 and P95 the quantile function is a parabola or a line, beyond P95 it rises to
// 1.25 × P95: the parabola's curvature is what makes the mean right.
type Quantiles struct {
	Average float64       `plan:"mean,required" unit:"throughput" doc:"the mean"`
	P5      float64       `plan:"p5" unit:"throughput" doc:"the rate that it is below in 5 % of the time"`
	P50     float64       `plan:"p50,required" unit:"throughput" doc:"the median"`
	P95     float64       `plan:"p95,required" unit:"throughput" doc:"the rate that it is below in 95 % of the time"`
	Silence time.Duration `plan:"silence" range:"0s..8760h" doc:"how long nothing passes, once in every length"`
	Length  time.Duration `plan:"length" range:"1s..8760h" doc:"the time in which there is one silence"`
}

// Window is how long a rate of Quantiles stays as it is.
const Window = time.Second

const (
	low, middle, high = 0.05, 0.5, 0.95
	overshoot         = 1.25
)

// Validate reports the first field that is not accepted, as a *field.Error.
func (q Quantiles) Validate() error {
	if err := field.Check(q); err != nil {
		return err
	}
	switch {
	case !(q.P5 >= 0) || !(q.P50 >= q.P5):
		return field.Errorf(q, "P50", "no less than p5")
	case !(q.P95 >= q.P50 && q.P95 > 0) || math.IsInf(q.P95, 0):
		return field.Errorf(q, "P95", "above 0, no less than p50")
	case q.Silence >= q.Length/2:
		return field.Errorf(q, "Silence", "less than half of length (%v)", q.Length)
	case q.P5 > 0 && q.silent() >= low:
		return field.Errorf(q, "Silence", "less than 5%% of length (%v), since p5 is above 0", q.Length)
	}
	if c := q.curve(); math.IsNaN(c) || math.Abs(c) > 1 {
		least, most := q.mean(1), q.mean(-1)
		return field.Errorf(q, "Average", "for these quantiles %.6g to %.6g bytes a second", least, most)
	}
	return nil
}

// Mean is the mean.
func (q Quantiles) Mean() float64 { return q.Average }

// silent is the share of the time in which nothing passes.
func (q Quantiles) silent() float64 { return float64(q.Silence) / float64(q.Length) }

// mean is the mean of the distribution whose parabolas have a curvature: of a + (b−a)·(c·x² +
// (1−c)·x), 0 ≤ x ≤ 1, it is a + (b−a)·(1/2 − c/6).
func (q Quantiles) mean(curvature float64) float64 {
	silent, height := q.silent(), 0.5-curvature/6
	begin := max(low, silent)
	return max(low-silent, 0)*q.P5/2 + (middle-begin)*(q.P5+float64((q.P50-q.P5)*height)) +
		(high-middle)*(q.P50+float64((q.P95-q.P50)*height)) + (1-high)*q.P95*(1+overshoot)/2
}

// curve is the curvature for which the mean is right. It is linear in the mean.
func (q Quantiles) curve() float64 {
	flat, bent := q.mean(0), q.mean(1)
	if flat == bent {
		if math.Abs(flat-q.Average) <= 1e-9*flat {
			return 0
		}
		return math.NaN()
	}
	return (q.Average - flat) / (bent - flat)
}

// at is the rate at a quantile from silent() to 1.
func (q Quantiles) at(u, curvature float64) float64 {
	silent := q.silent()
	begin := max(low, silent)
	bent := func(from, to, x float64) float64 {
		return from + float64((to-from)*float64(x*(float64(curvature*x)+1-curvature)))
	}
	switch {
	case u < begin:
		return q.P5 * (u - silent) / (begin - silent)
	case u < middle:
		return bent(q.P5, q.P50, (u-begin)/(middle-begin))
	case u < high:
		return bent(q.P50, q.P95, (u-middle)/(high-middle))
	}
	return q.P95 * (1 + float64((overshoot-1)*(u-high)/(1-high)))
}

// Start returns a process that draws one number for each window and one for each silence.
func (q Quantiles) Start(draws Draws) Process {
	return newFollow(&windows{Quantiles: q, draws: draws, curvature: q.curve()})
}

// windows are Quantiles at work.
type windows struct {
	Quantiles
	draws     Draws
	curvature float64
	quiet     piece  // the silence that comes, or is
	count     uint64 // of silences
}

func (w *windows) next(from time.Duration) piece {
	for w.Silence > 0 && from >= w.quiet.until {
		place := time.Duration(float64(w.Length-w.Silence) * w.draws.At(2*w.count+1).Float64())
		begin := time.Duration(w.count)*w.Length + place
		w.quiet = piece{from: begin, until: begin + w.Silence}
		w.count++
	}
	if w.Silence > 0 && from >= w.quiet.from {
		return w.quiet
	}
	k := from / Window
	until := (k + 1) * Window
	if w.Silence > 0 {
		until = min(until, w.quiet.from)
	}
	silent := w.silent()
	u := silent + float64((1-silent)*w.draws.At(2*uint64(k)).Float64())
	return piece{from, until, w.at(u, w.curvature)}
}

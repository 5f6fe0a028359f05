package link_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

// varied are rates of each kind that is a process.
func varied() map[string]rate.Rate {
	points := []rate.Point{{At: 0, Rate: 1e5}, {At: ms, Rate: 0}, {At: 3 * ms, Rate: 4e6}, {At: 9 * ms, Rate: 1e3}}
	return map[string]rate.Rate{
		"random-walk": rate.RandomWalk{FirstMin: 1e5, FirstMax: 1e6, Step: 1e5, Every: ms, Min: 0, Max: 1e6},
		"trace":       rate.NewTrace(rate.Trace{Points: points, Repeat: true, Anywhere: true}),
		"mahimahi":    &rate.Opportunities{At: []uint32{0, 1, 1, 5, 9}, Anywhere: true},
		"mobile":      rate.Mobile()[5].Quantiles,
	}
}

// What a saturated edge has let through by any instant is what the file of its rate says, to a
// packet.
func TestASaturatedEdgeLetsThroughWhatItsTraceSays(t *testing.T) {
	var text strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	var stamps []uint32
	for at := uint32(0); at < 3000; at += uint32(random.IntN(3) * random.IntN(30)) {
		stamps = append(stamps, at)
		fmt.Fprintln(&text, at)
	}
	read, _, err := rate.ReadOpportunities(strings.NewReader(text.String()), "lte.down")
	if err != nil || !slices.Equal(read, stamps) {
		t.Fatalf("%d instants of %d, %v", len(read), len(stamps), err)
	}
	for _, size := range []int{100, 700, 1500, 4000} {
		e := pair(1, link.Config{Rate: &rate.Opportunities{At: read}})
		type passed struct {
			at    time.Duration
			bytes int
		}
		var all []passed
		for sum := 0; len(all) == 0 || all[len(all)-1].at < 3*time.Second; {
			sum += size
			all = append(all, passed{e.Send(0, size).Arrival, sum})
		}
		for now := uint32(1); now < stamps[len(stamps)-1]; now++ { // then it starts over
			said := 0
			for _, s := range stamps {
				if s <= now {
					said += rate.Packet
				}
			}
			i, _ := slices.BinarySearchFunc(all, time.Duration(now)*ms+1, func(p passed, at time.Duration) int {
				return int(p.at - at)
			})
			through := 0
			if i > 0 {
				through = all[i-1].bytes
			}
			if beyond := said - through; beyond < 0 || beyond >= max(size, rate.Packet) {
				t.Fatalf("messages of %d bytes: %d bytes by %d ms, the file says %d", size, through, now, said)
			}
		}
	}
}

// A dumb queue: microsecond by microsecond, the oldest message takes what the link carries.
func TestMessagesTakeARateThatIsAProcessOneAfterTheOther(t *testing.T) {
	carries := func(us int) float64 { // bytes in a microsecond
		switch at := us % 9000; {
		case at < 1000:
			return 0.1
		case at < 3000:
			return 0
		}
		return 4
	}
	e := pair(7, link.Config{Rate: rate.NewTrace(rate.Trace{Repeat: true,
		Points: []rate.Point{{At: 0, Rate: 1e5}, {At: ms, Rate: 0}, {At: 3 * ms, Rate: 4e6}, {At: 9 * ms, Rate: 1}}})})
	random := rand.New(rand.NewPCG(3, 4))
	sent, clock, left := 0, 0, 0.0
	for i := range 500 {
		sent += random.IntN(6000)
		size := random.IntN(30_000)
		arrival := e.Send(time.Duration(sent)*time.Microsecond, size).Arrival
		if sent > clock {
			clock, left = sent, carries(sent)
		}
		for rest := float64(size); ; clock, left = clock+1, carries(clock+1) {
			if rest <= left {
				left -= rest
				break
			}
			rest -= left
		}
		if off := arrival - time.Duration(clock)*time.Microsecond; off < -time.Nanosecond || off > time.Microsecond {
			t.Fatalf("message %d arrives at %v, want within %d us", i, arrival, clock)
		}
	}
}

func TestRatesThatAreProcessesDependOnTheirLinkAlone(t *testing.T) {
	for name, r := range varied() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrivals := func(before func(n *link.Network)) (all []time.Duration) {
				n := link.New(3, names(4))
				n.SetDefault(link.Config{Delay: link.Constant{Delay: ms}, Rate: r})
				n.SetUplink(0, r)
				n.SetDownlink(1, r)
				before(n)
				for i := range 50 {
					e := n.Edge(0, 1)
					at := e.Send(time.Duration(i)*20*ms, 700).Arrival
					all = append(all, at, e.Receive(at, 700))
				}
				return all
			}
			alone := arrivals(func(*link.Network) {})
			beside := arrivals(func(n *link.Network) {
				for i := range int32(3) {
					for range 20 {
						n.Edge(i+1, i).Send(0, 5000)
					}
				}
			})
			if !slices.Equal(alone, beside) {
				t.Errorf("messages of other links change arrivals: %v, %v", alone, beside)
			}
		})
	}
}

func TestAScheduledRateHoldsFromItsInstantOn(t *testing.T) {
	n := link.New(1, names(2))
	n.SetDefault(link.Config{Rate: rate.Constant(1e6)})
	e := n.Edge(0, 1)
	first := e.Send(0, 10_000).Arrival
	changed := rate.NewTrace(rate.Trace{Points: []rate.Point{{Rate: 1e5}, {At: 15 * ms, Rate: 1e6}}})
	n.SetDefault(link.Config{Rate: changed})
	if second := e.Send(0, 1000).Arrival; first != 10*ms || second != 15*ms+500*time.Microsecond {
		t.Errorf("arrivals %v, %v, want 10ms at the old rate and 15.5ms: 500 bytes at each of the new ones", first,
			second)
	}
}

func TestAMessageThatNeverPassesIsLost(t *testing.T) {
	silent := rate.NewTrace(rate.Trace{Points: []rate.Point{{Rate: 1e6}, {At: ms, Rate: 0}}})
	e := pair(1, link.Config{Rate: silent})
	if got := e.Send(0, 1000); got.Lost || got.Arrival != ms {
		t.Errorf("%+v", got)
	}
	if got := e.Send(0, 1); !got.Lost {
		t.Errorf("%+v", got)
	}
	if s := e.Stats(); s.Sent != 2 || s.Dropped != 1 || s.InFlight() != 1 {
		t.Errorf("%+v", s)
	}
}

// Whether a try fails depends on the message and the number of the try alone, not on what the rate
// draws in between.
func TestTriesFailAlikeUnderAnyRate(t *testing.T) {
	tries := func(r rate.Rate) (all []int) {
		n := link.New(4, names(2))
		n.SetDefault(link.Config{Rate: r, Loss: link.Loss{Probability: 0.6, Timeout: ms, Attempts: 100}})
		for i := range 500 {
			all = append(all, n.Edge(0, 1).Send(time.Duration(i)*time.Second, 1000).Tries)
		}
		return all
	}
	walk := rate.RandomWalk{FirstMin: 1e4, FirstMax: 1e5, Step: 1e4, Every: ms, Min: 1e4, Max: 1e5}
	if steady, walking := tries(rate.Constant(5e4)), tries(walk); !slices.Equal(steady, walking) {
		t.Errorf("tries %v at a constant rate, %v at one that walks", steady[:20], walking[:20])
	}
}

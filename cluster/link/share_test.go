package link_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

// fairly returns a network that shares its rates.
func fairly(nodes int) *link.Network {
	n := link.New(1, names(nodes))
	n.ShareFairly()
	return n
}

// settled is what became of all messages under way, by ticket.
func settled(t *testing.T, n *link.Network, until time.Duration) map[int32]link.Transit {
	t.Helper()
	all := map[int32]link.Transit{}
	for n.Due() <= until {
		now := n.Due()
		for got, ok := n.Settle(now); ok; got, ok = n.Settle(now) {
			if _, twice := all[got.Ticket]; twice {
				t.Fatalf("ticket %d is settled twice", got.Ticket)
			}
			all[got.Ticket] = got
		}
	}
	return all
}

func arrivals(all map[int32]link.Transit) (at []time.Duration) {
	for _, t := range all {
		at = append(at, t.Arrival)
	}
	slices.Sort(at)
	return at
}

func TestTwoMessagesOnALinkTakeTwiceAsLongAsOne(t *testing.T) {
	const size = 1_250_000 // a second at 10 Mbit/s
	n := fairly(2)
	n.SetDefault(link.Config{Rate: rate.Constant(1_250_000), Delay: link.Constant{Delay: 5 * ms}})
	for range 2 {
		if got := n.Edge(0, 1).Send(time.Second, size); got.Ticket == 0 {
			t.Fatalf("%+v, want a ticket", got)
		}
	}
	want := []time.Duration{3005 * ms, 3005 * ms}
	if got := arrivals(settled(t, n, link.Horizon)); !slices.Equal(got, want) {
		t.Errorf("arrivals %v, want %v", got, want)
	}
	s := n.Edge(0, 1).Stats()
	if s.Sent != 2 || s.InFlight() != 2 || s.DelayCount != 2 {
		t.Errorf("%+v", s)
	}
}

// Four senders of 10 Mbit/s each meet at a downlink of 20 Mbit/s. One of them has half as much to
// send, and a fifth, of 1 Mbit/s, is slowed down by nobody.
func TestSendersShareTheDownlinkOfTheirReceiver(t *testing.T) {
	const mbit = 125_000
	n := fairly(6)
	n.SetDefault(link.Config{Rate: rate.Constant(10 * mbit)})
	n.SetDownlink(0, rate.Constant(21*mbit))
	n.SetUplink(5, rate.Constant(mbit))
	sizes := map[int32]int{1: 10 * mbit, 2: 10 * mbit, 3: 10 * mbit, 4: 5 * mbit, 5: 2 * mbit}
	of := map[int32]int32{}
	for from := int32(1); from <= 5; from++ {
		of[n.Edge(from, 0).Send(0, sizes[from]).Ticket] = from
	}
	// 5 Mbit/s each until 1 s, when 4 is through; then 20/3 each for the 5 Mbit that are left.
	want := map[int32]time.Duration{4: time.Second, 5: 2 * time.Second}
	for from := int32(1); from <= 3; from++ {
		want[from] = 1750 * ms
	}
	for ticket, got := range settled(t, n, link.Horizon) {
		if d := got.Arrival - want[of[ticket]]; d < 0 || d > time.Nanosecond {
			t.Errorf("from %d: arrival %v, want %v", of[ticket], got.Arrival, want[of[ticket]])
		}
	}
	if n.Edge(1, 0).HasDownlink() {
		t.Error("there is a queue beside what is shared")
	}
}

// A message that finds its edge unused is alone: it takes what the narrowest of its three rates
// takes. With fifo it would take the three one after the other.
func TestMessageAloneTakesItsNarrowestRate(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := fairly(2)
		rates := [3]float64{}
		for i := range rates {
			rates[i] = math.Exp(5 + 15*random.Float64())
		}
		n.SetUplink(0, rate.Constant(rates[0]))
		n.SetDefault(link.Config{Rate: rate.Constant(rates[1]), Overhead: 40})
		n.SetDownlink(1, rate.Constant(rates[2]))
		at, size := time.Duration(random.IntN(1e9)), random.IntN(1e6)
		n.Edge(0, 1).Send(at, size)
		want := at.Seconds() + float64(size+40)/slices.Min(rates[:])
		got := arrivals(settled(t, n, link.Horizon))
		if len(got) != 1 || math.Abs(got[0].Seconds()-want) > 1e-9*want+1e-9 {
			t.Errorf("arrivals %v, want %.9f s", got, want)
		}
	}
}

// Many messages over random networks: what arrives has gone through in the order of sending unless
// it may overtake, bytes are conserved, and no uplink has carried more than its rate.
func TestMessagesThatShareKeepTheirOrderAndTheirBytes(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 9))
		reorder := seed%2 == 1
		n := fairly(4)
		n.SetDefault(link.Config{Rate: rate.Constant(2e5), Reorder: reorder, Delay: link.Uniform{Max: 50 * ms},
			Loss: link.Loss{Probability: 0.2, Drop: seed%4 >= 2, Timeout: 20 * ms}})
		for i := range int32(4) {
			n.SetUplink(i, rate.Constant(1e5*(1+random.Float64())))
		}
		type sent struct {
			edge *link.Edge
			size int
		}
		of, order := map[int32]sent{}, map[*link.Edge][]int32{}
		last, overtaken, lost := map[*link.Edge]time.Duration{}, 0, 0
		take := func(until time.Duration) {
			for n.Due() <= until {
				got, ok := n.Settle(n.Due())
				if !ok {
					continue
				}
				s := of[got.Ticket]
				delete(of, got.Ticket)
				if !reorder && order[s.edge][0] != got.Ticket {
					t.Fatalf("seed %d: ticket %d is settled before %d", seed, got.Ticket, order[s.edge][0])
				}
				order[s.edge] = order[s.edge][1:]
				switch {
				case got.Lost:
					lost++
					continue
				case got.Arrival < last[s.edge]:
					overtaken++
				}
				last[s.edge] = max(last[s.edge], got.Arrival)
				s.edge.Deliver(s.size, 0)
			}
		}
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(random.IntN(int(20 * ms)))
			take(now)
			from := int32(random.IntN(4))
			e, size := n.Edge(from, (from+1+int32(random.IntN(3)))%4), random.IntN(4000)
			ticket := e.Send(now, size).Ticket
			of[ticket], order[e] = sent{e, size}, append(order[e], ticket)
		}
		take(link.Horizon)
		if (overtaken > 0) != reorder || lost == 0 && seed%4 >= 2 || len(of) > 0 {
			t.Errorf("seed %d: %d overtaken, %d lost, %d under way", seed, overtaken, lost, len(of))
		}
		for _, c := range n.Used() {
			if c.InFlight() != 0 || c.InFlightBytes() != 0 {
				t.Errorf("seed %d: %+v", seed, c)
			}
		}
	}
}

func TestSharedRatesFollowTheirProcess(t *testing.T) {
	points, p := []rate.Point{{At: 0, Rate: 1000}, {At: time.Second, Rate: 0}, {At: 3 * time.Second, Rate: 500}}, 5.0
	n := fairly(2)
	n.SetUplink(0, rate.NewTrace(rate.Trace{Points: points}))
	n.Edge(0, 1).Send(0, 1000)
	n.Edge(0, 1).Send(0, 1000)
	// 1,000 bytes by 1 s, 500 each, and 1,000 more from 3 s on.
	want := time.Duration(p * float64(time.Second))
	if got := arrivals(settled(t, n, link.Horizon)); !slices.Equal(got, []time.Duration{want, want}) {
		t.Errorf("arrivals %v, want %v", got, want)
	}
}

func TestAChangeOfRateReachesWhatIsUnderWay(t *testing.T) {
	n := fairly(2)
	n.SetDefault(link.Config{Rate: rate.Constant(1000)})
	n.Edge(0, 1).Send(0, 3000)
	if early := settled(t, n, time.Second); len(early) > 0 {
		t.Fatalf("%v", early)
	}
	n.Set(0, 1, link.Config{Rate: rate.Constant(4000)})
	if due := n.Due(); due > time.Second {
		t.Errorf("the change is due at %v", due)
	}
	if _, ok := n.Settle(time.Second); ok {
		t.Error("something is settled")
	}
	all := settled(t, n, link.Horizon)
	if got := arrivals(all); !slices.Equal(got, []time.Duration{1500 * ms}) {
		t.Errorf("arrivals %v, want 1.5s", got)
	}
	n.Set(0, 1, link.Config{})
	n.Edge(0, 1).Send(2*time.Second, 1e9)
	if got := arrivals(settled(t, n, link.Horizon)); !slices.Equal(got, []time.Duration{2 * time.Second}) {
		t.Errorf("without a bound arrivals at %v", got)
	}
}

// An outage from 1 s to 2 s, and one without an end: a message of a second that is through in an
// outage takes its second again from its end.
func TestOutagesAndSharedRates(t *testing.T) {
	outages := []link.Outage{{From: time.Second, To: 2 * time.Second}, {From: 5 * time.Second, To: link.Forever}}
	for _, drop := range []bool{false, true} {
		n := fairly(2)
		n.SetDefault(link.Config{Rate: rate.Constant(1000), Outages: outages, Loss: link.Loss{Drop: drop, Timeout: ms}})
		n.Edge(0, 1).Send(500*ms, 1000)
		first := settled(t, n, link.Horizon)
		if got := arrivals(first); drop != (got[0] == link.Forever) || !drop && got[0] != 3*time.Second {
			t.Errorf("drop %v: arrivals %v", drop, got)
		}
		n.Edge(0, 1).Send(4500*ms, 1000)
		if got := arrivals(settled(t, n, link.Horizon)); !slices.Equal(got, []time.Duration{link.Forever}) {
			t.Errorf("drop %v: arrivals %v, want none", drop, got)
		}
	}
}

// Edges that are forgotten and made again, beyond the pairs that are counted, change nothing.
func TestForgottenEdgesShareAlike(t *testing.T) {
	history := func(most int) (all []time.Duration) {
		n := fairly(40)
		n.CountPairs(most)
		n.SetDefault(link.Config{Rate: rate.Constant(1e5), Delay: link.Constant{Delay: 5 * ms}})
		n.SetDownlink(3, rate.Constant(1e5))
		random := rand.New(rand.NewPCG(5, 6))
		of := map[int32]*link.Edge{}
		for i := range 4000 {
			now := time.Duration(i) * ms
			for n.Due() <= now {
				if got, ok := n.Settle(n.Due()); ok {
					of[got.Ticket].Deliver(100, 0)
					all = append(all, got.Arrival)
				}
			}
			from := int32(random.IntN(40))
			e := n.Edge(from, (from+1+int32(random.IntN(39)))%40)
			of[e.Send(now, 100).Ticket] = e
		}
		return all
	}
	want := history(1 << 16)
	if got := history(10); !slices.Equal(got, want) {
		t.Errorf("%d messages arrive at other instants, or not as many as %d", len(got), len(want))
	}
}

// The golden checksum holds for every processor, as those of functions and of links do.
func TestSharedRatesHaveTheSameBitsOnEveryProcessor(t *testing.T) {
	const golden = 0x32333cff7d265b4e
	n := fairly(5)
	n.SetDefault(link.Config{Rate: rate.Constant(123_457), Delay: link.Uniform{Max: 50 * ms},
		Loss: link.Loss{Probability: 0.1, Timeout: 20 * ms}})
	n.SetUplink(0, rate.RandomWalk{FirstMin: 1e5, FirstMax: 2e5, Step: 1e4, Every: 10 * ms, Min: 1e4, Max: 3e5})
	n.SetUplink(1, rate.Mobile()[0].Quantiles)
	n.SetDownlink(2, &rate.Opportunities{At: []uint32{0, 3, 3, 3, 10, 40}})
	hash := fnv.New64a()
	take := func(until time.Duration) {
		for n.Due() <= until {
			if got, ok := n.Settle(n.Due()); ok {
				// A hash returns no error.
				_ = binary.Write(hash, binary.LittleEndian, []int64{int64(got.Ticket), int64(got.Arrival)})
			}
		}
	}
	for i := range 4000 {
		now := time.Duration(i) * 3 * ms
		take(now)
		n.Edge(int32(i%5), int32((i*i+i/5+1)%5)).Send(now, 100+i%700)
	}
	take(link.Horizon)
	if got := hash.Sum64(); got != golden {
		t.Errorf("checksum %#x, want %#x", got, uint64(golden))
	}
}

func BenchmarkShare(b *testing.B) {
	for _, fair := range []bool{false, true} {
		for _, crowd := range []int{1, 16} {
			name := map[bool]string{false: "fifo", true: "fair"}[fair]
			b.Run(fmt.Sprintf("%s/%d", name, crowd), func(b *testing.B) {
				n := link.New(1, names(17))
				if fair {
					n.ShareFairly()
				}
				n.SetDownlink(0, rate.Constant(1e9))
				b.ReportAllocs()
				now := time.Duration(0)
				for b.Loop() {
					now += time.Duration(100*crowd) + 100
					for i := range crowd {
						e := n.Edge(int32(i+1), 0)
						t := e.Send(now, 100)
						if t.Ticket == 0 {
							e.Receive(t.Arrival, 100)
							e.Deliver(100, 0)
						}
					}
					for fair && n.Due() < link.Forever {
						if _, ok := n.Settle(n.Due()); ok {
							n.Edge(1, 0).Deliver(100, 0)
						}
					}
				}
			})
		}
	}
}

package link_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"pgregory.net/rapid"
)

// scripted is a delay model of a user's own: the k-th message takes the k-th value, round and
// round.
type scripted []time.Duration

type script struct {
	scripted
	next int
}

func (scripted) Validate() error { return nil }

func (s scripted) Start(_ *rand.Rand, previous link.Process) link.Process {
	if p, ok := previous.(*script); ok {
		return &script{scripted: s, next: p.next}
	}
	return &script{scripted: s}
}

func (s *script) Next(time.Duration) time.Duration {
	s.next++
	return s.scripted[(s.next-1)%len(s.scripted)]
}

func (s *script) Present(time.Duration) time.Duration { return s.scripted[s.next%len(s.scripted)] }

// A second implementation of uplink → edge → downlink, as dumb as can be: whole numbers, every
// queue the list of all that has left it, every look a scan from the beginning.
type (
	oracle struct {
		perByte map[place]time.Duration // nanoseconds a byte
		left    map[place][]time.Duration
		config  link.Config
		sent    map[place]int
		arrived map[place][]time.Duration
	}
	place struct {
		kind     string
		from, to int32
	}
)

func (o *oracle) pass(q place, at time.Duration, size int) time.Duration {
	for _, t := range o.left[q] {
		at = max(at, t)
	}
	at += o.perByte[q] * time.Duration(size)
	o.left[q] = append(o.left[q], at)
	return at
}

func (o *oracle) outage(at time.Duration) (time.Duration, bool) {
	for _, x := range o.config.Outages {
		if x.From <= at && at < x.To {
			return x.To, true
		}
	}
	return 0, false
}

// send is told how often the random stream let a try fail.
func (o *oracle) send(t *rapid.T, src, dst int32, now time.Duration, size int, got link.Transit) link.Transit {
	edge := place{"edge", src, dst}
	delay := got.Delay // of a function of time, which arrive looks up
	if delays, ok := o.config.Delay.(scripted); ok {
		delay = delays[o.sent[edge]%len(delays)]
		o.sent[edge]++
	}
	gone := link.Transit{Arrival: link.Forever, Delay: delay, Tries: got.Tries, Lost: true}

	sent := o.pass(place{"up", src, 0}, now, size)
	departure := o.pass(edge, sent, size)
	if o.config.Loss.Drop {
		if _, down := o.outage(departure); down || got.Lost {
			if !down && o.config.Loss.Probability == 0 {
				t.Fatalf("lost for no reason")
			}
			gone.Tries, gone.Departure = 1, departure
			return gone
		}
		return o.arrive(edge, departure, delay, 1)
	}
	for {
		end, down := o.outage(departure)
		if !down {
			break
		}
		if end == link.Forever {
			gone.Tries, gone.Departure = 1, departure
			return gone
		}
		departure = o.pass(edge, end, size)
	}
	for failed := 1; failed < got.Tries || got.Lost; failed++ {
		if failed == o.config.Loss.Attempts {
			gone.Tries, gone.Departure = failed, departure
			return gone
		}
		work := o.perByte[edge] * time.Duration(size)
		o.pass(edge, 0, size)
		departure += o.config.Loss.Timeout + work
		for end, down := o.outage(departure); down; end, down = o.outage(departure) {
			if end == link.Forever {
				gone.Tries, gone.Departure = failed, departure
				return gone
			}
			departure = end + work
		}
	}
	return o.arrive(edge, departure, delay, got.Tries)
}

func (o *oracle) arrive(edge place, departure, delay time.Duration, tries int) link.Transit {
	if s, ok := o.config.Delay.(sea); ok {
		delay = s.Next(departure)
	}
	at := departure + delay
	if !o.config.Reorder {
		for _, t := range o.arrived[edge] {
			at = max(at, t)
		}
	}
	o.arrived[edge] = append(o.arrived[edge], at)
	return link.Transit{Arrival: at, Departure: departure, Delay: delay, Tries: tries}
}

func drawConfig(t *rapid.T) link.Config {
	rates := []rate.Rate{rate.Constant(0), rate.Constant(1e9), rate.Constant(5e8), rate.Constant(1e7)}
	c := link.Config{
		Rate:    rapid.SampledFrom(rates).Draw(t, "rate"),
		Reorder: rapid.Bool().Draw(t, "reorder"),
	}
	c.Loss.Probability = rapid.SampledFrom([]float64{0, 0.3, 0.7}).Draw(t, "probability")
	c.Loss.Drop = rapid.Bool().Draw(t, "drop")
	c.Loss.Timeout = time.Duration(rapid.IntRange(1, 300).Draw(t, "timeout"))
	c.Loss.Attempts = rapid.IntRange(1, 5).Draw(t, "attempts")
	delays := scripted{}
	for range rapid.IntRange(1, 5).Draw(t, "delays") {
		delays = append(delays, time.Duration(rapid.IntRange(0, 500).Draw(t, "delay")))
	}
	c.Delay = delays
	if rapid.Bool().Draw(t, "function of time") {
		c.Delay = sea(delays)
	}
	at := time.Duration(0)
	for range rapid.IntRange(0, 4).Draw(t, "outages") {
		at += time.Duration(rapid.IntRange(0, 400).Draw(t, "up"))
		o := link.Outage{From: at, To: at + time.Duration(rapid.IntRange(1, 400).Draw(t, "down"))}
		at = o.To
		c.Outages = append(c.Outages, o)
	}
	if len(c.Outages) > 0 && rapid.IntRange(0, 4).Draw(t, "forever") == 0 {
		c.Outages[len(c.Outages)-1].To = link.Forever
	}
	return c
}

func perByte(rate rate.Constant) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(1e9 / rate)
}

// program is a network beside its oracle, and the messages under way on it.
type program struct {
	*rapid.T
	network *link.Network
	oracle  *oracle
	flying  []message
}

type message struct {
	src, dst int32
	size     int
	arrival  time.Duration
}

// nodes are a program's nodes.
const nodes = 3

// configure gives the network another configuration.
func (p *program) configure() {
	n, o := p.network, p.oracle
	o.config = drawConfig(p.T)
	n.SetDefault(o.config)
	if _, ok := o.config.Delay.(sea); ok {
		clear(o.sent) // a script that follows starts from its beginning
	}
	for i := range int32(nodes) {
		up := rapid.SampledFrom([]rate.Constant{0, 1e9, 1e8}).Draw(p.T, "uplink")
		down := rapid.SampledFrom([]rate.Constant{0, 1e9, 1e8}).Draw(p.T, "downlink")
		n.SetUplink(i, up)
		n.SetDownlink(i, down)
		o.perByte[place{"up", i, 0}] = perByte(up)
		o.perByte[place{"down", i, 0}] = perByte(down)
		for j := range int32(nodes) {
			o.perByte[place{"edge", i, j}] = perByte(o.config.Rate.(rate.Constant))
		}
	}
}

// send sends a message.
func (p *program) send(now time.Duration) {
	node := rapid.Int32Range(0, nodes-1)
	m := message{src: node.Draw(p.T, "src"), dst: node.Draw(p.T, "dst"), size: rapid.IntRange(0, 60).Draw(p.T, "size")}
	got := p.network.Edge(m.src, m.dst).Send(now, m.size)
	if want := p.oracle.send(p.T, m.src, m.dst, now, m.size, got); got != want {
		p.Fatalf("%+v at %d under %+v: got %+v, want %+v", m, now, p.oracle.config, got, want)
	}
	if !got.Lost {
		m.arrival = got.Arrival
		p.flying = append(p.flying, m)
	}
}

// land delivers what arrives until an instant.
func (p *program) land(until time.Duration) {
	slices.SortStableFunc(p.flying, func(a, b message) int { return cmp.Compare(a.arrival, b.arrival) })
	for ; len(p.flying) > 0 && p.flying[0].arrival <= until; p.flying = p.flying[1:] {
		m := p.flying[0]
		e := p.network.Edge(m.src, m.dst)
		got, want := m.arrival, p.oracle.pass(place{"down", m.dst, 0}, m.arrival, m.size)
		if e.HasDownlink() {
			got = e.Receive(m.arrival, m.size)
		}
		if got != want {
			p.Fatalf("%+v delivered at %d, want %d", m, got, want)
		}
		e.Deliver(m.size, got)
	}
}

// The oracle keeps everything of every edge, whether the network forgets edges or not.
func TestRandomProgramsAgreeWithTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &program{T: t, network: link.New(rapid.Uint64().Draw(t, "seed"), names(nodes)),
			oracle: &oracle{perByte: map[place]time.Duration{}, left: map[place][]time.Duration{},
				sent: map[place]int{}, arrived: map[place][]time.Duration{}}}
		p.network.CountPairs(rapid.SampledFrom([]int{0, 3, link.MaxPairs}).Draw(t, "pairs counted one by one"))
		p.configure()
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			now += time.Duration(rapid.SampledFrom([]int{0, 1, 10, 100, 5000}).Draw(t, "wait"))
			p.land(now)
			if rapid.IntRange(0, 30).Draw(t, "change") == 0 {
				p.configure()
			}
			p.send(now)
		}
		p.land(link.Forever)
	})
}

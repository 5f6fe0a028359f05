package link_test

import (
	"math"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
)

func TestMessagesArriveTwiceAsOftenAsTheShareSays(t *testing.T) {
	const messages, share = 20000, 0.3
	for _, fair := range []bool{false, true} {
		n := link.New(5, []string{"a", "b"})
		if fair {
			n.ShareFairly()
		}
		n.SetDefault(link.Config{Delay: link.Uniform{Min: ms, Max: 9 * ms}, Repeat: share, Reorder: true})
		e, twice, later := n.Edge(0, 1), 0, 0
		for i := range time.Duration(messages) {
			transit := e.Send(i*ms, 10)
			if transit.Again == 0 {
				e.Deliver(10, 0)
				continue
			}
			if transit.Again < i*ms+ms || transit.Again > i*ms+9*ms {
				t.Fatalf("second copy of message %d arrives at %v", i, transit.Again)
			}
			if twice++; transit.Again > transit.Arrival {
				later++
			}
			e.Deliver(10, 0)
			e.Discard(10)
		}
		if off := math.Abs(float64(twice)/messages - share); off > 4*math.Sqrt(share*(1-share)/messages) {
			t.Errorf("%d of %d messages arrive twice, the share is %v", twice, messages, share)
		}
		if half := float64(later) / float64(twice); math.Abs(half-0.5) > 0.03 {
			t.Errorf("the second copy is later %v of the time: its delay is not its own", half)
		}
		s := e.Stats()
		if s.Sent != int64(messages+twice) || s.InFlight() != 0 || s.Delivered != messages || s.InFlightBytes() != 0 {
			t.Errorf("%d messages, %d of them twice: %+v", messages, twice, s)
		}
	}
}

func TestASecondCopyKeepsTheOrderOfItsEdge(t *testing.T) {
	e := pair(5, link.Config{Delay: link.Uniform{Min: 0, Max: 50 * ms}, Repeat: 0.5})
	last := time.Duration(0)
	for i := range time.Duration(1000) {
		transit := e.Send(i*ms, 10)
		if transit.Arrival < last {
			t.Fatalf("message %d overtakes another", i)
		}
		last = max(transit.Arrival, transit.Again)
	}
}

func TestWhichLinksLoseForGood(t *testing.T) {
	outage := []link.Outage{{From: ms, To: 2 * ms}}
	bursts := &link.Bursts{P: 0.1, R: 0.5, K: 1}
	for _, c := range []struct {
		config          link.Config
		loses, disturbs bool
	}{
		{link.Config{}, false, false},
		{link.Config{Loss: link.Loss{Drop: true}}, false, false},
		{link.Config{Loss: link.Loss{Drop: true, Probability: 0.1}}, true, true},
		{link.Config{Loss: link.Loss{Drop: true, Bursts: bursts}}, true, true},
		{link.Config{Loss: link.Loss{Probability: 0.1, Timeout: ms}}, false, false},
		{link.Config{Loss: link.Loss{Drop: true}, Outages: outage}, true, true},
		{link.Config{Outages: outage}, false, false},
		{link.Config{Loss: link.Loss{Drop: true}, Intermittent: link.Intermittent{Up: ms, Down: ms}}, true, true},
		{link.Config{Reorder: true}, false, true},
		{link.Config{Repeat: 0.1}, false, true},
	} {
		e := pair(1, c.config)
		if e.Loses() != c.loses || e.Disturbs() != c.disturbs {
			t.Errorf("%+v: loses %v, disturbs %v; want %v, %v", c.config, e.Loses(), e.Disturbs(), c.loses, c.disturbs)
		}
	}
}

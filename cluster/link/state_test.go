package link_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/link"
	"pgregory.net/rapid"
)

// configured returns a network of every kind of link, as it is after a scheduled change.
func configured(seed uint64) *link.Network {
	n := link.New(seed, names(4))
	n.SetUplink(0, 3e6)
	n.SetDownlink(3, 7e6)
	loss := link.Loss{Probability: 0.2, Timeout: ms}
	n.SetDefault(link.Config{Delay: paperWalk, Rate: 7e5, Loss: loss})
	n.Set(0, 1, link.Config{Delay: link.Normal{Mean: ms, Std: ms}, Outages: []link.Outage{{From: ms, To: 9 * ms}, {From: 20 * ms, To: 21 * ms}}})
	n.Set(1, 2, link.Config{Delay: scripted{3, 1, 4, 1, 5}, Loss: loss, Reorder: true})
	n.Set(2, 3, link.Config{Delay: link.Exponential{Mean: ms}, Rate: 3e9})
	n.Set(3, 0, link.Config{Delay: link.Trace{Points: []link.Point{{Delay: 1}, {At: ms, Delay: 9}}, Interpolate: true, Repeat: true}})
	n.Set(3, 1, link.Config{})
	n.Set(2, 1, link.Config{Delay: link.Pareto{Min: ms, Alpha: 1.5}})
	n.Set(1, 3, link.Config{Delay: link.LogNormal{Median: ms, Sigma: 1}, Rate: 1e6})
	n.Set(3, 2, link.Config{Intermittent: link.Intermittent{Up: 3 * ms, Down: ms}, Rate: 1e6, Loss: loss})
	n.Set(2, 0, link.Config{Delay: paperWalk, Loss: link.Loss{Timeout: ms, Bursts: link.Bursts{P: 0.1, R: 0.3, H: 0.2, K: 0.9}}})
	return n
}

type step struct {
	src, dst int32
	size     int
	wait     time.Duration
}

func drawSteps(t *rapid.T, label string) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			src:  rapid.Int32Range(0, 3).Draw(t, "src"),
			dst:  rapid.Int32Range(0, 3).Draw(t, "dst"),
			size: rapid.IntRange(0, 5000).Draw(t, "size"),
			wait: time.Duration(rapid.IntRange(0, 1e6).Draw(t, "wait")),
		}
	}), 0, 60).Draw(t, label)
}

// drive sends messages and tells all that can be seen of them.
func drive(n *link.Network, now time.Duration, steps []step) (time.Duration, []any) {
	var seen []any
	for _, s := range steps {
		now += s.wait
		e := n.Edge(s.src, s.dst)
		got := e.Send(now, s.size)
		seen = append(seen, got, e.Delay(now))
		switch {
		case got.Lost:
			e.CountControl(s.size)
		case e.HasDownlink():
			seen = append(seen, e.Receive(now, s.size))
			e.Deliver(s.size, time.Millisecond)
		}
	}
	return now, seen
}

func TestRestoredNetworkGoesOnAsTheSavedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := configured(seed), configured(seed)
		now, _ := drive(a, 0, drawSteps(t, "before"))
		drive(b, 0, drawSteps(t, "forgotten"))
		kept := b.Edge(0, 1)
		saved := save(t, a)
		if err := b.UnmarshalBinary(saved); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(save(t, b), saved) {
			t.Fatal("saved again, the state differs")
		}
		if kept != b.Edge(0, 1) {
			t.Fatal("an edge is at another place")
		}
		change := link.Config{Delay: paperWalk, Loss: link.Loss{Probability: 0.5, Timeout: ms}}
		for range 2 {
			steps := drawSteps(t, "after")
			_, seenA := drive(a, now, steps)
			end, seenB := drive(b, now, steps)
			if diff := cmp.Diff(seenA, seenB); diff != "" {
				t.Fatal(diff)
			}
			now = end
			a.SetDefault(change)
			b.SetDefault(change)
		}
		if !bytes.Equal(save(t, a), save(t, b)) {
			t.Fatal("the states differ in the end")
		}
	})
}

type fataler interface{ Fatal(...any) }

func save(t fataler, n *link.Network) []byte {
	state, err := n.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func busy() *link.Network {
	n := configured(1)
	for i := range int32(16) {
		drive(n, 0, []step{{src: i / 4, dst: i % 4, size: 100}, {src: i / 4, dst: i % 4, size: 1, wait: ms}})
	}
	return n
}

func TestStateOfAnotherNetworkIsRefused(t *testing.T) {
	state := save(t, busy())
	other := configured(1)
	other.Set(0, 1, link.Config{Delay: link.Uniform{Max: ms}})
	lossless := configured(1)
	lossless.SetDefault(link.Config{})
	for _, c := range []struct {
		n     *link.Network
		state []byte
		want  string
	}{
		{configured(1), nil, "mark of a saved state"},
		{configured(1), []byte("gwlink9\n"), "mark of a saved state"},
		{configured(2), state, "another seed"},
		{link.New(1, names(5)), state, "other nodes"},
		{other, state, "link n0 → n1: saved with a delay of type link.Normal, configured with link.Uniform"},
		{lossless, state, "configured with <nil>"},
		{configured(1), state[:len(state)-1], "expected"},
		{configured(1), append(bytes.Clone(state), 0), "end of the state"},
	} {
		before := save(t, c.n)
		err := c.n.UnmarshalBinary(c.state)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		if !bytes.Equal(save(t, c.n), before) {
			t.Errorf("the network has changed in spite of: %v", err)
		}
	}
}

func FuzzUnmarshalBinary(f *testing.F) {
	state := save(f, busy())
	f.Add(state)
	f.Add(save(f, configured(1)))
	f.Add(state[:len(state)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		n := configured(1)
		if n.UnmarshalBinary(data) != nil {
			return
		}
		again := configured(1)
		if err := again.UnmarshalBinary(save(t, n)); err != nil {
			t.Fatalf("accepted, but not when saved again: %v", err)
		}
		_, a := drive(n, 0, []step{{src: 0, dst: 1, size: 9}, {src: 2, dst: 3, size: 9}})
		_, b := drive(again, 0, []step{{src: 0, dst: 1, size: 9}, {src: 2, dst: 3, size: 9}})
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatal(diff)
		}
	})
}

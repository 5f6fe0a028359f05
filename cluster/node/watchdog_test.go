package node

import (
	"testing"

	"github.com/gradwire/gradwire/protos"
)

// b and c have answered the conductor a, with what they know of each other and of it.
func TestNobodyWhoHasAnsweredGoesForNotHearingTheConductor(t *testing.T) {
	for name, x := range map[string]struct {
		about string // who is not heard by c
		out   bool
	}{
		"the conductor": {about: "a"},
		"another one":   {about: "b", out: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := timed(t)
			c.names, c.parties = []string{"b", "c"}, map[string]*party{"b": {placed: true}, "c": {placed: true}}
			w := &watchdog{of: c, cut: map[[2]string]int{}, lost: map[[2]string]uint64{}}
			for range cutWaves + 2 {
				w.known = map[string]*protos.RunState{
					"a": {Peers: []*protos.RunPeer{{Name: "b", Up: true}, {Name: "c", Up: true}}},
					"b": {Peers: []*protos.RunPeer{{Name: "a", Up: true}, {Name: "c", Up: true}}},
					"c": {Peers: []*protos.RunPeer{{Name: "a", Up: x.about != "a"}, {Name: "b", Up: x.about != "b"}}},
				}
				w.judgeConnections()
			}
			if out := len(c.remaining()) < 2; out != x.out {
				t.Errorf("out: %v, want %v", out, x.out)
			}
		})
	}
}

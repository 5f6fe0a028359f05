package wire_test

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

func TestCutsAreToldApartAcrossTheEndOfTheirNumbers(t *testing.T) {
	for own := range uint64(3 * wire.Cuts) {
		for since := -min(int(own), wire.Cuts/2); since < wire.Cuts/2; since++ {
			if got := wire.CutOf(uint64(int(own) + since)).Since(own); got != since {
				t.Errorf("a cut of %d is %d later than one of %d, want %d", int(own)+since, got, own, since)
			}
		}
	}
}

func TestPacketsCountFromPackingToTheirEnd(t *testing.T) {
	var flights wire.Flights
	pool := &protos.TensorPool{}
	pack := func(cut wire.Cut) *wire.Packet {
		f := wire.Frame{Kind: wire.User, Cut: cut, Target: "a", Head: &protos.Pull{},
			Tensors: []*protos.Tensor{pool.Get(3)}}
		p, err := wire.Pack(&f, wire.Eager)
		if err != nil {
			t.Fatal(err)
		}
		p.Count(&flights)
		if g, err := p.Frame(); err != nil || g.Cut != cut {
			t.Errorf("a frame of cut %d is read as one of %d, %v", cut, g.Cut, err)
		}
		return p
	}
	early, late := pack(wire.CutOf(31)), pack(wire.CutOf(32))
	second := early.Copy()
	for i, step := range []struct {
		do   func()
		want int64
	}{{func() {}, 2}, {early.Release, 1}, {late.Release, 1}, {second.Release, 0}} {
		if step.do(); flights.Before(32) != step.want {
			t.Errorf("after step %d %d packets of earlier cuts are there, want %d", i, flights.Before(32), step.want)
		}
	}
	if n := flights.Before(33); n != 0 {
		t.Errorf("%d are left", n)
	}
}

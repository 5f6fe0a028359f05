package consistency_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/consistency"
)

// dumb keeps clocks as the definitions have them, and sums nothing up.
type dumb struct {
	there            map[int]bool
	rounds, finished map[int]uint64
	floor            uint64 // the slowest clock when somebody was there last
	instants         map[int][]float64
	credit           map[int]uint64
}

func (d *dumb) slowest() uint64 {
	least, some := uint64(math.MaxUint64), false
	for w, there := range d.there {
		if there {
			least, some = min(least, d.rounds[w]), true
		}
	}
	if some {
		d.floor = least
	}
	return d.floor
}

func (d *dumb) join(w int) {
	at := d.floor
	delete(d.there, w)
	if len(d.there) > 0 {
		at = d.slowest()
	}
	d.there[w], d.rounds[w], d.finished[w], d.credit[w] = true, at, at, 0
	delete(d.instants, w)
	d.slowest()
}

// hears says who hears of a round of theirs, pushed being the worker that has just pushed, or −1.
// The slowest clock has moved only if it is above the one before.
func (d *dumb) hears(m consistency.Model, before uint64, pushed, nodes int) (who []int) {
	for w := range nodes {
		old := d.finished[w]
		for d.there[w] && d.finished[w] < d.rounds[w] && (w == pushed || d.slowest() > before) {
			next := d.finished[w] + 1
			lead := int64(next) - int64(d.slowest())
			ok := false
			switch m := m.(type) {
			case consistency.ASP:
				ok = true
			case consistency.BSP:
				ok = lead <= 0
			case consistency.SSP:
				ok = lead <= int64(m.Rounds)
			case consistency.BoundedDelay:
				ok = m.Tasks < 0 || lead <= 0
			case consistency.DSSP:
				ok = d.dynamic(m, w, lead, w == pushed)
			}
			if !ok {
				break
			}
			d.finished[w] = next
		}
		if d.finished[w] > old {
			who = append(who, w)
		}
	}
	return who
}

// dynamic is algorithms 1 and 2 of Zhao et al. 2019, line by line.
func (d *dumb) dynamic(m consistency.DSSP, p int, lead int64, pushed bool) bool {
	if lead > int64(m.High) {
		return false
	}
	if pushed && d.credit[p] > 0 {
		d.credit[p]--
		return true
	}
	if lead <= int64(m.Low) {
		return true
	}
	slow := -1
	for w := range 100 {
		if d.there[w] && d.rounds[w] > d.rounds[p] {
			return false // p is not the fastest
		}
		if slow < 0 && d.there[w] && d.rounds[w] == d.slowest() {
			slow = w
		}
	}
	a, b := d.instants[p], d.instants[slow]
	if !pushed || len(a) < 2 || len(b) < 2 {
		return false
	}
	most := int(m.High - m.Low)
	simP, simSlow := []float64{a[len(a)-1]}, []float64{2*b[len(b)-1] - b[len(b)-2]}
	for range most {
		simP = append(simP, simP[len(simP)-1]+a[len(a)-1]-a[len(a)-2])
		simSlow = append(simSlow, simSlow[len(simSlow)-1]+b[len(b)-1]-b[len(b)-2])
	}
	best, least := 0, math.Inf(1)
	for r := range simP {
		for k := range simSlow {
			if wait := math.Abs(simSlow[k] - simP[r]); wait < least {
				best, least = r, wait
			}
		}
	}
	if best == 0 {
		return false
	}
	d.credit[p] = uint64(best - 1)
	return true
}

func models(t *rapid.T) consistency.Model {
	n := rapid.Uint64Range(0, 4).Draw(t, "bound")
	return rapid.SampledFrom([]consistency.Model{
		consistency.ASP{}, consistency.BSP{}, consistency.SSP{Rounds: n}, consistency.DSSP{Low: n, High: n + 5},
		consistency.DSSP{Low: n, High: n}, consistency.BoundedDelay{Tasks: int64(n) - 1},
	}).Draw(t, "model")
}

func TestClocksAreThoseOfTheDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, nodes := models(t), rapid.IntRange(1, 5).Draw(t, "nodes")
		c := consistency.New(m, nodes)
		d := &dumb{there: map[int]bool{}, rounds: map[int]uint64{}, finished: map[int]uint64{},
			instants: map[int][]float64{}, credit: map[int]uint64{}}
		now := time.Duration(0)
		for w := range nodes {
			c.Join(w)
			d.join(w)
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(1, 1000).Draw(t, "later"))
			w := rapid.IntRange(0, nodes-1).Draw(t, "worker")
			before, pushed := d.slowest(), -1
			switch what := rapid.IntRange(0, 11).Draw(t, "what"); {
			case what == 0:
				c.Leave(w)
				delete(d.there, w)
				d.slowest()
			case what == 1:
				c.Join(w)
				d.join(w)
			case d.there[w] && d.rounds[w]-d.finished[w] <= m.Ahead():
				if err := c.Push(w, now); err != nil {
					t.Fatal(err)
				}
				d.rounds[w]++
				d.instants[w] = append(d.instants[w], float64(now))
				pushed = w
			}
			got, err := c.Ready()
			if err != nil {
				t.Fatal(err)
			}
			if want := d.hears(m, before, pushed, nodes); !slices.Equal(got, want) {
				t.Fatalf("%+v: %v hear of their rounds, want %v", m, got, want)
			}
			apart(t, m, d)
			if c.Slowest() != d.slowest() {
				t.Fatalf("%+v: the slowest clock is %d, want %d", m, c.Slowest(), d.slowest())
			}
		}
	})
}

// apart checks the invariant: nobody that may begin a round is further ahead than the bound.
func apart(t *rapid.T, m consistency.Model, d *dumb) {
	for w, there := range d.there {
		if !there || m.Bound() == consistency.Unbounded || d.rounds[w]-d.finished[w] > m.Ahead() {
			continue
		}
		if lead := d.rounds[w] - d.slowest(); lead > m.Bound() {
			t.Fatalf("%+v: worker %d may begin a round %d rounds ahead", m, w, lead)
		}
	}
}

func TestEqualBoundsOfDSSPAreSSP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, 4).Draw(t, "bound")
		a, b := consistency.New(consistency.SSP{Rounds: n}, 4), consistency.New(consistency.DSSP{Low: n, High: n}, 4)
		may := map[int]bool{0: true, 1: true, 2: true, 3: true}
		for w := range 4 {
			a.Join(w)
			b.Join(w)
		}
		for i := range 100 {
			w := rapid.IntRange(0, 3).Draw(t, "worker")
			if !may[w] {
				continue
			}
			may[w] = false
			if err := errors.Join(a.Push(w, time.Duration(i)), b.Push(w, time.Duration(i))); err != nil {
				t.Fatal(err)
			}
			one, err := a.Ready()
			other, err2 := b.Ready()
			if err := errors.Join(err, err2); err != nil || !slices.Equal(one, other) {
				t.Fatalf("%v and %v may go on, %v", one, other, err)
			}
			for _, w := range one {
				may[w] = true
			}
		}
	})
}

func TestAPushThatMayNotHaveBeenMadeIsAViolation(t *testing.T) {
	for _, c := range []struct {
		model  consistency.Model
		listen bool // to who may go on
		want   string
	}{
		{consistency.ASP{}, false, "fast began a round at clock 1 with answers up to 0, and 0 may be missing"},
		{consistency.SSP{Rounds: 2}, true,
			"fast began a round at clock 3 while slow was at 0, and 2 apart are allowed"},
		{consistency.BoundedDelay{Tasks: 2}, true,
			"fast began a round at clock 3 while slow was at 0, and 2 apart are allowed"},
	} {
		clocks := consistency.New(c.model, 2)
		clocks.Join(0)
		clocks.Join(1)
		var err error
		for i := 0; err == nil && i < 9; i++ {
			if err = clocks.Push(0, 0); err == nil && c.listen {
				_, err = clocks.Ready()
			}
		}
		var v *consistency.Violation
		if !errors.As(err, &v) {
			t.Fatalf("%+v: got %v, want a violation", c.model, err)
		}
		got := v.Text(func(node int) string { return []string{"fast", "slow"}[node] })
		if got != "the consistency is violated: "+c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}

func TestARoundEndsWithoutItsSlowestWorkers(t *testing.T) {
	c := consistency.New(consistency.BSP{}, 4)
	for w := range 4 {
		c.Join(w)
	}
	for i, w := range []int{2, 0, 3} {
		if err := c.Push(w, 0); err != nil {
			t.Fatal(err)
		}
		if got, want := c.Skip(1), i == 2; got != want {
			t.Fatalf("after %d pushes the round has ended: %v", i+1, got)
		}
	}
	ready, err := c.Ready()
	if err != nil || !slices.Equal(ready, []int{0, 2, 3}) {
		t.Fatalf("%v may go on, %v", ready, err)
	}
	if c.Slowest() != 1 {
		t.Errorf("the slowest clock is %d, want 1", c.Slowest())
	}
	if err := c.Push(1, 0); err != nil { // of the next round
		t.Error(err)
	}
}

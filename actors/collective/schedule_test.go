package collective

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// walk is what a rank does, in order.
func walk(a Algorithm, n, rank, values, segment int) []move {
	r := newReduction(&Architecture{Algorithm: a, Segment: segment}, part{n, rank, values}, grouping(n))
	var moves []move
	for position := range r.size {
		if m := r.schedule.move(position); m.action != nothing {
			moves = append(moves, m)
		}
	}
	return moves
}

// settled is a move without what a table cannot know of it: of no values, nothing becomes anything,
// and halves of a vector of few values may be all of it.
func settled(a Algorithm, n, values int, m move) move {
	if m.low == m.high {
		m.first, m.last, m.onward, m.brief = false, false, false, false
	}
	if (a == Butterfly || a == Hierarchical) && values < n {
		m.onward, m.brief = false, false
	}
	return m
}

// each calls a function with each algorithm, numbers of ranks and values, and segments of a ring.
func each(check func(a Algorithm, n, values, segment int)) {
	for _, a := range algorithms {
		for _, n := range append(upTo(65), 100, 127, 129) {
			for _, values := range []int{0, 1, n - 1, n, 3*n + 1, 1009} {
				check(a, n, values, 0)
				if a != Ring || n > 17 {
					continue
				}
				for _, segment := range []int{1, 2, 3, 7, 16, 5000} {
					check(a, n, values, segment)
				}
			}
		}
	}
}

// grouping puts n ranks into up to six sites: unequal ones, of one rank too, in no order.
func grouping(n int) []int32 {
	random := rand.New(rand.NewPCG(uint64(n), 7))
	sites := make([]int32, n)
	several := 1 + random.IntN(min(n, 6))
	for rank := range sites {
		sites[rank] = 100 - int32(random.IntN(several))
	}
	return sites
}

func upTo(last int) (numbers []int) {
	for n := 1; n <= last; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func TestMovesByFormulaAreThoseOfATable(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine counts for long")
	}
	t.Parallel()
	each(func(a Algorithm, n, values, segment int) {
		ranks := n
		if n > 17 && values != n {
			ranks = 3
		}
		for i := range ranks {
			rank := i * (n - 1) / max(ranks-1, 1)
			want, got := newTable(a, n, rank, values, segment).moves, walk(a, n, rank, values, segment)
			where := fmt.Sprintf("%s, rank %d of %d, %d values in segments of %d", a, rank, n, values, segment)
			if len(got) != len(want) {
				t.Fatalf("%s: %d moves, want %d", where, len(got), len(want))
			}
			for k := range want {
				if settled(a, n, values, got[k]) != settled(a, n, values, want[k]) {
					t.Fatalf("%s: move %d is %+v, want %+v", where, k, got[k], want[k])
				}
			}
		}
	})
}

func TestChunkIsFoundWhereATableHasIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	each(func(a Algorithm, n, values, segment int) {
		rank := random.IntN(n)
		r := newReduction(&Architecture{Algorithm: a, Segment: segment}, part{n, rank, values}, grouping(n))
		s, size := r.schedule, r.size
		waits := map[tag]bool{}
		for position := range size {
			m := s.move(position)
			if !m.waits() {
				continue
			}
			g := tag{m.peer, m.step, m.index}
			if found := s.find(g); found != position || waits[g] {
				t.Fatalf("%s, rank %d of %d: %+v of position %d is found at %d, come before: %v", a, rank, n, g,
					position, found, waits[g])
			}
			waits[g] = true
		}
		for range 200 {
			g := tag{random.IntN(n+4) - 2, random.IntN(2*n + 2), random.IntN(n + 3)}
			if position := s.find(g); position >= 0 && position < size {
				if m := s.move(position); m.takes(g) != waits[g] {
					t.Fatalf("%s, rank %d of %d: %+v is waited for: %v, want %v", a, rank, n, g, m.takes(g), waits[g])
				}
			} else if waits[g] {
				t.Fatalf("%s, rank %d of %d: %+v is not found", a, rank, n, g)
			}
		}
	})
}

// origins are the ranks whose value is in a sum.
type origins [3]uint64

func (o *origins) add(b origins) (twice bool) {
	for i := range o {
		twice = twice || o[i]&b[i] != 0
		o[i] |= b[i]
	}
	return twice
}

// dispersal is a round of all ranks with sets of ranks for values.
type dispersal struct {
	t      *testing.T
	name   string
	holds  [][]origins // by rank and value
	moves  [][]move    // of each rank that are left
	flying map[path][]origins
}

// path is what tells a message from all others.
type path struct{ from, to, step, index int }

// disperse lets all ranks make their moves, and returns what they hold at the end. It fails where a
// value is added twice, or a message is sent twice, or is not taken in.
func disperse(t *testing.T, a Algorithm, n, values, segment int) [][]origins {
	t.Helper()
	d := &dispersal{t: t, name: fmt.Sprintf("%s over %d ranks, %d values in segments of %d", a, n, values, segment),
		flying: map[path][]origins{}}
	for rank := range n {
		d.moves = append(d.moves, walk(a, n, rank, values, segment))
		var own origins
		own[rank/64] = 1 << (rank % 64)
		d.holds = append(d.holds, slices.Repeat([]origins{own}, values))
	}
	for progress := true; progress; {
		progress = false
		for rank := range n {
			for len(d.moves[rank]) > 0 && d.make(rank, d.moves[rank][0]) {
				d.moves[rank] = d.moves[rank][1:]
				progress = true
			}
		}
	}
	for rank, left := range d.moves {
		if len(left) > 0 {
			t.Fatalf("%s: rank %d waits for what nobody sends: %+v", d.name, rank, left[0])
		}
	}
	if len(d.flying) > 0 {
		t.Fatalf("%s: %d messages are not taken in", d.name, len(d.flying))
	}
	return d.holds
}

// make makes a move unless it waits for a message.
func (d *dispersal) make(rank int, m move) bool {
	d.t.Helper()
	held := d.holds[rank][m.low:m.high]
	if m.action == send {
		p := path{rank, m.peer, m.step, m.index}
		if _, sent := d.flying[p]; sent {
			d.t.Fatalf("%s: rank %d sends twice: %+v", d.name, rank, m)
		}
		d.flying[p] = slices.Clone(held)
		return true
	}
	p := path{m.peer, rank, m.step, m.index}
	chunk, sent := d.flying[p]
	if !sent {
		return false
	}
	delete(d.flying, p)
	if len(chunk) != len(held) {
		d.t.Fatalf("%s: rank %d gets %d values: %+v", d.name, rank, len(chunk), m)
	}
	for i, o := range chunk {
		if m.action == replace {
			held[i] = o
		} else if held[i].add(o) {
			d.t.Fatalf("%s: rank %d adds a value twice: %+v", d.name, rank, m)
		}
	}
	return true
}

func TestEachRankTakesInEachValueOfEachRankOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine counts for long")
	}
	t.Parallel()
	each(func(a Algorithm, n, values, segment int) {
		if values > 3*n && n > 9 {
			return
		}
		var all origins
		for rank := range n {
			all[rank/64] |= 1 << (rank % 64)
		}
		for rank, held := range disperse(t, a, n, values, segment) {
			for i, o := range held {
				if o != all {
					t.Fatalf("%s over %d ranks: value %d of rank %d is the sum of %b", a, n, i, rank, o)
				}
			}
		}
	})
}

func TestScheduleTakesNoMoreMemoryForMoreRanks(t *testing.T) {
	const times = 100
	for _, a := range []Algorithm{AllToAll, Ring, Butterfly, Tree} {
		for _, n := range []int{2, 1 << 20} {
			kept := make([]*reduction, times)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range kept {
				kept[i] = newReduction(&Architecture{Algorithm: a, Segment: 0}, part{n, n / 2, 1000}, nil)
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 1000 {
				t.Errorf("%s: a rank of %d takes %d bytes, want less than 1,000", a, n, each)
			}
			runtime.KeepAlive(kept)
		}
	}
}

func TestValuesCrossToAnotherSiteAndBackWhateverTheGrouping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 24).Draw(t, "ranks")
		values := rapid.IntRange(0, 90).Draw(t, "values")
		sites := rapid.SliceOfN(rapid.Int32Range(0, 5), n, n).Draw(t, "sites")
		distinct := map[int32]bool{}
		r := newRehearsal(Hierarchical, 0, n, 2, true, whole(values))
		messages, sent := 0, 0
		for rank := range n {
			distinct[sites[rank]] = true
			x := newReduction(&Architecture{Algorithm: Hierarchical}, part{n, rank, values}, sites)
			r.ranks[rank] = x
			for position := range x.size {
				if m := x.schedule.move(position); m.action == send && sites[m.peer] != sites[rank] {
					messages, sent = messages+1, sent+m.high-m.low
				}
			}
		}
		if err := r.check(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1)), true); err != nil {
			t.Fatal(err)
		}
		k := len(distinct)
		if messages != 2*k*(k-1) || sent != 2*(k-1)*values {
			t.Fatalf("%d messages with %d values cross between %d sites, want %d with %d", messages, sent, k, 2*k*(k-1),
				2*(k-1)*values)
		}
		if want := 2 * (2*(n-k) + 2*k*(k-1)); r.messages != want || r.values != 2*2*(n-1)*values {
			t.Fatalf("%d messages with %d values in two rounds, want %d with %d", r.messages, r.values, want,
				4*(n-1)*values)
		}
	})
}

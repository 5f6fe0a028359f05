package collective

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// walk is what a rank does, in order.
func walk(a Algorithm, n, rank, values, segment int) []move {
	r := newReduction(&Architecture{Algorithm: a, Segment: segment}, n, rank, values)
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
	if a == Butterfly && values < n {
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

func upTo(last int) (numbers []int) {
	for n := 1; n <= last; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func TestMovesByFormulaAreThoseOfATable(t *testing.T) {
	t.Parallel()
	each(func(a Algorithm, n, values, segment int) {
		ranks := n
		if n > 17 && values != n {
			ranks = 3
		}
		for i := range ranks {
			rank := i * (n - 1) / max(ranks-1, 1)
			want, got := newTable(a, n, rank, values, segment).moves, walk(a, n, rank, values, segment)
			if len(got) != len(want) {
				t.Fatalf("%s, rank %d of %d, %d values in segments of %d: %d moves, want %d", a, rank, n, values, segment,
					len(got), len(want))
			}
			for k := range want {
				if settled(a, n, values, got[k]) != settled(a, n, values, want[k]) {
					t.Fatalf("%s, rank %d of %d, %d values in segments of %d: move %d is %+v, want %+v", a, rank, n, values,
						segment, k, got[k], want[k])
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
		s := newSchedule(a, n, rank, values, segment)
		size := newReduction(&Architecture{Algorithm: a, Segment: segment}, n, rank, values).size
		waits := map[tag]bool{}
		for position := range size {
			m := s.move(position)
			if !m.waits() {
				continue
			}
			g := tag{m.peer, m.step, m.index}
			if found := s.find(g); found != position || waits[g] {
				t.Fatalf("%s, rank %d of %d: %+v of position %d is found at %d, come before: %v", a, rank, n, g, position,
					found, waits[g])
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

// spread lets all ranks make their moves with sets of ranks for values, and returns what they hold
// at the end. It fails where a value is added twice, or a message is sent twice, or is not taken in.
func spread(t *testing.T, a Algorithm, n, values, segment int) [][]origins {
	t.Helper()
	type name struct{ from, to, step, index int }
	flying := map[name][]origins{}
	holds, moves, at := make([][]origins, n), make([][]move, n), make([]int, n)
	for rank := range n {
		moves[rank] = walk(a, n, rank, values, segment)
		holds[rank] = make([]origins, values)
		for i := range holds[rank] {
			holds[rank][i][rank/64] = 1 << (rank % 64)
		}
	}
	fail := func(rank int, m move, what string) {
		t.Fatalf("%s over %d ranks, %d values in segments of %d: rank %d %s: %+v", a, n, values, segment, rank, what, m)
	}
	step := func(rank int) bool {
		if at[rank] == len(moves[rank]) {
			return false
		}
		m := moves[rank][at[rank]]
		if m.action == send {
			key := name{rank, m.peer, m.step, m.index}
			if _, sent := flying[key]; sent {
				fail(rank, m, "sends twice")
			}
			flying[key] = slices.Clone(holds[rank][m.low:m.high])
			at[rank]++
			return true
		}
		key := name{m.peer, rank, m.step, m.index}
		chunk, sent := flying[key]
		if !sent {
			return false
		}
		delete(flying, key)
		at[rank]++
		if len(chunk) != m.high-m.low {
			fail(rank, m, fmt.Sprintf("gets %d values", len(chunk)))
		}
		for i, o := range chunk {
			held := &holds[rank][m.low+i]
			if m.action == replace {
				*held = o
			} else if held.add(o) {
				fail(rank, m, "adds a value twice")
			}
		}
		return true
	}
	for progress := true; progress; {
		progress = false
		for rank := range n {
			for step(rank) {
				progress = true
			}
		}
	}
	for rank := range n {
		if at[rank] < len(moves[rank]) {
			fail(rank, moves[rank][at[rank]], "waits for what nobody sends")
		}
	}
	if len(flying) > 0 {
		t.Fatalf("%s over %d ranks: %d messages are not taken in", a, n, len(flying))
	}
	return holds
}

func TestEachRankTakesInEachValueOfEachRankOnce(t *testing.T) {
	t.Parallel()
	each(func(a Algorithm, n, values, segment int) {
		if values > 3*n && n > 9 {
			return
		}
		var all origins
		for rank := range n {
			all[rank/64] |= 1 << (rank % 64)
		}
		for rank, held := range spread(t, a, n, values, segment) {
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
	for _, a := range algorithms {
		for _, n := range []int{2, 1 << 20} {
			kept := make([]*reduction, times)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range kept {
				kept[i] = newReduction(&Architecture{Algorithm: a, Segment: 0}, n, n/2, 1000)
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 1000 {
				t.Errorf("%s: a rank of %d takes %d bytes, want less than 1,000", a, n, each)
			}
			runtime.KeepAlive(kept)
		}
	}
}

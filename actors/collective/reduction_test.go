package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

var algorithms = []Algorithm{AllToAll, Ring, Butterfly, Tree, Hierarchical}

// packet is a chunk between two ranks.
type packet struct {
	from, to, round int
	move            move
	chunk           *protos.Tensor
	landed          bool // in memory that its receiver had ready
}

// rehearsal lets n ranks reduce round after round; the order in which packets arrive
// is drawn at random.
type rehearsal struct {
	n, rounds  int
	weight     float32 // of the sums
	vector     func(rank, round int) []float32
	overtaking bool                    // packets of an edge may overtake each other
	apart      bool                    // chunks arrive in separate memory, as from another process
	posted     bool                    // or where the receiver has it ready, some of them at once
	landed     int                     // how many did
	posts      []*world.Posts          // of the ranks
	arrived    map[*protos.Tensor]bool // such chunks
	passedOn   int                     // how many of them were sent
	ranks      []*reduction
	inputs     []*protos.Tensor
	outputs    []*protos.Tensor
	pool       protos.TensorPool
	flying     []packet
	means      [][][]float32 // by round and rank
	messages   int
	values     int // sent
}

func newRehearsal(a Algorithm, segment, n, rounds int, overtaking bool,
	vector func(rank, round int) []float32) *rehearsal {
	r := &rehearsal{n: n, rounds: rounds, weight: 1, vector: vector, overtaking: overtaking,
		means: make([][][]float32, rounds), arrived: map[*protos.Tensor]bool{}}
	r.pool.Poison = true
	for i := range r.means {
		r.means[i] = make([][]float32, n)
	}
	for rank := range n {
		r.ranks = append(r.ranks, newReduction(&Architecture{Algorithm: a, Segment: segment},
			part{n, rank, len(vector(rank, 0))}, grouping(n)))
		r.inputs, r.outputs, r.posts = append(r.inputs, nil), append(r.outputs, nil), append(r.posts, &world.Posts{})
	}
	return r
}

func (r *rehearsal) run(random *rand.Rand) error {
	for _, rank := range random.Perm(r.n) {
		r.begin(rank, 0)
	}
	for len(r.flying) > 0 {
		if err := r.deliver(r.pick(random)); err != nil {
			return err
		}
	}
	for rank, x := range r.ranks {
		if x.round != uint64(r.rounds) {
			return fmt.Errorf("rank %d stands still in round %d", rank, x.round)
		}
	}
	return nil
}

func (r *rehearsal) begin(rank, round int) {
	r.inputs[rank] = r.pool.Copy(r.vector(rank, round))
	r.outputs[rank] = r.pool.Get(len(r.inputs[rank].Data))
	r.ranks[rank].begin(r.inputs[rank], r.outputs[rank], r.weight)
	r.posts[rank].Put(r.outputs[rank], r.ranks[rank].posts(1, 0))
	r.advance(rank, round)
}

func (r *rehearsal) advance(rank, round int) {
	x := r.ranks[rank]
	for m, sends := x.next(); sends; m, sends = x.next() {
		piece := x.piece(&m)
		if m.peer == rank {
			x.keep(&m, piece)
			continue
		}
		r.messages++
		r.values += m.high - m.low
		if r.arrived[piece] {
			r.passedOn++
		}
		p := packet{from: rank, to: m.peer, round: round, move: m, chunk: piece}
		if r.posted && r.messages%2 == 0 {
			r.land(&p)
		}
		r.flying = append(r.flying, p)
	}
	if x.blocked() {
		return
	}
	r.means[round][rank] = r.outputs[rank].Data
	r.posts[rank].Put(nil, nil)
	r.inputs[rank].Release()
	x.finish()
	if round+1 < r.rounds {
		r.begin(rank, round+1)
	}
}

// land has the values of a chunk arrive where its receiver has memory ready for them, if it has.
func (r *rehearsal) land(p *packet) {
	head := &protos.Chunk{View: 1, Round: uint64(p.round), Rank: int32(p.from), Step: uint32(p.move.step),
		Index: uint32(p.move.index)}
	if ready := r.posts[p.to].Take(head.Place(), len(p.chunk.Data)); ready != nil {
		copy(ready.Data, p.chunk.Data)
		p.chunk.Release()
		p.chunk, p.landed = ready, true
		r.landed++
	}
}

// pick draws the next packet: any, or the first of any edge.
func (r *rehearsal) pick(random *rand.Rand) int {
	i := random.IntN(len(r.flying))
	if r.overtaking {
		return i
	}
	for k, p := range r.flying[:i] {
		if p.from == r.flying[i].from && p.to == r.flying[i].to {
			return k
		}
	}
	return i
}

func (r *rehearsal) deliver(i int) error {
	p := r.flying[i]
	r.flying = append(r.flying[:i], r.flying[i+1:]...)
	x := r.ranks[p.to]
	if r.posted && !p.landed {
		r.land(&p)
	}
	if r.apart && !p.landed {
		chunk := protos.NewTensor(slices.Clone(p.chunk.Data))
		p.chunk.Release()
		p.chunk, r.arrived[chunk] = chunk, true
	}
	was := x.input != nil && x.blocked()
	if err := x.take(uint64(p.round), tag{p.from, p.move.step, p.move.index}, p.chunk); err != nil {
		return fmt.Errorf("rank %d, round %d, from rank %d, step %d: %w", p.to, p.round, p.from, p.move.step, err)
	}
	if was {
		r.advance(p.to, int(x.round))
	}
	return nil
}

// whole returns vectors of small integers, whose sums are exact in every order.
func whole(values int) func(rank, round int) []float32 {
	return func(rank, round int) []float32 {
		v := make([]float32, values)
		for i := range v {
			v[i] = float32((rank+1)*(round+3) + i%1000)
		}
		return v
	}
}

// rounded returns vectors whose sums depend on the order.
func rounded(values int) func(rank, round int) []float32 {
	return func(rank, round int) []float32 {
		random := rand.New(rand.NewPCG(uint64(rank), uint64(round)))
		v := make([]float32, values)
		for i := range v {
			v[i] = float32(random.NormFloat64() * math.Pow(10, 6*random.Float64()))
		}
		return v
	}
}

// check runs the rounds and returns an error unless all means are what they should be.
func (r *rehearsal) check(random *rand.Rand, exact bool) error {
	if err := r.run(random); err != nil {
		return err
	}
	for round, means := range r.means {
		want := means[0]
		if exact {
			want = make([]float32, len(means[0]))
			for rank := range r.n {
				for i, v := range r.vector(rank, round) {
					want[i] += v
				}
			}
			for i := range want {
				want[i] /= r.weight
			}
		}
		for rank, got := range means {
			if i, ok := differ(got, want); ok {
				return fmt.Errorf("round %d: value %d of rank %d is %v, want %v", round, i, rank, got[i], want[i])
			}
		}
	}
	return nil
}

func differ(a, b []float32) (at int, ok bool) {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i, true
		}
	}
	return 0, false
}

// sizes is how many sites a grouping has, and how many ranks the largest.
func sizes(n int) (sites, largest int) {
	counts := map[int32]int{}
	for _, site := range grouping(n) {
		counts[site]++
		largest = max(largest, counts[site])
	}
	return len(counts), largest
}

// cost is the number of messages and of values sent by all ranks in a round, from the formulas.
func cost(a Algorithm, n, values int) (messages, sent int) {
	participants, levels := 1, 0
	for 2*participants <= n {
		participants *= 2
		levels++
	}
	switch a {
	case AllToAll:
		return n * (n - 1), n * (n - 1) * values
	case Ring:
		return 2 * n * (n - 1), 2 * (n - 1) * values
	case Butterfly:
		return 2*participants*levels + 2*(n-participants), 2 * (n - 1) * values
	case Hierarchical:
		k, _ := sizes(n)
		return 2*(n-k) + 2*k*(k-1), 2 * (n - 1) * values
	}
	return 2 * (n - 1), 2 * (n - 1) * values
}

const large = 1_200_000

func TestSumIsExactEqualOnAllRanksAndCostsWhatTheFormulasSay(t *testing.T) {
	t.Parallel()
	for _, a := range algorithms {
		for n := 1; n <= 17; n++ {
			if testing.Short() && n > 5 {
				continue
			}
			sizes := []int{0, 1, n - 1, 1009}
			if (n == 3 || n == 8) && !testing.Short() {
				sizes = append(sizes, large)
			}
			for _, values := range sizes {
				rounds := 2
				if values == large {
					rounds = 1
				}
				r := newRehearsal(a, 0, n, rounds, false, whole(values))
				if err := r.check(rand.New(rand.NewPCG(uint64(n), uint64(values))), true); err != nil {
					t.Fatalf("%s of %d values over %d ranks: %v", a, values, n, err)
				}
				messages, sent := cost(a, n, values)
				if r.messages != rounds*messages || 4*r.values != rounds*4*sent {
					t.Errorf("%s of %d values over %d ranks: %d messages and %d bytes in %d rounds, want %d and %d",
						a, values, n, r.messages, 4*r.values, rounds, rounds*messages, rounds*4*sent)
				}
			}
		}
	}
}

func TestRanksHaveTheSameBitsInWhateverOrderChunksArrive(t *testing.T) {
	t.Parallel()
	for _, a := range algorithms {
		for _, overtaking := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/overtaking=%v", a, overtaking), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					n := rapid.IntRange(1, 17).Draw(t, "ranks")
					values := rapid.IntRange(0, 60).Draw(t, "values")
					segment := 0
					if a == Ring {
						segment = rapid.IntRange(0, 9).Draw(t, "segment")
					}
					var reference [][][]float32
					for _, far := range []struct{ apart, posted bool }{{}, {apart: true}, {apart: true, posted: true}} {
						r := newRehearsal(a, segment, n, 4, overtaking, rounded(values))
						r.apart, r.posted = far.apart, far.posted
						seed := rapid.Uint64().Draw(t, "order")
						if err := r.check(rand.New(rand.NewPCG(seed, 1)), false); err != nil {
							t.Fatal(err)
						}
						if reference == nil {
							reference = r.means
						}
						for round := range reference {
							if i, ok := differ(r.means[round][0], reference[round][0]); ok {
								t.Fatalf("round %d: value %d depends on the order of arrival", round, i)
							}
						}
					}
				})
			})
		}
	}
}

func TestSegmentsChangeNoBitOfTheSumAndBoundMessages(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 9; n++ {
		if testing.Short() && n > 4 {
			continue
		}
		for _, values := range []int{0, 5, 1009} {
			want := newRehearsal(Ring, 0, n, 1, false, rounded(values))
			if err := want.check(rand.New(rand.NewPCG(1, 1)), false); err != nil {
				t.Fatal(err)
			}
			for _, segment := range []int{1, 7, 100, 5000} {
				r := newRehearsal(Ring, segment, n, 1, false, rounded(values))
				if err := r.check(rand.New(rand.NewPCG(2, 2)), false); err != nil {
					t.Fatalf("segments of %d values: %v", segment, err)
				}
				if i, ok := differ(r.means[0][0], want.means[0][0]); ok {
					t.Errorf("%d values over %d ranks in segments of %d: value %d differs", values, n, segment, i)
				}
				for rank := range n {
					for _, m := range walk(Ring, n, rank, values, segment) {
						if m.high-m.low > segment {
							t.Errorf("%d values over %d ranks: a message of %d values, want at most %d", values, n,
								m.high-m.low, segment)
						}
					}
				}
			}
		}
	}
}

// What was sent may be written again only by chunks that depend on it, which the rehearsals show;
// that the moves never straddle what is in the output and what is not, this does.
func TestValuesOfAMoveAreInTheOutputAllOrNone(t *testing.T) {
	for _, a := range algorithms {
		for n := 2; n <= 33; n++ {
			for rank := range n {
				taken := make([]bool, 70)
				for i, m := range walk(a, n, rank, 70, 0) {
					for v := m.low; v < m.high; v++ {
						if taken[v] == m.first {
							t.Fatalf("%s, rank %d of %d: value %d of move %d is taken: %v, first: %v", a, rank, n, v, i,
								taken[v], m.first)
						}
					}
					for v := m.low; v < m.high && m.action != send; v++ {
						taken[v] = true
					}
				}
				if slices.Contains(taken, false) {
					t.Errorf("%s, rank %d of %d: a value is never taken in", a, rank, n)
				}
			}
		}
	}
}

// A rank of a ring reads from its own memory the first piece that it sends and the one whose sum it
// completes.
func TestRingSendsOnTheMemoryThatHasArrived(t *testing.T) {
	for n := 2; n <= 9; n++ {
		r := newRehearsal(Ring, 0, n, 1, false, whole(100))
		r.apart = true
		if err := r.check(rand.New(rand.NewPCG(1, 1)), true); err != nil {
			t.Fatal(err)
		}
		if want := n * 2 * (n - 2); r.passedOn != want {
			t.Errorf("%d ranks sent %d chunks on as they had arrived, want %d of %d", n, r.passedOn, want, r.messages)
		}
	}
}

func TestAllToAllSumsInTheOrderOfRanks(t *testing.T) {
	const n, values = 9, 50
	r := newRehearsal(AllToAll, 0, n, 1, true, rounded(values))
	if err := r.run(rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	want := rounded(values)(0, 0)
	for rank := 1; rank < n; rank++ {
		nn.AddScaled(want, 1, rounded(values)(rank, 0))
	}
	for rank, got := range r.means[0] {
		if i, ok := differ(got, want); ok {
			t.Errorf("value %d of rank %d is %v, in the order of ranks it is %v", i, rank, got[i], want[i])
		}
	}
}

// length counts the steps of a round, and the messages of its longest chain, in which
// each is sent after the one before has come.
func length(t *testing.T, a Algorithm, n int) (steps, chain int) {
	t.Helper()
	moves := make([][]move, n)
	at := make([]int, n)
	depth := make([]int, n)  // of what a rank holds
	sent := map[[4]int]int{} // depth of a chunk by sender, receiver, step and index
	numbers := map[int]bool{}
	for rank := range n {
		moves[rank] = walk(a, n, rank, 100, 0)
		for _, m := range moves[rank] {
			numbers[m.step] = true
		}
	}
	for progress := true; progress; {
		progress = false
		for rank := range n {
			for at[rank] < len(moves[rank]) {
				m := moves[rank][at[rank]]
				if m.action == send {
					d := depth[rank]
					if m.peer != rank {
						d++
					}
					sent[[4]int{rank, m.peer, m.step, m.index}] = d
				} else {
					d, ok := sent[[4]int{m.peer, rank, m.step, m.index}]
					if !ok {
						break
					}
					depth[rank] = max(depth[rank], d)
				}
				at[rank]++
				progress = true
			}
		}
	}
	for rank := range n {
		if at[rank] < len(moves[rank]) {
			t.Fatalf("%s over %d ranks: rank %d waits for what nobody sends", a, n, rank)
		}
		chain = max(chain, depth[rank])
	}
	return len(numbers), chain
}

func TestRoundTakesTheStepsOfItsCostRow(t *testing.T) {
	for n := 2; n <= 17; n++ {
		down := int(math.Floor(math.Log2(float64(n))))
		up := int(math.Ceil(math.Log2(float64(n))))
		butterfly := 2 * down
		if n != 1<<down {
			butterfly += 2
		}
		for i, want := range [][2]int{{1, 1}, {2 * (n - 1), 2 * (n - 1)}, {butterfly, butterfly}, {2 * up, 2 * down}} {
			if steps, chain := length(t, algorithms[i], n); steps != want[0] || chain != want[1] {
				t.Errorf("%s over %d ranks: %d steps and a chain of %d messages, want %v", algorithms[i], n, steps,
					chain, want)
			}
		}
		sites, largest := sizes(n)
		want := 2 * int(math.Ceil(math.Log2(float64(largest))))
		if sites > 1 {
			want += 2
		}
		if steps, chain := length(t, Hierarchical, n); steps != want || chain > want {
			t.Errorf("%d ranks in %d sites: %d steps and a chain of %d messages, want %d", n, sites, steps, chain, want)
		}
	}
}

func TestMeanIsTheSumDividedByItsWeightOnceOnAllRanks(t *testing.T) {
	for _, a := range algorithms {
		for n := 1; n <= 9; n++ {
			for _, weight := range []float32{1, 4, 0.5, 3, 0.3} {
				for _, far := range []struct{ apart, posted bool }{{}, {apart: true}, {apart: true, posted: true}} {
					segment := 0
					if a == Ring {
						segment = 40
					}
					r := newRehearsal(a, segment, n, 2, true, whole(1009))
					r.weight, r.apart, r.posted = weight, far.apart, far.posted
					if err := r.check(rand.New(rand.NewPCG(uint64(n), 1)), true); err != nil {
						t.Errorf("%s over %d ranks, weight %v: %v", a, n, weight, err)
					}
					if far.posted && n > 1 && r.landed == 0 {
						t.Errorf("%s over %d ranks: no chunk arrived where it belongs", a, n)
					}
				}
			}
		}
	}
}

// What ranks that complete a part of the sum do for it, together: an addition for each other rank,
// and a division.
func TestRanksShareTheWorkOfTheMean(t *testing.T) {
	const values = 1000
	for _, a := range algorithms {
		for n := 1; n <= 8; n++ {
			for _, weight := range []float32{1, 4, 3} {
				r := newRehearsal(a, 0, n, 1, false, whole(values))
				r.weight = weight
				if err := r.run(rand.New(rand.NewPCG(1, 1))); err != nil {
					t.Fatal(err)
				}
				copies := 1.0 // of the sum, made by different ranks
				if a == AllToAll {
					copies = float64(n)
				}
				want := copies * float64(n-1) * values
				if weight != 1 {
					want += copies * values
				}
				got := 0.0
				for _, x := range r.ranks {
					got += x.spent()
				}
				if got != want {
					t.Errorf("%s over %d ranks, weight %v: %v FLOPs, want %v", a, n, weight, got, want)
				}
			}
		}
	}
}

func TestMeanHasTheBitsOfADivision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOfN(rapid.Uint32(), 1, 50).Draw(t, "bits")
		weight := rapid.SampledFrom([]float32{2, 4, 1 << 20, 0.5, 3, 1.5, 7.25, 1 << 70, 1 << 127, 1e-30, 0x1p-140,
			float32(math.Inf(1))}).Draw(t, "weight")
		r := &reduction{weight: weight, factor: reciprocal(weight)}
		a, b, got := make([]float32, len(bits)), make([]float32, len(bits)), make([]float32, len(bits))
		for i := range bits {
			a[i], b[i] = math.Float32frombits(bits[i]), math.Float32frombits(bits[len(bits)-1-i])
		}
		r.add(&move{last: true}, got, a, b)
		for i := range got {
			sum := a[i] + b[i]
			if want := sum / weight; math.Float32bits(got[i]) != math.Float32bits(want) &&
				!(got[i] != got[i] && want != want) {
				t.Fatalf("(%v + %v) ÷ %v is %v, want %v", a[i], b[i], weight, got[i], want)
			}
		}
	})
}

func TestChunkThatNobodyWaitsForIsAnError(t *testing.T) {
	r := newReduction(&Architecture{Algorithm: Ring}, part{3, 1, 9}, nil)
	r.begin(protos.NewTensor(make([]float32, 9)), protos.NewTensor(make([]float32, 9)), 1)
	chunk := func(n int) *protos.Tensor { return protos.NewTensor(make([]float32, n)) }
	if err := r.take(1, tag{0, 0, 0}, chunk(3)); err != nil {
		t.Errorf("a chunk of the next round is refused: %v", err)
	}
	for _, c := range []struct {
		round uint64
		tag   tag
		size  int
		want  string
	}{
		{2, tag{0, 0, 0}, 3, "this rank is in round 0"},
		{math.MaxUint64, tag{0, 0, 0}, 3, "this rank is in round 0"},
		{0, tag{2, 0, 0}, 3, "no such chunk"},
		{0, tag{0, 0, 1}, 3, "no such chunk"},
		{0, tag{0, 0, 0}, 4, "4 values instead of 3"},
		{1, tag{0, 0, 0}, 3, "come before"},
	} {
		if err := r.take(c.round, c.tag, chunk(c.size)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("round %d, %+v, %d values: error %v, want %q", c.round, c.tag, c.size, err, c.want)
		}
	}
	r.next()
	if err := r.take(0, tag{0, 0, 0}, chunk(3)); err != nil {
		t.Fatal(err)
	}
	r.next()
	if err := r.take(0, tag{0, 0, 0}, chunk(3)); err == nil || !strings.Contains(err.Error(), "come before") {
		t.Errorf("a chunk that is used up: error %v", err)
	}
}

func TestScheduleRefusesWhatDoesNotExist(t *testing.T) {
	for name, call := range map[string]func(){
		"rank beyond":     func() { newSchedule(&Architecture{Algorithm: Ring}, part{3, 3, 1}, nil) },
		"negative rank":   func() { newSchedule(&Architecture{Algorithm: Ring}, part{3, -1, 1}, nil) },
		"negative values": func() { newSchedule(&Architecture{Algorithm: Ring}, part{3, 0, -1}, nil) },
		"no algorithm":    func() { newSchedule(&Architecture{Algorithm: "star"}, part{3, 0, 1}, nil) },
		"not chosen":      func() { newSchedule(&Architecture{Algorithm: Auto}, part{3, 0, 1}, nil) },
		"few sites": func() {
			newSchedule(&Architecture{Algorithm: Hierarchical}, part{3, 0, 1}, []int32{0, 0})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// BenchmarkReduction is a round of 8 ranks and 100,000 values without a network.
func BenchmarkReduction(b *testing.B) {
	for _, a := range algorithms {
		b.Run(string(a), func(b *testing.B) {
			const n, values = 8, 100_000
			r := newRehearsal(a, 0, n, 0, false, whole(values))
			r.pool.Poison = false
			for rank := range n {
				r.inputs[rank], r.outputs[rank] = r.pool.Copy(make([]float32, values)), r.pool.Get(values)
			}
			b.SetBytes(4 * values * n)
			b.ReportAllocs()
			for b.Loop() {
				r.round()
			}
		})
	}
}

// round makes a round with each rank going as far as it can, in turn.
func (r *rehearsal) round() {
	for rank, x := range r.ranks {
		x.begin(r.inputs[rank], r.outputs[rank], r.weight)
	}
	for left := r.n; left > 0; {
		for rank, x := range r.ranks {
			if x.input == nil {
				continue
			}
			r.exchange(rank)
			if !x.blocked() {
				x.finish()
				left--
			}
		}
	}
}

// exchange lets a rank go as far as it can and hands over what it sends.
func (r *rehearsal) exchange(rank int) {
	x := r.ranks[rank]
	for m, sends := x.next(); sends; m, sends = x.next() {
		piece := x.piece(&m)
		if m.peer == rank {
			x.keep(&m, piece)
		} else if err := r.ranks[m.peer].take(x.round, tag{rank, m.step, m.index}, piece); err != nil {
			panic(err)
		}
	}
}

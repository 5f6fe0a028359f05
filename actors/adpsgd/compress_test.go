package adpsgd_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/compress"
)

// chains are those that models can travel by.
var chains = []compress.Chain{{compress.Float16{}}, {compress.BFloat16{}}, {compress.Int(8)}, {compress.Int(4)},
	{compress.Blocks{Bits: 6, Block: 32, Rounding: compress.Stochastic}}, {compress.QSGD{Levels: 255}},
	{compress.Natural{}}}

// However much codes lose, the sum of all models remains, and the models come nearer to each other
// than codes are to what they stand for.
func TestAveragingOfCodesLeavesTheSumUnchanged(t *testing.T) {
	t.Parallel()
	for _, c := range graphs {
		for _, chain := range chains {
			s := simtest.Stage{Task: simtest.NewTask(c.nodes, 20, 0), Graph: c.graph,
				Kind: adpsgd.Architecture{Graph: c.kind, Lead: -1, Compress: chain}, Distinct: true, Strict: true}
			for step := range 100 {
				s.Looks = append(s.Looks, time.Duration(step)*simtest.StepTime+simtest.StepTime/2)
			}
			var initial []simtest.Seen
			for i := range c.nodes {
				own := *s.Task
				own.Seed += uint64(1000 * i)
				initial = append(initial, simtest.Seen{Params: own.Initial()})
			}
			want, _ := simtest.Total(initial)
			looks := s.Run(t)
			for k, look := range looks {
				if sum, _ := simtest.Total(look); !(simtest.Distance(sum, want) <= 2e-6) {
					t.Errorf("%s, %T: the sum has moved at look %d", c.name, chain[0], k)
					break
				}
			}
			if a, b := simtest.Spread(initial), simtest.Spread(looks[99]); !(b < 0.5*a) {
				t.Errorf("%s, %T: the models were %g apart and are %g apart", c.name, chain[0], a, b)
			}
		}
	}
}

// A pair of one exchange, written out.
func TestExchangeMovesBothByHalfTheDifferenceOfTheirCodes(t *testing.T) {
	chain := compress.Chain{compress.Int(4)}
	s := simtest.Stage{Task: simtest.NewTask(2, 20, 0), Distinct: true, Looks: []time.Duration{simtest.StepTime / 2},
		Kind: adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1, Compress: chain}}
	look := s.Run(t)[0]
	a, b := *s.Task, *s.Task
	b.Seed += 1000
	x, y := a.Initial(), b.Initial()
	p, q := decoded(chain, x), decoded(chain, y)
	for i := range x {
		if u, v := x[i]+(q[i]-p[i])/2, y[i]+(p[i]-q[i])/2; look[0].Params[i] != u || look[1].Params[i] != v {
			t.Fatalf("value %d: %v and %v, want %v and %v", i, look[0].Params[i], look[1].Params[i], u, v)
		}
	}
}

// decoded is what the code of a vector stands for.
func decoded(chain compress.Chain, x []float32) []float32 {
	e, d := chain.NewEncoder(len(x), nil, compress.None, nil), chain.NewDecoder(len(x), nil, compress.None)
	code, y := make([]float32, e.Size()), make([]float32, len(x))
	e.Encode(code, x)
	if err := d.Decode(y, code); err != nil {
		panic(err)
	}
	return y
}

func TestCodesReachTheLossOfPlainDescent(t *testing.T) {
	const rate, steps = 0.05, 300
	for i, chain := range chains {
		c := graphs[i%len(graphs)]
		task := simtest.NewTask(c.nodes, 60, rate)
		want := loss(task, plain(t, task, rate, steps))
		first := loss(task, task.Initial())
		s := simtest.Stage{Task: task, Graph: c.graph, Looks: []time.Duration{steps * simtest.StepTime},
			Kind: adpsgd.Architecture{Graph: c.kind, Lead: -1, Compress: chain},
			Edge: link.Uniform{Max: 150 * time.Millisecond}}
		for node, m := range s.Run(t)[0] {
			if l := loss(task, m.Params); !(l-want < 0.15*(first-want)) {
				t.Errorf("%s, %T: node %d has a loss of %.3f, plain descent %.3f from %.3f", c.name, chain[0], node, l,
					want, first)
			}
		}
	}
}

func TestCodesDependNotOnProcessors(t *testing.T) {
	for i, chain := range chains {
		c := graphs[i%len(graphs)]
		var results []string
		for procs := 1; procs <= 2; procs++ {
			s := simtest.Stage{Task: simtest.NewTask(c.nodes, 40, 0.1), Graph: c.graph, Threads: procs,
				Kind: adpsgd.Architecture{Graph: c.kind, Lead: 2, Compress: chain},
				Edge: link.Uniform{Max: 300 * time.Millisecond}, Looks: []time.Duration{4 * time.Second}}
			before := runtime.GOMAXPROCS(procs)
			models := s.Run(t)
			runtime.GOMAXPROCS(before)
			results = append(results, fmt.Sprint(s.Result.Digest, models))
		}
		if results[0] != results[1] {
			t.Errorf("%T: digests or models differ between 1 and 2 processors", chain[0])
		}
	}
}

// Peers that come and go in the midst of exchanges leave nobody waiting, and no code behind.
func TestNobodyStandsStillWhereCodesTravel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		c := graphs[int(seed)%len(graphs)]
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(c.nodes, 20, 0.1), Graph: c.graph, Detect: 100 * time.Millisecond,
			Reorder: seed%2 == 0, Observer: r, Strict: seed%3 == 0, Edge: link.Uniform{Max: 200 * time.Millisecond},
			Kind: adpsgd.Architecture{Graph: c.kind, Lead: -1, Compress: chains[int(seed)%len(chains)]}}
		s.Task.Seed = seed
		s.Shake(rand.New(rand.NewPCG(seed, 4)), 14, 4200*time.Millisecond)
		s.Looks = []time.Duration{15 * time.Second}
		look := s.Run(t)[0]
		if lagging := r.Lagging(look, 10*time.Second, 10); lagging != nil {
			t.Errorf("seed %d, %s: in the last 5 s nodes %v have made fewer than 10 steps", seed, c.name, lagging)
		}
	}
}

func TestStepWithCodesAllocatesNothing(t *testing.T) {
	simtest.ExpectNoAllocations(t, warm, 3000, func(watch *simtest.Stopwatch) {
		s := six(0)
		s.Kind = adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1, Compress: compress.Chain{compress.Int(8)}}
		s.Pace(t, watch)
	})
}

const small = `
seed: 5
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: ad-psgd}
nodes: [{name: peer, count: 4, compute: {speed: 10 MFLOP/s}}]
network: {topology: ring, default: {delay: 5ms}}
stop: {time: 1s}
`

func TestBytesOfARecordAreThoseOfCodes(t *testing.T) {
	bytes := func(set ...string) (messages, size int64) {
		p, err := driver.Parse("small.yaml", []byte(small), set...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := driver.Run(context.Background(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		if err != nil {
			t.Fatal(err)
		}
		return r.Runs[0].Messages, r.Runs[0].Bytes
	}
	const params = 93*21 + 21 + 21*5 + 5
	messages, dense := bytes()
	for chain, words := range map[string]int64{
		"float16":                 params / 2,
		"{kind: int4}":            (params+255)/256 + (params*4+31)/32,
		"natural":                 (params*9 + 31) / 32,
		"{kind: qsgd, levels: 7}": 1 + (params*4+31)/32,
	} {
		n, size := bytes("architecture.compress={models: [" + chain + "]}")
		heads := float64(dense)/float64(messages) - 4*params // in the mean, some have other numbers
		if got := float64(size)/float64(n) - heads; !(math.Abs(got-float64(4*words)) < 1) {
			t.Errorf("%s: a message has %g bytes beside its head, want %d", chain, got, 4*words)
		}
	}
}

func TestCompressionThatMakesNoSenseIsRefused(t *testing.T) {
	const part = "what keeps a part of the values alone is for gradients and differences: a model without most of " +
		"its values is none; d-psgd with choco sends differences of models"
	for set, want := range map[string]string{
		"{models: [{kind: top-k, share: 1%}]}":          part,
		"{models: [{kind: random-k, share: 1%}, int8]}": part,
		"{models: [powersgd]}":                          part,
		"{models: [int8, float16]}":                     "what writes values with fewer bits comes last, and once",
		"{up: [float16]}":                               `unknown key "up" (accepted: models)`,
	} {
		for _, kind := range []string{"ad-psgd", "gossip"} {
			p, err := driver.Parse("small.yaml", []byte(small), "architecture={kind: "+kind+", compress: "+set+"}")
			if err == nil {
				err = p.Check(nil)
			}
			if err == nil || !strings.Contains(err.Error(), "architecture.compress") ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: error %v, want %q", kind, set, err, want)
			}
		}
	}
	a := adpsgd.Default()
	a.Compress = compress.Chain{compress.Sign{}, compress.Sign{}}
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), "comes last") {
		t.Errorf("two quantisers: %v", err)
	}
}

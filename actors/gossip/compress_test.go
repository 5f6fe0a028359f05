package gossip_test

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/nn/compress"
)

// chains are those that models can travel by.
var chains = []compress.Chain{{compress.Float16{}}, {compress.BFloat16{}}, {compress.Int(8)}, {compress.Int(4)},
	{compress.Blocks{Bits: 6, Block: 32, Rounding: compress.Stochastic}}, {compress.QSGD{Levels: 255}},
	{compress.Natural{}}}

func TestCodesTrainAndDependNotOnProcessors(t *testing.T) {
	for i, chain := range chains {
		for _, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull} {
			var digest uint64
			var models [][]float32
			for procs := 1; procs <= 2; procs++ {
				s := &stage{task: newTask(6, 40, 8, 12, 3), rules: all(exchange, i%2 == 0), threads: procs,
					steps: []time.Duration{9 * ms, 10 * ms}, edge: link.Uniform{Min: ms, Max: 8 * ms}, end: 3000 * ms}
				s.rules.Choice.Share, s.rules.Compress = 0.4, chain
				before := runtime.GOMAXPROCS(procs)
				got := s.run(t)
				runtime.GOMAXPROCS(before)
				if models == nil {
					digest, models = s.result.Digest, got
				}
				if digest != s.result.Digest || !cmp.Equal(models, got) {
					t.Errorf("%T, %s: digest %x, want %x", chain[0], exchange, s.result.Digest, digest)
				}
				loss := func(params []float32) float64 {
					return s.task.NewEvaluator(s.task.TestSamples(), 1).Evaluate(params).Loss
				}
				first := loss(s.task.Initial())
				for peer, m := range got {
					if after := loss(m); !(after < 0.7*first) {
						t.Errorf("%T, %s: the loss of peer %d went from %g to %g", chain[0], exchange, peer, first,
							after)
					}
				}
			}
		}
	}
}

const small = `
seed: 5
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: gossip, exchange: pull}
nodes: [{name: peer, count: 4, compute: {speed: 10 MFLOP/s}}]
network: {default: {delay: 5ms}}
stop: {time: 1s}
`

// A pull takes a small message, and a model that answers it.
func TestBytesOfARecordAreThoseOfCodes(t *testing.T) {
	pair := func(set ...string) float64 {
		p, err := driver.Parse("small.yaml", []byte(small), set...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := driver.Run(context.Background(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		if err != nil {
			t.Fatal(err)
		}
		return 2 * float64(r.Runs[0].Bytes) / float64(r.Runs[0].Messages)
	}
	const params = 93*21 + 21 + 21*5 + 5
	dense := pair()
	for chain, words := range map[string]float64{
		"float16":                 params / 2,
		"{kind: int4}":            (params+255)/256 + (params*4+31)/32,
		"natural":                 (params*9 + 31) / 32,
		"{kind: qsgd, levels: 7}": 1 + (params*4+31)/32,
	} {
		want := dense - 4*(params-words)
		// At the end one of a pair may be missing: up to four answers.
		if got := pair("architecture.compress={models: [" + chain + "]}"); !(math.Abs(got-want) < 0.02*want) {
			t.Errorf("%s: a pull takes %g bytes, want %g", chain, got, want)
		}
	}
}

func TestModelsWithoutMostValuesAreRefused(t *testing.T) {
	a := gossip.Default()
	a.Compress = compress.Chain{compress.TopK{Share: 0.1}, compress.Int(8)}
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), "a model without most of its values is none") {
		t.Errorf("error %v", err)
	}
}

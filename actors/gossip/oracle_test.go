package gossip_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
)

// plain is a second, dumb implementation: a list of things to do, in the order of time, and
// vectors. It is told which neighbours were chosen, and makes no difference between a step and what
// follows it, because nothing but steps and links takes time.
type plain struct {
	task    *train.Task
	rules   gossip.Architecture
	step    func(i int) time.Duration
	delay   func(i, j int) time.Duration
	choices [][]int // of each peer, one after the other
	size    int     // of a choice

	todo    []thing
	now     time.Duration
	models  [][]float32
	done    []int // steps
	pending []int
}

type thing struct {
	at time.Duration
	do func()
}

func (p *plain) after(d time.Duration, do func()) { p.todo = append(p.todo, thing{p.now + d, do}) }

func (p *plain) run(end time.Duration) [][]float32 {
	for i := range p.task.Workers {
		p.models = append(p.models, p.task.Initial())
		p.done, p.pending = append(p.done, 0), append(p.pending, 0)
		p.begin(i)
	}
	for {
		next := 0
		for k, t := range p.todo {
			if t.at < p.todo[next].at {
				next = k
			}
		}
		t := p.todo[next]
		if t.at > end {
			return p.models
		}
		p.todo = slices.Delete(p.todo, next, next+1)
		p.now = t.at
		t.do()
	}
}

func (p *plain) begin(i int) {
	old := slices.Clone(p.models[i])
	p.after(p.step(i), func() {
		sampler, err := datasets.NewSampler(p.task.Train, p.task.Shards[i], p.task.Batch, p.task.Seed,
			p.task.Workers[i])
		if err != nil {
			panic(err)
		}
		x, y := make([]float32, p.task.Batch*p.task.Train.Inputs), make([]int32, p.task.Batch)
		n := sampler.Fill(p.done[i]/sampler.Steps(), p.done[i]%sampler.Steps(), x, y)
		gradient := make([]float32, len(old))
		p.task.Model.NewWorkspace(p.task.Batch).Gradient(old, gradient,
			nn.Batch{X: x[:n*p.task.Train.Inputs], Y: y[:n]})
		p.task.Method.New(len(old)).Step(p.models[i], p.models[i], gradient) // plain SGD remembers nothing
		p.done[i]++
		if p.done[i]%p.rules.Every == 0 {
			p.exchange(i)
		}
		if p.pending[i] == 0 {
			p.begin(i)
		}
	})
}

func (p *plain) exchange(i int) {
	chosen := p.choices[i][:p.size]
	p.choices[i] = p.choices[i][p.size:]
	sent := slices.Clone(p.models[i])
	if p.rules.Wait {
		p.pending[i] = len(chosen)
	}
	over := func() {
		if p.rules.Wait {
			if p.pending[i]--; p.pending[i] == 0 {
				p.begin(i)
			}
		}
	}
	for _, j := range chosen {
		p.after(p.delay(i, j), func() {
			answer := slices.Clone(p.models[j])
			if p.rules.Exchange != gossip.Pull {
				p.average(j, sent)
			}
			if p.rules.Exchange == gossip.Push {
				over()
				return
			}
			p.after(p.delay(j, i), func() {
				p.average(i, answer)
				over()
			})
		})
	}
}

func (p *plain) average(i int, other []float32) {
	if chain := p.rules.Compress; chain != nil {
		e, d := chain.NewEncoder(len(other), nil, compress.None, nil), chain.NewDecoder(len(other), nil, compress.None)
		code := make([]float32, e.Size())
		e.Encode(code, other)
		other = make([]float32, len(other))
		if err := d.Decode(other, code); err != nil {
			panic(err)
		}
	}
	for k := range other {
		p.models[i][k] = (p.models[i][k] + other[k]) / 2
	}
}

func TestModelsAreThoseOfPlainLoopsToTheLastBit(t *testing.T) {
	for _, chain := range []compress.Chain{nil, {compress.BFloat16{}}, {compress.Int(4)}} {
		modelsAreThoseOfPlainLoops(t, chain)
	}
}

func modelsAreThoseOfPlainLoops(t *testing.T, chain compress.Chain) {
	t.Helper()
	delay := func(i, j int) time.Duration {
		return time.Duration(1_000_003*(7*i+3*j+1) + 101*i*i + 17*j)
	}
	step := func(i int) time.Duration { return 10*ms + time.Duration(1_234_567*i) }
	const end = 299 * ms
	for peers := 3; peers <= 5; peers++ {
		for _, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull} {
			for every := 1; every <= 2; every++ {
				wait := (peers+every)%2 == 0
				events := &log{}
				s := &stage{task: newTask(peers, 10, 3, 4, 3, 3), rules: all(exchange, wait), threads: every - 1,
					observer: events, end: end}
				s.rules.Every, s.rules.Compress = every, chain
				s.rules.Choice.Share = 0.5
				p := &plain{task: s.task, rules: s.rules, step: step, delay: delay, size: (peers - 1 + 1) / 2,
					choices: make([][]int, peers)}
				for i := range peers {
					s.steps = append(s.steps, step(i))
				}
				s.links = func(n *link.Network) {
					for i := range peers {
						for j := range peers {
							n.Set(int32(i), int32(j), link.Config{Delay: constant(delay(i, j))})
						}
					}
				}
				got := s.run(t)
				for _, e := range *events {
					if e.Kind == actors.Selected {
						p.choices[e.node] = append(p.choices[e.node], e.Origin)
					}
				}

				want := p.run(end)
				name := fmt.Sprintf("%d peers, %s, every %d, wait %v, %T", peers, exchange, every, wait, chain)
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("%s: peer %d has other parameters than plain loops give", name, i)
					}
					if n := len(events.of(i, actors.StepDone)); n != p.done[i] || n < 4 || len(p.choices[i]) > 0 {
						t.Errorf("%s: peer %d made %d steps, plain loops %d", name, i, n, p.done[i])
					}
				}
				if slices.Equal(want[0], want[1]) || slices.Equal(want[0], s.task.Initial()) {
					t.Errorf("%s: nothing is told apart here", name)
				}
			}
		}
	}
}

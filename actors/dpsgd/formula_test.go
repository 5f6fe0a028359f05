package dpsgd_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

var graphs = []struct {
	name  string
	graph actors.Graph
}{
	{"ring", actors.Graph{{1, 5}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {0, 4}}},
	{"star", actors.Graph{{1, 2, 3, 4}, {0}, {0}, {0}, {0}}},
	{"complete", actors.Graph{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}},
	{"grid", actors.Graph{{1, 3}, {0, 2, 4}, {1, 5}, {0, 4}, {1, 3, 5}, {2, 4}}},
	{"random regular", actors.Graph{{1, 3, 6}, {0, 4, 7}, {3, 5, 6}, {0, 2, 4}, {1, 3, 5}, {2, 4, 7}, {0, 2, 7},
		{1, 5, 6}}},
}

// matrix is W by the formula of the Metropolis weights, on the graph as a whole.
func matrix(g actors.Graph) [][]float64 {
	w := make([][]float64, len(g))
	for i := range g {
		w[i] = make([]float64, len(g))
		w[i][i] = 1
		for _, j := range g[i] {
			w[i][j] = 1 / (1 + math.Max(float64(len(g[i])), float64(len(g[j]))))
			w[i][i] -= w[i][j]
		}
	}
	return w
}

// loop is the dumb second implementation: all models as one matrix.
type loop struct {
	task  *train.Task
	w     [][]float64
	rate  float64
	moved float64
	x     [][]float64
	seeds []uint64
	known [][]float64 // x̂
	sent  int
}

func newLoop(task *train.Task, w [][]float64, rate, moved float64, distinct bool) *loop {
	l := &loop{task: task, w: w, rate: rate, moved: moved, known: make([][]float64, len(w))}
	for i := range w {
		own := *task
		if distinct {
			own.Seed += uint64(1000 * i)
		}
		var row []float64
		for _, v := range own.Initial() {
			row = append(row, float64(v))
		}
		l.x, l.seeds = append(l.x, row), append(l.seeds, own.Seed)
	}
	return l
}

// gradient is node i's at its present model, for its batch of a step.
func (l *loop) gradient(i, step int) []float32 {
	s, err := datasets.NewSampler(l.task.Train, l.task.Shards[i], l.task.Batch, l.seeds[i], l.task.Workers[i])
	if err != nil {
		panic(err)
	}
	x, y := make([]float32, s.Batch()*l.task.Train.Inputs), make([]int32, s.Batch())
	n := s.Fill(step/s.Steps(), step%s.Steps(), x, y)
	params := make([]float32, len(l.x[i]))
	for k, v := range l.x[i] {
		params[k] = float32(v)
	}
	g := make([]float32, len(params))
	l.task.Model.NewWorkspace(n).Gradient(params, g, nn.Batch{X: x[:n*l.task.Train.Inputs], Y: y[:n]})
	return g
}

// step computes X ← X + (W − I) X̂ − γ G.
func (l *loop) step(step int) {
	next := make([][]float64, len(l.x))
	for i, row := range l.x {
		square := 0.0
		for k := range l.known[i] {
			square += (row[k] - l.known[i][k]) * (row[k] - l.known[i][k])
		}
		if l.known[i] == nil || l.moved == 0 || math.Sqrt(square) > l.moved {
			l.known[i] = row
			l.sent++
		}
	}
	for i := range l.x {
		g := l.gradient(i, step)
		next[i] = make([]float64, len(g))
		for k := range g {
			next[i][k] = l.x[i][k] - l.known[i][k] - l.rate*float64(g[k])
			for j := range l.w {
				next[i][k] += l.w[i][j] * l.known[j][k]
			}
		}
	}
	l.x = next
}

func worst(models []simtest.Seen, x [][]float64) float64 {
	d := 0.0
	for i, m := range models {
		row := make([]float64, len(m.Params))
		for k, v := range m.Params {
			row[k] = float64(v)
		}
		d = math.Max(d, simtest.Distance(row, x[i]))
	}
	return d
}

func TestEqualsTheMatrixFormula(t *testing.T) {
	t.Parallel()
	const rate, steps = 0.1, 100
	for _, c := range graphs {
		for _, lead := range []int{-1, 0} {
			task := simtest.NewTask(len(c.graph), 60, rate)
			l := newLoop(task, matrix(c.graph), rate, 0, true)
			for step := range steps {
				l.step(step)
			}
			s := simtest.Stage{Task: task, Graph: c.graph, Kind: dpsgd.Architecture{Lead: lead}, Distinct: true,
				Strict: true, Looks: []time.Duration{steps*simtest.StepTime + simtest.StepTime/2}}
			d := worst(s.Run(t)[0], l.x)
			t.Logf("%s, lead %d: distance %.1e", c.name, lead, d)
			if !(d <= 1e-6) {
				t.Errorf("%s, lead %d: distance %.1e from the formula, want at most 1e-6", c.name, lead, d)
			}
		}
	}
}

// Steps of very different lengths and links slower than steps change when, and not what.
func TestSlowLinksAndNodesChangeNoBit(t *testing.T) {
	t.Parallel()
	for _, c := range graphs {
		task := simtest.NewTask(len(c.graph), 60, 0.1)
		want := map[string][]float32{}
		for i, delay := range []link.Delay{nil, link.Uniform{Min: time.Millisecond, Max: 700 * time.Millisecond}} {
			s := simtest.Stage{Task: task, Graph: c.graph, Kind: dpsgd.Architecture{Lead: -1}, Distinct: true,
				Edge: delay, Reorder: i == 1, Strict: true}
			for k := range c.graph {
				s.Step = append(s.Step, time.Duration(20+180*i*k)*time.Millisecond)
			}
			for at := range 300 {
				s.Looks = append(s.Looks, time.Duration(at+1)*20*time.Millisecond)
			}
			same := 0
			for _, look := range s.Run(t) {
				for node, m := range look {
					key := fmt.Sprint(node, " ", m.Version)
					if before, ok := want[key]; !ok && i == 0 {
						want[key] = m.Params
					} else if ok {
						same++
						for k := range before {
							if before[k] != m.Params[k] {
								t.Fatalf("%s: model of node %d after step %d differs", c.name, node, m.Version)
							}
						}
					}
				}
			}
			if i == 1 && same < 50 {
				t.Errorf("%s: %d models compared, want at least 50", c.name, same)
			}
		}
	}
}

func TestModelsThatHaveNotMovedAreNotSent(t *testing.T) {
	const rate, steps, moved = 0.1, 100, 0.2
	for _, c := range graphs {
		task := simtest.NewTask(len(c.graph), 60, rate)
		l := newLoop(task, matrix(c.graph), rate, moved, true)
		for step := range steps {
			l.step(step)
		}
		s := simtest.Stage{Task: task, Graph: c.graph, Kind: dpsgd.Architecture{Lead: -1, Moved: moved}, Distinct: true,
			Strict: true, Looks: []time.Duration{steps*simtest.StepTime + simtest.StepTime/2}}
		d := worst(s.Run(t)[0], l.x)
		t.Logf("%s: distance %.1e, %d of %d models sent", c.name, d, l.sent, steps*len(c.graph))
		if !(d <= 1e-6) {
			t.Errorf("%s: distance %.1e from the formula, want at most 1e-6", c.name, d)
		}
		if l.sent > steps*len(c.graph)*2/3 {
			t.Errorf("%s: %d of %d models sent: the bound tests nothing", c.name, l.sent, steps*len(c.graph))
		}
	}
}

func TestGivenMatrixIsUsed(t *testing.T) {
	const rate, steps = 0.1, 50
	w := [][]float64{{0.7, 0.3, 0, 0}, {0.3, 0.2, 0.5, 0}, {0, 0.5, 0.5, 0}, {0, 0, 0, 1}}
	task := simtest.NewTask(4, 60, rate)
	l := newLoop(task, w, rate, 0, true)
	for step := range steps {
		l.step(step)
	}
	s := simtest.Stage{Task: task, Kind: dpsgd.Architecture{Lead: -1, Matrix: w}, Distinct: true, Strict: true,
		Looks: []time.Duration{steps*simtest.StepTime + simtest.StepTime/2}}
	if d := worst(s.Run(t)[0], l.x); !(d <= 1e-6) {
		t.Errorf("distance %.1e from the formula, want at most 1e-6", d)
	}
}

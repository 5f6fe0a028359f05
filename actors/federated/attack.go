package federated

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// Falsified is what the record calls the number, so far, of updates that an attacker has falsified,
// at the attacker's node.
const Falsified = "updates falsified"

// Poison says how an attacker falsifies its updates.
type Poison string

// The attacks, on an update Δ that was honestly computed unless said otherwise.
const (
	// SignFlip sends −s·Δ.
	SignFlip Poison = "sign-flip"
	// Noise sends values of a normal distribution instead, of a deviation s times the root mean
	// square of Δ (P. Blanchard et al., NeurIPS 2017, section 5).
	Noise Poison = "noise"
	// LabelFlip sends s·Δ, learned from labels c − 1 − y of the c classes (V. Tolpegin et al.,
	// "Data Poisoning Attacks Against Federated Learning Systems", ESORICS 2020, has pairs of
	// classes).
	LabelFlip Poison = "label-flip"
	// Little sends Δ − zσ (G. Baruch, M. Baruch and Y. Goldberg, "A Little Is Enough: Circumventing
	// Defenses For Distributed Learning", NeurIPS 2019, algorithm 3), see [attacker] for σ.
	Little Poison = "little-is-enough"
)

// Attack says which clients attack, and how.
type Attack struct {
	// Kind is one of the attacks.
	Kind Poison `plan:"kind" words:"sign-flip|noise|label-flip|little-is-enough" doc:"what an attacker sends instead of its update Δ: −s·Δ; normal noise of s times its root mean square; s·Δ of labels c − 1 − y; Δ − s·σ, where σ is how much Δ deviates by its batches, 0 of one batch (Baruch et al. 2019)"`
	// Share is that of the clients, rounded to the nearest number of them; Nodes names them. One of
	// the two is given.
	Share float64  `plan:"share,omitzero" unit:"fraction" range:">0%..100%" either:"share|nodes" doc:"how many of the clients attack, drawn by the seed"`
	Nodes []string `plan:"nodes,omitzero" either:"share|nodes" doc:"names of the clients that attack, or of groups of them"`
	// Scale is s; 0 stands for 1, and of Little for what the paper computes.
	Scale float64 `plan:"scale,omitzero" range:">0" doc:"s; default: 1, of little-is-enough what the paper computes of the numbers of clients and attackers"`
}

// who are the names of the clients that attack, among all of a run in the order of the plan, in the
// order of these. A name that is not a client's stands for all of its group: itself and a number.
func (a *Attack) who(seed uint64, clients []string) (names []string) {
	if a.Nodes == nil {
		order := rand.New(actors.Source(seed, actors.Coordinator, "attackers")).Perm(len(clients))
		order = order[:a.drawn(len(clients))]
		slices.Sort(order)
		for _, i := range order {
			names = append(names, clients[i])
		}
		return names
	}
	for _, client := range clients {
		if slices.ContainsFunc(a.Nodes, func(name string) bool { return means(name, client, clients) }) {
			names = append(names, client)
		}
	}
	return names
}

// means reports whether a name of a plan, of a node or a group, means a client.
func means(name, client string, clients []string) bool {
	if slices.Contains(clients, name) {
		return name == client
	}
	return ofGroup(name, client)
}

// drawn is how many of a number of clients a share is.
func (a *Attack) drawn(clients int) int { return int(math.Round(a.Share * float64(clients))) }

// fit returns an error about a name that is none of a client, or about a list or a share of none.
func (a *Attack) fit(clients []string) error {
	switch {
	case a.Nodes == nil && a.drawn(len(clients)) == 0:
		return field.Errorf(*a, "Share", "more; of %d clients it is none", len(clients))
	case a.Nodes != nil && len(a.Nodes) == 0:
		return field.Errorf(*a, "Nodes", "one name at least")
	}
	for _, name := range a.Nodes {
		if !slices.ContainsFunc(clients, func(client string) bool { return means(name, client, clients) }) {
			return field.Errorf(*a, "Nodes", "names of clients or of their groups; %q is none", name)
		}
	}
	return nil
}

// scale is s for a number of clients, some of whom attack. Of Little it is z, by which m attackers
// may deviate and still find k = ⌊n/2 + 1⌋ − m honest clients of n farther from the mean, with whom
// they are more than half: the point up to which (n − m − k) ÷ (n − m) of a normal distribution
// are.
func (a *Attack) scale(clients, attackers int) float64 {
	switch {
	case a.Scale > 0:
		return a.Scale
	case a.Kind != Little:
		return 1
	}
	honest := float64(max(clients-attackers, 1))
	needed := min(max(float64(clients/2+1-attackers), 1), honest/2) // so that z is finite, and 0 at least
	return math.Sqrt2 * math.Erfinv(1-2*needed/honest)
}

// attacker is what makes a client one.
//
// A little is enough needs the deviation of updates among clients. Attackers here have no channel
// to each other, nor see what honest clients send, so that each takes its own update for the mean,
// and for the deviation that of a sum of its K local steps, each of which is by another batch: the
// root of K times their variance. With one step in a round nothing is known of it, and the update
// stays honest.
type attacker struct {
	env     actors.Env
	kind    Poison
	scale   float64
	squares []float32 // of the steps of this round; of Little alone
	sent    int       // updates
}

// attacker makes a client's, or returns nil for an honest one.
func (a *Attack) attacker(env actors.Env, task *train.Task, local *train.Local) *attacker {
	if a == nil {
		return nil
	}
	all := a.who(task.Seed, task.Workers)
	if !slices.Contains(all, env.View().Members[env.Node()].Name) {
		return nil
	}
	if a.Kind == LabelFlip {
		local.Mislabel()
	}
	return &attacker{env: env, kind: a.Kind, scale: a.scale(len(task.Workers), len(all))}
}

// hold returns the model that a step begins with, held for watch; nil if nobody asks for it.
func (a *attacker) hold(model *protos.Tensor) *protos.Tensor {
	if a == nil || a.kind != Little {
		return nil
	}
	return model.Retain()
}

// watch sees what a step of the round has made of the model that was held, and gives that up.
func (a *attacker) watch(before, after *protos.Tensor, step int) {
	if before == nil {
		return
	}
	if a.squares == nil {
		a.squares = make([]float32, len(after.Data))
	}
	if step == 0 {
		clear(a.squares)
	}
	for k, v := range after.Data {
		d := before.Data[k] - v
		a.squares[k] += float32(d * d)
	}
	before.Release()
	a.env.Charge(3 * float64(len(after.Data)))
}

// falsify makes of an update of a number of steps what is sent instead.
func (a *attacker) falsify(delta []float32, steps int) {
	if a == nil {
		return
	}
	switch a.kind {
	case SignFlip:
		nn.Scale(delta, float32(-a.scale))
	case LabelFlip:
		nn.Scale(delta, float32(a.scale))
	case Noise:
		a.noise(delta)
	case Little:
		a.little(delta, float64(steps))
	}
	a.env.Charge(float64(len(delta)))
	a.sent++
	a.env.Record(actors.Event{Kind: actors.Measured, Name: Falsified, Value: float64(a.sent)})
}

func (a *attacker) noise(delta []float32) {
	sum := 0.0
	for _, v := range delta {
		sum += float64(v) * float64(v)
	}
	deviation, random := a.scale*math.Sqrt(sum/float64(len(delta))), a.env.Rand("noise of an attack")
	for k := range delta {
		delta[k] = float32(random.NormFloat64() * deviation)
	}
}

func (a *attacker) little(delta []float32, steps float64) {
	for k, v := range delta {
		// Steps · Σ(d − d̄)² ÷ (steps − 1), of steps d whose sum is the update.
		if spread := steps*float64(a.squares[k]) - float64(v)*float64(v); steps > 1 && spread > 0 {
			delta[k] = float32(float64(v) - a.scale*math.Sqrt(spread/(steps-1)))
		}
	}
}

package drill

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
)

// MeansWeighed watches the rounds of FedAvg.
var MeansWeighed = Invariant{"means-weighed",
	"where updates count by their nodes' samples, the model is what a separate mean in float64 makes of them",
	meansWeighed}

// meansWeighed computes the model of a ledger run again, from the updates that the events name: a
// node's parameters gain its steps times its share of the samples of all nodes in that round. The
// server sends its model when the coordinator's request arrives, between Judged and End, and an event
// is at the end of the time that its handler charges. So the model is at most one round older than
// the events until Judged, and one round newer than those until End.
func meansWeighed(w *Watch) (bool, string) {
	t := w.Count
	steps, n := float64(conserved(t).Weighed), classes(t)
	if steps == 0 || t.Failure != nil || len(t.Models) != 1 || n != len(t.Stage.Workers()) {
		return false, ""
	}
	server := t.Models[0].Node
	goes := func(c world.NodeChange) bool { return c.Node == server && c.Do != world.Pause }
	rounds, oldest, newest := taken(t, server)
	if slices.ContainsFunc(t.Stage.Deployment.Schedule, goes) || len(rounds) == 0 {
		return false, ""
	}
	gained, closest, how := make([]float64, n), math.Inf(1), ""
	for k := range len(rounds) + 1 {
		if k >= oldest-1 && k <= newest+1 {
			if off, what := apart(t.Models[0].Params, gained, k); off < closest {
				closest, how = off, what
			}
		}
		if k < len(rounds) {
			all := 0.0
			for _, class := range rounds[k] {
				all += float64(len(t.Stage.Task.Shards[class]))
			}
			for _, class := range rounds[k] {
				gained[class] += steps * float64(len(t.Stage.Task.Shards[class])) / all
			}
		}
	}
	return true, how
}

// taken returns the nodes whose updates a server has applied, by round, as indices of the workers. The
// events until Judged tell oldest rounds, and those until End newest.
func taken(t *experiment.Trial, server int) (rounds [][]int, oldest, newest int) {
	workers, version := t.Stage.Workers(), uint64(0)
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind != actors.UpdateApplied || e.Node != server {
			continue
		}
		if e.Version != version || len(rounds) == 0 {
			rounds, version = append(rounds, nil), e.Version
			if e.At <= t.Judged {
				oldest = len(rounds)
			}
			if e.At <= t.End {
				newest = len(rounds)
			}
		}
		rounds[len(rounds)-1] = append(rounds[len(rounds)-1], slices.Index(workers, e.Origin))
	}
	return rounds, oldest, newest
}

// apart is how far a model is from what its parameters should have gained, and what is wrong if
// that is more than float32 rounds off in so many rounds.
func apart(params []float32, gained []float64, rounds int) (off float64, how string) {
	bound := float64(rounds+1) * level / (1 << 23)
	for i, v := range params {
		want := level + gained[i%len(gained)]
		if d := math.Abs(float64(v) - want); d > off {
			if off = d; d > bound {
				how = fmt.Sprintf("parameter %d is %v after %d rounds, and the weighted mean of the updates makes it "+
					"%v", i, v, rounds, want)
			}
		}
	}
	return off, how
}

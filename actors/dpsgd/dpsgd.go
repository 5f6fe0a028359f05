// Package dpsgd implements decentralised parallel stochastic gradient descent: peers without a
// server, each with its own model, average with their neighbours after every step (X. Lian et al.,
// "Can Decentralized Algorithms Outperform Centralized Algorithms? A Case Study for Decentralized
// Parallel Stochastic Gradient Descent", NIPS 2017, algorithm 1):
//
//	x_i ← Σ_j W_ij x_j − γ ∇F_i(x_i)
//
// with the gradient at the model before averaging. In step k a peer sends its model to all
// its neighbours and computes its gradient meanwhile; it averages when the gradient and all
// neighbours' models of the step are there. A neighbour may be one step ahead. There is no
// other barrier.
//
// All topologies of the run together fix W, absent nodes included. If one node of a pair is absent,
// or the present topology does not link the pair, each of the two adds the pair's weight to its
// own. So W stays doubly stochastic over the present nodes. A pair that comes together agrees on
// the step from which it averages: the first that neither has begun. The present nodes may fall
// apart into several parts, as a ring does when two nodes leave it. Then each part goes on at its
// own pace. When a node that joins links the parts again, the part that is ahead stands still at
// that step until the other one has caught up.
//
// No peer waits for ever, because all peers number steps alike: a peer that waits for a neighbour's
// model of a step is at that step, and the neighbour is behind it. So waits go from higher steps to
// lower ones, never round a cycle. A peer at the lowest step waits only for its gradient and, if
// the lead is bounded, for clocks that are under way. Pairs could instead fix an offset between
// separate counts, and would not stand still to catch up. But around a cycle of the topology,
// offsets agreed on at different times need not add up to 0, and then a peer waits for a later step
// that is its own.
//
// Averaging keeps the sum over all peers. The sum changes when a peer crashes and takes its model
// along, when a peer joins, and when a pair is parted after one of the two has averaged a step and
// before the other has.
//
// The architecture needs every model: a run over links that lose messages for good comes to a
// standstill.
package dpsgd

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn/compress"
)

// RolePeer is the only role of the architecture.
const RolePeer = "peer"

// Architecture is D-PSGD.
type Architecture struct {
	// Matrix is W, by the positions of the nodes; nil stands for the Metropolis weights of the
	// edges that any topology of the run has.
	Matrix [][]float64 `plan:"matrix" words:"metropolis" doc:"metropolis, or a list of rows: the weights by which peers average"`
	// Moved is the distance ε ≥ 0 that a model must have moved, since its peer sent it last, to be
	// sent again; otherwise an empty message says that it has not. Neighbours then go on with the
	// model x̂ that they know:
	//
	//	x_i ← x_i + Σ_j W_ij (x̂_j − x̂_i) − γ ∇F_i(x_i)
	//
	// (N. Singh et al., "SPARQ-SGD: Event-Triggered and Compressed Communication in Decentralized
	// Optimization", CDC 2020, algorithm 1, with a consensus step size of 1 and no compression; A.
	// Koloskova, S. Stich and M. Jaggi, "Decentralized Stochastic Optimization and Gossip
	// Algorithms with Compressed Communication", ICML 2019). The distance is Euclidean. With 0
	// every model is sent.
	Moved float64 `plan:"moved" range:"0.." counts:"moved=steps" doc:"send the model again only after it has moved by more than this (Euclidean norm of the parameters); 0 sends always; checked after every step"`
	// Lead bounds how many steps a peer may be ahead of the slowest of all; −1 means no bound but
	// the one step between neighbours. With a bound, the present peers must be connected, so that
	// they hear of each other.
	Lead int `plan:"lead" range:"0.." none:"-1" counts:"lead=steps" doc:"steps that a peer may be ahead of the slowest when it begins another; default: one step between neighbours, no other bound"`
	// Choco compresses what neighbours are sent.
	Choco Choco `key:"choco"`
	// Track has each peer step with an estimate of the mean gradient of all peers, which it
	// exchanges beside its model:
	//
	//	y_i ← Σ_j W_ij y_j + ∇F_i(x_i) − ∇F_i(x_i of the step before)
	//	x_i ← Σ_j W_ij x_j − γ y_i
	//
	// so that peers with different data agree where there is a gradient of theirs left (P. Di
	// Lorenzo and G. Scutari, "NEXT: In-Network Nonconvex Optimization", 2016; A. Nedić, A.
	// Olshevsky and W. Shi, "Achieving Geometric Convergence for Distributed Optimization over
	// Time-Varying Graphs", SIAM J. Optimization 27(4), 2017; with batches S. Pu and A. Nedić,
	// "Distributed Stochastic Gradient Tracking Methods", Mathematical Programming 187, 2021).
	// Trackers begin anew in a view in which peers have come or gone.
	Track bool `plan:"track" doc:"gradient tracking: peers step with an estimate of the mean gradient of all, which they exchange beside the model; for skewed data"`
}

// Choco is CHOCO-SGD: neighbours are sent the compressed difference of the model from what they
// know of it, x̂, and average what they know:
//
//	x̂_i ← x̂_i + C(x_i − x̂_i)
//	x_i ← x_i + Rate · Σ_j W_ij (x̂_j − x̂_i) − γ ∇F_i(x_i)
//
// (A. Koloskova, S. Stich and M. Jaggi, "Decentralized Stochastic Optimization and Gossip
// Algorithms with Compressed Communication", ICML 2019, algorithm 2, with the gradient at the model
// before averaging, as D-PSGD has it). Without Compress and with a Rate of 1 it is D-PSGD.
type Choco struct {
	// Compress is C; empty sends models as they are.
	Compress compress.Chain `key:"compress"`
	// Rate is the consensus step size; 0 stands for 1. The more is lost, the smaller it has to be.
	Rate float64 `plan:"rate" range:">0..1" doc:"consensus step size: the more compression loses, the smaller it has to be; the step is that of CHOCO-SGD of 2020: gradients are at a model before it is averaged, and the average is of what the neighbours know of each other from the step before"`
}

var _ train.Architecture = Architecture{}

// Default averages by the Metropolis weights after every step, without a bound on the lead.
func Default() Architecture { return Architecture{Lead: -1} }

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := field.Check(a); err != nil {
		return err
	}
	if a.Choco.Rate != 0 {
		if err := field.Within(a, "Choco", field.Check(a.Choco)); err != nil {
			return err
		}
	}
	if a.Track && (a.Moved > 0 || a.Choco.Compress != nil) {
		return field.Errorf(a, "Track", "left out where moved or choco: {compress} has models travel otherwise")
	}
	if a.Matrix == nil {
		return nil
	}
	return peers.CheckMixing(a.Matrix)
}

// Roles is the one role of all nodes: each trains and holds a model.
func (a Architecture) Roles() []train.Role {
	return []train.Role{{Name: RolePeer, Doc: "computes gradients on its shard and averages models with its neighbours",
		Trains: true, Holds: true, Min: 1}}
}

var _ train.Fitter = Architecture{}

// Fit returns an error where the matrix does not fit the nodes and the topologies.
func (a Architecture) Fit(first, _ *actors.View) error {
	for i := range a.Matrix {
		if err := peers.CheckMixingRow(first.Ever(), a.Matrix, i); err != nil {
			return err
		}
	}
	return nil
}

// Kind makes a peer. It fails for an Architecture that is not valid, and for a matrix
// that does not fit the nodes and the topology.
func (a Architecture) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		return newPeer(env, task, a)
	}
}

// mixing is the whole matrix, which only the peer that records its spectral gap needs.
func (a Architecture) mixing(view *actors.View) (*peers.Mixing, error) {
	if a.Matrix != nil {
		return peers.GivenMixing(view, a.Matrix)
	}
	return peers.Metropolis(view), nil
}

package catalog

import (
	"cmp"

	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/gaia"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/gossiplearning"
	"github.com/gradwire/gradwire/actors/innetwork"
	"github.com/gradwire/gradwire/actors/local"
	"github.com/gradwire/gradwire/actors/noloco"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn/compress"
)

func addConsistencies(c *Catalog) {
	m := &c.Consistencies
	m.Declare("asp", consistency.ASP{}, "asynchronous: no worker waits for another")
	m.Declare("bsp", consistency.BSP{}, "bulk-synchronous: a round begins when all have finished the one before")
	m.Declare("ssp", consistency.SSP{}, "stale-synchronous: a worker waits while it is more than bound rounds ahead "+
		"of the slowest (Ho et al. 2013)")
	m.Declare("dssp", consistency.DSSP{}, "ssp whose bound moves between low and high with the workers' speeds "+
		"(Zhao et al. 2019)")
	m.Declare("bounded-delay", consistency.BoundedDelay{Tasks: -1}, "a worker does not wait for answers, but for "+
		"all rounds more than bound before to be finished everywhere (Li et al. 2014)")
}

func addArchitectures(c *Catalog) {
	a := &c.Architectures
	addServer(a)
	addReduction(a)
	a.Declare("in-network", innetwork.Default(), "switches sum gradients on their way (SwitchML, Sapio et al. 2021)")
	a.Refuse("in-network", "compress", "a sum of codes is no code; values travel as integers of 32 bits")
	addFederated(c)
	addMirrors(a)
	addPeers(c)
	for _, name := range a.names() {
		a.SetExact(name)
	}
}

func addServer(a *Kinds[train.Architecture]) {
	type server struct {
		Consistency  *syntax.Node    `plan:"consistency" names:"consistency" doc:"when a worker may go on"`
		Architecture ps.Architecture `plan:",inline"`
		Compress     *syntax.Node    `plan:"compress" names:"compress" doc:"what is done to gradients and models before they travel"`
	}
	a.Add(Define("parameter-server",
		"one or several servers hold the model, workers push gradients and pull parameters, with a consistency from "+
			"synchronous to asynchronous, whatever the network's topology",
		func() server { return server{Consistency: named("kind", "asp"), Architecture: ps.Default()} },
		func(c *Catalog, s *server) (_ train.Architecture, err error) {
			a := &s.Architecture
			if a.Consistency, s.Consistency, err = c.Consistencies.readWord(c, s.Consistency); err != nil {
				return nil, err
			}
			a.Compress, err = c.compression(&s.Compress)
			return *a, cmp.Or(err, a.Validate())
		}))
}

func addReduction(a *Kinds[train.Architecture]) {
	type reduction struct {
		Preset       string                  `plan:"preset,omitzero" words:"local-sgd|slowmo|diloco|streaming-diloco|sparta" doc:"a name for some of the settings below, which plan show spells out; others in the plan count instead of its own"`
		Architecture collective.Architecture `plan:",inline"`
		Outer        *syntax.Node            `plan:"outer" names:"optimizer" doc:"with reduce: models, what makes a step of the joint model, for the mean of what it is above the workers' own as a gradient; default: the joint model is the mean of these, as with sgd of rate 1"`
		Compress     *syntax.Node            `plan:"compress" names:"compress-up" doc:"what is done to gradients or models before they travel, with algorithm: all-to-all, which auto then is"`
	}
	reduced := Define("all-reduce",
		"workers without a server average gradients, or models, among all of them every N steps, synchronously; "+
			"over whatever links its algorithm needs; the network's topology does not restrict them",
		func() reduction { return reduction{Architecture: collective.Default()} },
		func(c *Catalog, s *reduction) (_ train.Architecture, err error) {
			a := &s.Architecture
			if s.Outer != nil {
				if a.Outer, s.Outer, err = c.Optimizers.readWord(c, s.Outer); err == nil {
					err = ownSteps(a.Outer)
				}
				if err != nil {
					return nil, err
				}
			}
			a.Compress, a.Feedback, err = c.upward(&s.Compress)
			return *a, cmp.Or(err, a.Validate())
		})
	reduced.presets = collective.Presets
	a.Add(reduced)
}

func addMirrors(a *Kinds[train.Architecture]) {
	type mirrors struct {
		Consistency  *syntax.Node      `plan:"consistency" names:"consistency" doc:"when a worker may go on, by the clocks of its site"`
		Architecture gaia.Architecture `plan:",inline"`
	}
	a.Add(Define("gaia",
		"sites with a parameter server each, which send each other significant updates alone (Hsieh et al. 2017)",
		func() mirrors { return mirrors{named("kind", "bsp"), gaia.Default()} },
		func(c *Catalog, s *mirrors) (_ train.Architecture, err error) {
			a := &s.Architecture
			a.Consistency, s.Consistency, err = c.Consistencies.readWord(c, s.Consistency)
			return *a, cmp.Or(err, a.Validate())
		}))
	a.Refuse("gaia", "compress", "updates between sites are sparse, and others travel whole")
}

// wholeModels declares an architecture whose peers send whole models, which set has compressed.
func wholeModels[A interface {
	train.Architecture
	Validate() error
}](c *Catalog, name, doc string, defaults A, set func(*A, compress.Chain)) {
	type peers struct {
		Architecture A            `plan:",inline"`
		Compress     *syntax.Node `plan:"compress" names:"compress-models" doc:"what is done to models before they travel"`
	}
	c.Architectures.Add(Define(name, doc, func() peers { return peers{Architecture: defaults} },
		func(c *Catalog, s *peers) (train.Architecture, error) {
			chain, err := c.whole(&s.Compress)
			set(&s.Architecture, chain)
			return s.Architecture, cmp.Or(err, s.Architecture.Validate())
		}))
}

// addFederated adds federated learning.
func addFederated(c *Catalog) {
	type rounds struct {
		Preset       string                 `plan:"preset,omitzero" words:"fedavg|fedprox|fednova|scaffold|fedavgm|fedadam|fedyogi|fedasync|fedbuff" doc:"a name for some of the settings below, which plan show spells out; others in the plan count instead of its own"`
		Architecture federated.Architecture `plan:",inline"`
		Outer        *syntax.Node           `plan:"outer" names:"optimizer" doc:"what the server makes a step with in each round, for the mean of the updates as a gradient; the schedule of its rate counts these steps"`
	}
	k := Define("federated", "a server draws clients for rounds of local steps, and takes in the "+
		"weighted mean of what they have learned, whatever the network's topology",
		func() rounds {
			return rounds{Architecture: federated.Default(), Outer: flow("{kind: sgd, rate: 1, weight-decay: 0}")}
		},
		func(c *Catalog, s *rounds) (_ train.Architecture, err error) {
			a := &s.Architecture
			if a.Outer, s.Outer, err = c.Optimizers.readWord(c, s.Outer); err != nil {
				return nil, err
			}
			return *a, cmp.Or(ownSteps(a.Outer), a.Validate())
		})
	k.presets = federated.Presets
	c.Architectures.Add(k)
	c.Architectures.Refuse("federated", "compress", "models and updates travel whole")
}

// addPeers adds the architectures in which peers keep a model each.
func addPeers(c *Catalog) {
	a := &c.Architectures
	wholeModels(c, "gossip", "peers without a server exchange their models with some of their neighbours, every N "+
		"steps or with a period", gossip.Default(),
		func(a *gossip.Architecture, chain compress.Chain) { a.Compress = chain })
	type averaging struct {
		Architecture dpsgd.Architecture `plan:",inline"`
		Choco        *syntax.Node       `plan:"choco" names:"choco" doc:"CHOCO-SGD: neighbours are sent compressed differences"`
	}
	a.Add(Define("d-psgd",
		"peers without a server average models with all their neighbours after every step (Lian et al. 2017)",
		func() averaging { return averaging{Architecture: dpsgd.Default()} },
		func(c *Catalog, s *averaging) (_ train.Architecture, err error) {
			a := &s.Architecture
			a.Choco, err = c.choco(&s.Choco)
			return *a, cmp.Or(err, a.Validate())
		}))
	wholeModels(c, "ad-psgd", "peers without a server average models with one random neighbour at a time and wait "+
		"for nobody else (Lian et al. 2018)", adpsgd.Default(),
		func(a *adpsgd.Architecture, chain compress.Chain) { a.Compress = chain })
	a.Declare("gossip-learning", gossiplearning.Default(), "models walk from peer to peer, each updates those that "+
		"visit it and merges them with others, and predicts by the newest or by a vote (Ormándi et al. 2013)")
	a.Declare("noloco", noloco.Default(), "peers make local steps, and then exchange models in random pairs, or small "+
		"groups, with an outer momentum, whatever the network's topology (Kolehmainen et al. 2025)")
	a.Declare("local", local.Architecture{}, "the baseline: peers train alone and exchange nothing")
	a.Refuse("d-psgd", "compress", "models travel whole; write choco: {compress: […]}, which sends compressed "+
		"differences of them")
	a.Refuse("gossip-learning", "compress", "models travel whole; gossip has compressed ones")
	a.Refuse("noloco", "compress", "models travel whole; gossip has compressed ones")
	a.Refuse("local", "compress", "there is nothing to compress: peers send nothing")
}

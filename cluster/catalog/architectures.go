package catalog

import (
	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/local"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
)

func addArchitectures(ks *Kinds[train.Architecture]) {
	ks.Add(Declare[train.Architecture]("parameter-server", ps.Default(),
		"one server holds the model, workers push gradients and pull parameters, asynchronously, whatever the "+
			"network's topology"))
	ks.Add(Declare[train.Architecture]("all-reduce", collective.Default(),
		"workers without a server average gradients, or models, among all of them every so many steps, synchronously; "+
			"over whatever links its algorithm needs, which the network's topology does not restrict"))
	ks.Add(Declare[train.Architecture]("gossip", gossip.Default(),
		"peers without a server exchange their models with some of their neighbours, every so many steps or with a "+
			"period"))
	ks.Add(Declare[train.Architecture]("d-psgd", dpsgd.Default(),
		"peers without a server average models with all their neighbours after every step (Lian et al. 2017)"))
	ks.Add(Declare[train.Architecture]("ad-psgd", adpsgd.Default(),
		"peers without a server average models with one random neighbour at a time and wait for nobody else "+
			"(Lian et al. 2018)"))
	ks.Add(Declare[train.Architecture]("local", local.Architecture{},
		"the baseline: peers train alone and exchange nothing"))
}

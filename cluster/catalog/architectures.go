package catalog

import (
	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/local"
	"github.com/gradwire/gradwire/actors/ps"
)

func addArchitectures(c *Catalog) {
	a := &c.Architectures
	a.Declare("parameter-server", ps.Default(),
		"one server holds the model, workers push gradients and pull parameters, asynchronously, whatever the "+
			"network's topology")
	a.Declare("all-reduce", collective.Default(),
		"workers without a server average gradients, or models, among all of them every N steps, synchronously; "+
			"over whatever links its algorithm needs; the network's topology does not restrict them")
	a.Declare("gossip", gossip.Default(),
		"peers without a server exchange their models with some of their neighbours, every N steps or with a "+
			"period")
	a.Declare("d-psgd", dpsgd.Default(),
		"peers without a server average models with all their neighbours after every step (Lian et al. 2017)")
	a.Declare("ad-psgd", adpsgd.Default(),
		"peers without a server average models with one random neighbour at a time and wait for nobody else "+
			"(Lian et al. 2018)")
	a.Declare("local", local.Architecture{}, "the baseline: peers train alone and exchange nothing")
}

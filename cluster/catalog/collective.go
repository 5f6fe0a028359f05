package catalog

import (
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
)

// addCollectives adds the architectures whose workers reduce vectors among themselves.
func addCollectives(c *Catalog) {
	type allReduce struct {
		Algorithm string  `plan:"algorithm" words:"all-to-all|ring|butterfly|tree" doc:"the way that vectors take among the workers"`
		Segment   int     `plan:"segment" range:"0.." doc:"values of a message at most, 0 for no bound; with algorithm: ring, where it lets messages overlap with sums"`
		Every     int     `plan:"every" range:"1..1048576" doc:"steps between two reductions"`
		Reduce    string  `plan:"reduce" words:"gradients|models" doc:"what is averaged"`
		Moved     float64 `plan:"moved" range:"0.." doc:"models are averaged only when one has moved by more than this (Euclidean norm) since the last time; with reduce: models"`
	}
	c.Architectures.Add(Define("all-reduce", "workers without a server average gradients, or models, among all of them every so many steps, synchronously; over whatever links its algorithm needs, which the network's topology does not restrict",
		func() allReduce {
			return allReduce{Algorithm: string(collective.Ring), Every: 1, Reduce: string(collective.Gradients)}
		},
		func(_ *Catalog, s *allReduce) (train.Architecture, error) {
			a := collective.Architecture{
				Algorithm: collective.Algorithm(s.Algorithm), Segment: s.Segment, Every: s.Every, Reduce: collective.Reduce(s.Reduce), Moved: s.Moved,
			}
			return a, a.Validate()
		}))
}

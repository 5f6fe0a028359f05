package gossip

// Counts are what a Rule may know of a model.
type Counts struct {
	// Age is the number of updates that the model is made of, along the longest way: a merged
	// model has the larger of the two ages, an update adds one (Ormándi et al. 2013, algorithm 3).
	Age uint64
	// Steps is how many steps the peer that holds or has sent the model has finished.
	Steps uint64
	// Merged is how many models the receiver has merged since its own last step; 0 for the
	// model that arrives.
	Merged int
}

// Rule is the receiver's own decision how much a model that arrives counts. A program can
// supply its own; it must not remember anything, since all peers share it.
type Rule interface {
	// Weight returns the share w, from 0 to 1, of the arriving model in the merged one:
	// own ← (1−w)·own + w·arriving.
	Weight(own, arriving Counts) float64
}

// Mean counts both models half on each arrival (Ormándi et al. 2013, algorithm 3, MERGE).
type Mean struct{}

// Weight implements Rule.
func (Mean) Weight(Counts, Counts) float64 { return 0.5 }

// Age weighs each model by its age, w = arriving/(own + arriving); two models of age 0 count half
// each. This is mergeAverage of Hegedűs, Danner and Jelasity 2019 ("Gossip learning as a
// decentralized alternative to federated learning").
type Age struct{}

// Weight implements Rule.
func (Age) Weight(own, arriving Counts) float64 {
	if own.Age == 0 && arriving.Age == 0 {
		return 0.5
	}
	return float64(arriving.Age) / (float64(own.Age) + float64(arriving.Age))
}

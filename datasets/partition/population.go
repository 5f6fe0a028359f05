package partition

import (
	"fmt"
	"strconv"

	"github.com/gradwire/gradwire/datasets"
)

// Population says which samples each client of a population has.
type Population interface {
	// Rows returns the rows of a client, counted from 0, in ascending order. Nobody may change
	// them.
	Rows(client int) []int32
}

// Over splits a set over a number of clients, as Assign does over as many workers. The clients of
// Drawn take no memory. A split that names its workers, or by which some client would have no
// samples, is an error.
func Over(s Split, set *datasets.Set, clients int, seed uint64) (Population, error) {
	switch split := s.(type) {
	case Drawn:
		return split.over(set, seed)
	case Classes, Column, File:
		return nil, fmt.Errorf("the split names workers, which a population of %d clients does not have; accepted "+
			"are iid, shards, dirichlet and drawn", clients)
	}
	if clients > set.Len() {
		return nil, fmt.Errorf("the split gives each sample to one client, and data set %q has %d samples for %d "+
			"clients; drawn splits a set over any number", set.Name, set.Len(), clients)
	}
	names := make([]string, clients)
	for i := range names {
		names[i] = "client" + strconv.Itoa(i+1)
	}
	assigned, err := s.Assign(set, names, seed)
	return listed(assigned), err
}

// listed has the rows of each client in a list.
type listed [][]int32

// Rows implements Population.
func (l listed) Rows(client int) []int32 { return l[client] }

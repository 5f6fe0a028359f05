// Package examples has the plans of this folder, so that a program can bring them along.
package examples

import "embed"

// Files are the plans that any program can run, with the files that they name, by their paths from
// this folder. Plans of the programs in this folder, which add to the catalog, are not among them.
//
//go:embed *.yaml async-ps-unequal-links/*.yaml between-sites/*.yaml consistency/*.yaml
//go:embed federated/*.yaml gossip-learning/*.yaml in-network/*.yaml in-network/*.csv
//go:embed intermittent-links/*.yaml
//go:embed links/*.yaml links/*.csv many-gossip-peers/*.yaml slow-worker/*.yaml
var Files embed.FS

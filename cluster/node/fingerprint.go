package node

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/cluster/catalog"
)

// fingerprint distinguishes catalogs that give plans different meanings, as far as names and
// settings show.
func fingerprint(c *catalog.Catalog) string {
	d := xxhash.New()
	sum(d, c.Models)
	sum(d, c.Layers)
	sum(d, c.Datasets)
	sum(d, c.Splits)
	sum(d, c.Optimizers)
	sum(d, c.Schedules)
	sum(d, c.Architectures)
	sum(d, c.Consistencies)
	sum(d, c.Compressors)
	sum(d, c.Delays)
	sum(d, c.LinkRates)
	sum(d, c.Topologies)
	return fmt.Sprintf("%016x", d.Sum64())
}

// sum adds the kinds of one sort, in the order of their names.
func sum[T any](d *xxhash.Digest, kinds catalog.Kinds[T]) {
	all := slices.SortedFunc(slices.Values(kinds.All()),
		func(a, b catalog.Kind[T]) int { return cmp.Compare(a.Name, b.Name) })
	_, _ = d.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(all))))
	for _, k := range all {
		_, _ = d.WriteString(k.Name + "\x00" + k.Settings() + "\x00")
	}
}

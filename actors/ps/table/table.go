// Package table implements tables of a parameter server: ordered 64-bit keys with a vector of
// float32 values each, which clients push to and pull from by key ranges and key lists (M. Li et
// al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, section 3).
//
// A table is cut into contiguous ranges of keys, its shards. In a run a [Server] holds some of
// them, and hands them over when servers join or leave in order; a [Client] in another actor leads
// to them. What pushed values do to stored ones says the table's [Update]. Shards have replicas on
// other servers if [shards.Servers] says so: a push is answered when all of them have taken it in,
// and what was answered outlives as many crashes at a time.
//
// Push, Pull and PushPull return a [Timestamp] at once. When the task starts is a matter of the
// bounded delay τ and of the tasks that it names; when it has finished, [Client.Receive] says so.
package table

import (
	"fmt"
	"math"

	"github.com/gradwire/gradwire/actors/ps/shards"
)

// Table is a table of keys. All who take part in it, servers and clients, are given the same.
type Table struct {
	// Name tells it from other tables.
	Name string
	// Keys is how many keys there can be, 0 to Keys−1; 0 stands for all of 64 bits, for sparse
	// tables alone.
	Keys uint64
	// Width is how many values a key has, at least 1.
	Width int
	// Sparse tables have a vector for a key once it was pushed to; until then it is the initial
	// one. Dense tables have all from the start.
	Sparse bool
	// Initial writes the vector that a key begins with; nil stands for zeros.
	Initial func(key uint64, vector []float32)
	// Update says what pushed values do.
	Update Update
	// Shards is how many shards of equal ranges there are. 0 stands for 1 with one server, and
	// otherwise for as many as [shards.Servers] says, for sparse tables 16 for each server.
	Shards int
}

// mostRows bounds the keys that a shard has values of.
const mostRows = math.MaxInt32

// Validate returns an error that names the table and what is wrong with it.
func (t *Table) Validate() error {
	wrong := ""
	switch {
	case t.Name == "":
		wrong = "it needs a name"
	case t.Width < 1:
		wrong = fmt.Sprintf("keys of %d values; accepted is 1 and more", t.Width)
	case t.Update == nil:
		wrong = "it needs an update"
	case t.Shards < 0:
		wrong = fmt.Sprintf("%d shards; accepted is 0 and more", t.Shards)
	case !t.Sparse && (t.Keys == 0 || t.Keys > mostRows/uint64(t.Width)):
		wrong = fmt.Sprintf("%d keys of %d values; a dense table has 1 to %d values", t.Keys, t.Width, mostRows)
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("table %q: %s", t.Name, wrong)
}

// last is the last key.
func (t *Table) last() uint64 { return t.Keys - 1 }

// initial writes the vector that a key begins with.
func (t *Table) initial(key uint64, vector []float32) {
	clear(vector)
	if t.Initial != nil {
		t.Initial(key, vector)
	}
}

const mostShards = 1 << 16 // of all tables

// Layout is how tables are cut into shards.
type Layout struct {
	tables  []*Table
	servers shards.Servers
	base    []int    // by table: its first shard
	size    []uint64 // by table: keys of a shard; the last one may have fewer
	shards  int
}

// NewLayout cuts tables for a number of servers, those included that join later. The settings say
// how large the shards of dense tables are, and where shards are placed; nil stands for the
// defaults. An error names the table that does not fit.
func NewLayout(tables []*Table, s *shards.Servers, servers int) (*Layout, error) {
	l := &Layout{tables: tables}
	if l.servers.SetDefaults(); s != nil {
		l.servers = *s
	}
	if err := s.Fit(servers); err != nil {
		return nil, err
	}
	for i, t := range tables {
		if err := t.Validate(); err != nil {
			return nil, err
		}
		for _, before := range tables[:i] {
			if before.Name == t.Name {
				return nil, fmt.Errorf("two tables have the name %q", t.Name)
			}
		}
		size := l.keysOf(t, s, servers)
		l.base, l.size = append(l.base, l.shards), append(l.size, size)
		n := t.last()/size + 1
		if n > mostShards || l.shards+int(n) > mostShards {
			return nil, fmt.Errorf("table %q: %d shards; accepted are up to %d of all tables", t.Name, n, mostShards)
		}
		l.shards += int(n)
	}
	if l.shards == 0 {
		return nil, fmt.Errorf("there is no table")
	}
	return l, nil
}

// keysOf is how many keys a shard of a table has.
func (l *Layout) keysOf(t *Table, s *shards.Servers, servers int) uint64 {
	parts := uint64(t.Shards)
	if parts == 0 && (servers > 1 || s != nil) {
		parts = uint64(shards.PerServer * max(servers, 1))
	}
	parts = max(parts, 1)
	size := t.last()/parts + 1
	if size == 0 { // one shard of all of 64 bits
		size = math.MaxUint64
	}
	if t.Shards > 0 || t.Sparse {
		return size
	}
	vector := shards.ValueBytes * uint64(t.Width)
	if l.servers.Shard > 0 {
		return min(max(uint64(l.servers.Shard)/vector, 1), t.Keys)
	}
	if parts > 1 {
		size = min(size, max(shards.MostBytes/vector, 1))
	}
	return size
}

// Shards is the number of shards of all tables.
func (l *Layout) Shards() int { return l.shards }

// table is the table of a shard, and the first and last of the shard's keys.
func (l *Layout) table(shard int) (t *Table, first, last uint64) {
	i := len(l.tables) - 1
	for l.base[i] > shard {
		i--
	}
	t = l.tables[i]
	first = uint64(shard-l.base[i]) * l.size[i]
	last = first + (l.size[i] - 1)
	if last < first || last > t.last() {
		last = t.last()
	}
	return t, first, last
}

// find is the position of a table.
func (l *Layout) find(name string) (int, error) {
	for i, t := range l.tables {
		if t.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no table %q", name)
}

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/protos"
)

// Keys names keys of a table, cut by shards: a range, or an ordered list. It never changes, and can
// be used for any number of tasks.
type Keys struct {
	table  *Table
	count  int // of keys; −1 for a range of a sparse table, of which only those with values are pulled
	ranged bool
	pieces []piece
}

// piece is what of some keys belongs to one shard.
type piece struct {
	shard       int
	first, last uint64 // of a range
	low, high   int    // positions among the keys
	hash        uint64 // of a list; 0 for a range
	list        *protos.Tensor
}

// Len is how many keys there are, −1 for a range of a sparse table.
func (k *Keys) Len() int { return k.count }

// Range is the keys first to last of a table, both included.
func (l *Layout) Range(table string, first, last uint64) (*Keys, error) {
	i, err := l.find(table)
	if err != nil {
		return nil, err
	}
	t, size := l.tables[i], l.size[i]
	if first > last || last > t.last() {
		return nil, fmt.Errorf("keys %d to %d; table %q has 0 to %d", first, last, table, t.last())
	}
	k := &Keys{table: t, ranged: true, count: -1}
	if !t.Sparse {
		k.count = int(last - first + 1)
	}
	for shard := first / size; shard <= last/size; shard++ {
		at := l.base[i] + int(shard)
		_, low, high := l.table(at)
		low, high = max(low, first), min(high, last)
		p := piece{shard: at, first: low, last: high}
		if !t.Sparse {
			p.low, p.high = int(low-first), int(high-first)+1
		}
		k.pieces = append(k.pieces, p)
	}
	return k, nil
}

// List is a list of keys of a table, each above the one before.
func (l *Layout) List(table string, keys []uint64) (*Keys, error) {
	i, err := l.find(table)
	if err != nil {
		return nil, err
	}
	t, size := l.tables[i], l.size[i]
	if len(keys) == 0 {
		return nil, fmt.Errorf("no keys of table %q", table)
	}
	k := &Keys{table: t, count: len(keys)}
	for n, key := range keys {
		if key > t.last() || n > 0 && key <= keys[n-1] {
			return nil, fmt.Errorf("key %d at place %d; keys of table %q ascend from 0 to %d", key, n, table, t.last())
		}
		shard := l.base[i] + int(key/size)
		if m := len(k.pieces); m > 0 && k.pieces[m-1].shard == shard {
			k.pieces[m-1].high = n + 1
			continue
		}
		k.pieces = append(k.pieces, piece{shard: shard, low: n, high: n + 1})
	}
	var buffer []byte
	for n := range k.pieces {
		p := &k.pieces[n]
		_, first, _ := l.table(p.shard)
		buffer = appendKeys(buffer[:0], keys[p.low:p.high], first)
		p.hash, p.list = hashOf(buffer), protos.NewTensor(wordsOf(buffer))
	}
	return k, nil
}

// hashOf names a list; never 0.
func hashOf(list []byte) uint64 { return max(xxhash.Sum64(list), 1) }

// appendKeys appends ascending keys as they travel: each as the varint of its distance from the
// first one possible, then from the one that follows the key before.
func appendKeys(to []byte, keys []uint64, first uint64) []byte {
	for _, key := range keys {
		to = binary.AppendUvarint(to, key-first)
		first = key + 1
	}
	return to
}

// wordsOf are bytes as the bits of values, four in each, little-endian, the last filled up with
// zeros.
func wordsOf(list []byte) []float32 {
	words := make([]float32, (len(list)+3)/4)
	for i := range words {
		var four [4]byte
		copy(four[:], list[4*i:])
		words[i] = math.Float32frombits(binary.LittleEndian.Uint32(four[:]))
	}
	return words
}

// bytesOf appends the bytes of words.
func bytesOf(to []byte, words []float32) []byte {
	for _, w := range words {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(w))
	}
	return to
}

var errList = errors.New("a list of keys that is none of its shard")

// keysOf reads a list of count keys, none below first or above last. It appends them to to, and
// returns the bytes that they took beside.
func keysOf(to []uint64, words []float32, count, first, last uint64) (keys []uint64, list []byte, err error) {
	if count > 4*uint64(len(words)) {
		return nil, nil, errList
	}
	all := bytesOf(nil, words)
	rest := all
	for range count {
		distance, n := binary.Uvarint(rest)
		if n <= 0 || first > last || distance > last-first {
			return nil, nil, errList
		}
		key := first + distance
		to, rest = append(to, key), rest[n:]
		if first = key + 1; first == 0 && len(to) < int(count) {
			return nil, nil, errList
		}
	}
	for _, b := range rest {
		if len(rest) > 3 || b != 0 {
			return nil, nil, errList
		}
	}
	return to, all[:len(all)-len(rest)], nil
}

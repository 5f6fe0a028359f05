package table

import (
	"cmp"
	"errors"
	"slices"

	"github.com/gradwire/gradwire/protos"
)

// shard is a range of a table's keys with their values, at the server that holds it. It is the
// table's state alone, and knows nothing of servers.
//
// Values lie in rows: in dense tables in the order of the keys, in sparse ones in that of their
// first push. A row never moves, so that a list of keys that is known is a list of rows.
type shard struct {
	table       *Table
	first, last uint64
	rule        Rule
	version     uint64 // pushes taken in
	values      []float32
	slots       [][]float32
	keys        []uint64         // of a sparse table: of each row
	rows        map[uint64]int32 // of a sparse table: by key
	order       []int32          // of a sparse table: the first rows, by key
	lists       lists
	block       Block
	ranged      chosen    // scratch, for ranges
	scratch     []float32 // for rows that do not lie side by side
	gathered    [][]float32
}

// chosen are the rows of some keys.
type chosen struct {
	rows    []int32  // nil if they lie side by side; −1 for a key without a value
	keys    []uint64 // of a sparse table
	start   int      // the first row, if they lie side by side
	count   int
	missing int            // keys without values
	list    *protos.Tensor // the keys as they came; nil where lists are not kept
}

// newShard is a shard of the layout with the values that a table begins with.
func newShard(l *Layout, index int) (*shard, error) {
	s := &shard{lists: lists{by: map[uint64]*chosen{}}}
	s.table, s.first, s.last = l.table(index)
	var err error
	if s.rule, err = s.table.Update.New(); err != nil {
		return nil, err
	}
	s.slots = make([][]float32, s.rule.Slots())
	s.gathered = make([][]float32, len(s.slots))
	if s.table.Sparse {
		s.rows = map[uint64]int32{}
		return s, nil
	}
	w := s.table.Width
	s.values = make([]float32, int(s.last-s.first+1)*w)
	if s.table.Initial != nil {
		for i := range len(s.values) / w {
			s.table.initial(s.first+uint64(i), s.values[i*w:(i+1)*w])
		}
	}
	for i := range s.slots {
		s.slots[i] = make([]float32, len(s.values))
	}
	return s, nil
}

var (
	errShape = errors.New("tensors that do not fit the keys")
	errRange = errors.New("a range of keys that is none of its shard")
	errFull  = errors.New("more values than a shard can have")
)

// access carries out what a message asks for, and fills in the answer. A push that is a repeat is
// not taken in again. The tensors of the message remain the caller's, those returned are it too. An
// error is for a message that no client sends.
func (s *shard) access(pool *protos.TensorPool, head *protos.Access, tensors []*protos.Tensor,
	answer *protos.Accessed, repeat bool) (pulled, list *protos.Tensor, work float64, err error) {
	var pushed *protos.Tensor
	if head.Push {
		if len(tensors) == 0 {
			return nil, nil, 0, errShape
		}
		pushed, tensors = tensors[0], tensors[1:]
	}
	c, err := s.choose(head, pushed, tensors)
	if err != nil {
		return nil, nil, 0, err
	}
	if answer.Unknown = c == nil; answer.Unknown {
		return nil, nil, 0, nil
	}
	if head.Push && len(pushed.Data) != c.count*s.table.Width {
		return nil, nil, 0, errShape
	}
	if head.Push && !repeat {
		if err = s.push(c, pushed.Data); err != nil {
			return nil, nil, 0, err
		}
		work = s.rule.Work(len(pushed.Data))
	}
	answer.Version = s.version
	if !head.Pull {
		return nil, nil, work, nil
	}
	if head.List == 0 && s.table.Sparse {
		pulled, list, answer.Keys = s.pullRange(pool, head.First, head.Last)
		return pulled, list, work, nil
	}
	return s.pull(pool, c), nil, work, nil
}

// choose finds the rows that a message is about; nil if it names a list that is not known here.
func (s *shard) choose(head *protos.Access, pushed *protos.Tensor, rest []*protos.Tensor) (*chosen, error) {
	switch {
	case head.List == 0 && len(rest) == 0 && head.Keys == 0:
		return s.chooseRange(head, pushed)
	case head.List != 0 && head.Keys == 0 && len(rest) == 0:
		return s.lists.by[head.List], nil
	case head.List == 0 || head.Keys == 0 || len(rest) != 1:
		return nil, errShape
	}
	if c := s.lists.by[head.List]; c != nil && c.count == int(head.Keys) {
		return c, nil
	}
	keys, list, err := keysOf(nil, rest[0].Data, head.Keys, s.first, s.last)
	if err != nil {
		return nil, err
	}
	if hashOf(list) != head.List {
		return nil, errList
	}
	c := s.rowsOf(keys)
	s.lists.remember(head.List, c, rest[0])
	return c, nil
}

// rowsOf finds the rows of a list of keys. The first use of a list finds the rows of a sparse table.
func (s *shard) rowsOf(keys []uint64) *chosen {
	c := &chosen{count: len(keys)}
	if s.table.Sparse {
		c.keys, c.missing = keys, len(keys)
		c.rows = slices.Repeat([]int32{-1}, len(keys))
	} else if c.start = int(keys[0] - s.first); keys[len(keys)-1]-keys[0] != uint64(len(keys)-1) {
		c.rows = make([]int32, len(keys))
		for i, key := range keys {
			c.rows[i] = int32(key - s.first)
		}
	}
	return c
}

// chooseRange finds the rows of a range. In a sparse table they matter only if it pushes.
func (s *shard) chooseRange(head *protos.Access, pushed *protos.Tensor) (*chosen, error) {
	if head.First > head.Last || head.First < s.first || head.Last > s.last {
		return nil, errRange
	}
	c := &s.ranged
	*c = chosen{rows: c.rows[:0], keys: c.keys[:0]}
	if !s.table.Sparse {
		c.rows, c.start, c.count = nil, int(head.First-s.first), int(head.Last-head.First)+1
		return c, nil
	}
	if pushed == nil {
		return c, nil
	}
	if head.Last-head.First >= uint64(len(pushed.Data)) {
		return nil, errShape
	}
	c.count = int(head.Last-head.First) + 1
	c.missing = c.count
	for i := range c.count {
		c.keys, c.rows = append(c.keys, head.First+uint64(i)), append(c.rows, -1)
	}
	return c, nil
}

// find fills in the rows of keys that have got values since; with create, of all keys.
func (s *shard) find(c *chosen, create bool) error {
	if c.missing == 0 {
		return nil
	}
	w := s.table.Width
	for i, key := range c.keys {
		if c.rows[i] >= 0 {
			continue
		}
		row, there := s.rows[key]
		if !there && !create {
			continue
		}
		if !there {
			if len(s.keys) >= mostRows/w {
				return errFull
			}
			row = int32(len(s.keys))
			s.rows[key] = row
			s.keys = append(s.keys, key)
			s.values = append(s.values, make([]float32, w)...)
			s.table.initial(key, s.values[len(s.values)-w:])
			for n := range s.slots {
				s.slots[n] = append(s.slots[n], make([]float32, w)...)
			}
		}
		c.rows[i] = row
		c.missing--
	}
	return nil
}

// push has the rule take pushed values in.
func (s *shard) push(c *chosen, pushed []float32) error {
	if err := s.find(c, true); err != nil {
		return err
	}
	b, n := &s.block, len(pushed)
	*b = Block{Pushed: pushed, Width: s.table.Width, Pushes: s.version, Slots: s.gathered}
	s.version++
	if c.rows == nil {
		from := c.start * b.Width
		b.Values = s.values[from : from+n]
		for i, slot := range s.slots {
			b.Slots[i] = slot[from : from+n]
		}
		s.rule.Apply(b)
		return nil
	}
	if need := n * (1 + len(s.slots)); len(s.scratch) < need {
		s.scratch = make([]float32, need)
	}
	b.Values = s.scratch[:n]
	gather(b.Values, s.values, c.rows, b.Width)
	for i, slot := range s.slots {
		b.Slots[i] = s.scratch[(i+1)*n : (i+2)*n]
		gather(b.Slots[i], slot, c.rows, b.Width)
	}
	s.rule.Apply(b)
	scatter(s.values, b.Values, c.rows, b.Width)
	for i, slot := range s.slots {
		scatter(slot, b.Slots[i], c.rows, b.Width)
	}
	return nil
}

// pull copies the values of rows.
func (s *shard) pull(pool *protos.TensorPool, c *chosen) *protos.Tensor {
	_ = s.find(c, false) // which creates nothing, and so cannot fail
	w := s.table.Width
	if c.rows == nil {
		return pool.Copy(s.values[c.start*w : (c.start+c.count)*w])
	}
	t := pool.Get(c.count * w)
	gather(t.Data, s.values, c.rows, w)
	if c.missing > 0 {
		for i, row := range c.rows {
			if row < 0 {
				s.table.initial(c.keys[i], t.Data[i*w:(i+1)*w])
			}
		}
	}
	return t
}

// pullRange copies the values of a range of a sparse table, and its keys.
func (s *shard) pullRange(pool *protos.TensorPool, first, last uint64) (values, list *protos.Tensor, count uint64) {
	rows := s.sorted()
	by := func(row int32, key uint64) int { return cmp.Compare(s.keys[row], key) }
	low, _ := slices.BinarySearchFunc(rows, first, by)
	high, found := slices.BinarySearchFunc(rows, last, by)
	if found {
		high++
	}
	rows = rows[low:high]
	values = pool.Get(len(rows) * s.table.Width)
	gather(values.Data, s.values, rows, s.table.Width)
	if len(rows) > 0 {
		list = protos.NewTensor(s.listOf(rows, first))
	}
	return values, list, uint64(len(rows))
}

// listOf are the keys of rows, which ascend, as words.
func (s *shard) listOf(rows []int32, first uint64) []float32 {
	keys := make([]uint64, len(rows))
	for i, row := range rows {
		keys[i] = s.keys[row]
	}
	return wordsOf(appendKeys(nil, keys, first))
}

// sorted are the rows of a sparse table in the order of their keys.
func (s *shard) sorted() []int32 {
	if n := len(s.order); n < len(s.keys) {
		for row := n; row < len(s.keys); row++ {
			s.order = append(s.order, int32(row))
		}
		slices.SortFunc(s.order, func(a, b int32) int { return cmp.Compare(s.keys[a], s.keys[b]) })
	}
	return s.order
}

// gather copies rows of from side by side; those below 0 are left out.
func gather(to, from []float32, rows []int32, width int) {
	if width == 1 {
		for i, row := range rows {
			if row >= 0 {
				to[i] = from[row]
			}
		}
		return
	}
	for i, row := range rows {
		if row >= 0 {
			copy(to[i*width:(i+1)*width], from[int(row)*width:])
		}
	}
}

// scatter copies what lies side by side to rows.
func scatter(to, from []float32, rows []int32, width int) {
	if width == 1 {
		for i, row := range rows {
			to[row] = from[i]
		}
		return
	}
	for i, row := range rows {
		copy(to[int(row)*width:(int(row)+1)*width], from[i*width:])
	}
}

// lists are the lists of keys that a shard knows, the latest ones.
type lists struct {
	kept bool // as they came, too
	by   map[uint64]*chosen
	age  []uint64 // hashes, the oldest first
	keys int      // of all lists
}

// The bounds of what a shard remembers of lists.
const (
	mostLists  = 1 << 10
	mostListed = 1 << 22 // keys
)

// remember keeps a list, and forgets the oldest ones if there are too many.
func (l *lists) remember(hash uint64, c *chosen, list *protos.Tensor) {
	if l.by[hash] != nil || c.count > mostListed {
		return
	}
	for len(l.age) == mostLists || l.keys+c.count > mostListed {
		of := l.by[l.age[0]]
		of.release()
		l.keys -= of.count
		delete(l.by, l.age[0])
		l.age = slices.Delete(l.age, 0, 1)
	}
	if l.kept {
		c.list = list.Retain()
	}
	l.by[hash], l.age = c, append(l.age, hash)
	l.keys += c.count
}

// drop gives up what is kept.
func (l *lists) drop() {
	for _, hash := range l.age {
		l.by[hash].release()
	}
}

// release gives up the keys as they came.
func (c *chosen) release() {
	if c.list != nil {
		c.list.Release()
	}
}

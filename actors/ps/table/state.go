package table

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/protos"
)

var (
	_ state.Declared = (*Server)(nil)
	_ state.Declared = (*Client)(nil)
)

// State implements [state.Declared].
func (s *Server) State(st *state.State) {
	st.Bool("begun", &s.begun)
	s.shards.State(st, s.shardState)
	if s.replicas != nil {
		st.Group("replicas", func(st *state.State) {
			s.replicas.State(st, func(st *state.State, k int, c *shards.Copy) {
				h, _ := (*c).(*kept)
				if s.shardState(st, k, &h); h != nil {
					*c = h
				}
			})
		})
	}
}

// shardState declares a shard, or this server's copy of another server's shard.
func (s *Server) shardState(st *state.State, k int, h **kept) {
	if st.Restoring() {
		if *h = s.newHeld(k); *h == nil {
			return
		}
	}
	(*h).State(st)
}

// State declares the shard, the pushes that it contains, and the answers that wait for its replicas.
// The last push and the number of its keys are of no use after the handler of the push.
func (h *kept) State(s *state.State) {
	h.shard.State(s)
	if h.log == nil {
		return
	}
	s.Part("log", h.log)
	state.Each(s, "taken", h.taken, func(s *state.State, _ int, t *taken) { t.State(s) })
}

// State declares the pushes of one client.
func (t *taken) State(s *state.State) {
	state.Int(s, "life", &t.life)
	state.Int(s, "oldest", &t.oldest)
	state.Ints(s, "times", &t.times)
}

// State declares the values and the known lists of keys. A rule has no state of its own.
func (s *shard) State(st *state.State) {
	state.Int(st, "version", &s.version)
	values := len(s.values) // number of values of a dense table
	st.Vector("values", &s.values)
	st.Vectors("slots", state.Pointers(s.slots)...)
	if s.table.Sparse {
		if state.Ints(st, "keys", &s.keys); st.Restoring() {
			s.index(st)
			values = len(s.keys) * s.table.Width
		}
	}
	for _, of := range append([][]float32{s.values}, s.slots...) {
		if st.Restoring() && len(of) != values {
			st.Fail(errShape)
		}
	}
	s.listsState(st)
}

// index rebuilds the map from keys to rows, and checks the keys.
func (s *shard) index(st *state.State) {
	s.rows, s.order = make(map[uint64]int32, len(s.keys)), nil
	for row, key := range s.keys {
		if _, twice := s.rows[key]; twice || key < s.first || key > s.last {
			st.Fail(errList)
		}
		s.rows[key] = int32(row)
	}
}

// listsState declares the known lists of keys, the oldest first. Their hashes and rows follow from the
// keys.
func (s *shard) listsState(st *state.State) {
	type list struct {
		count uint64
		keys  []byte // in wire form
	}
	var all []list
	if !st.Restoring() {
		for _, hash := range s.lists.age {
			c := s.lists.by[hash]
			all = append(all, list{uint64(c.count), appendKeys(nil, s.keysIn(c), s.first)})
		}
	}
	state.List(st, "lists", &all, func(st *state.State, l *list) {
		state.Int(st, "count", &l.count)
		st.Bytes("keys", &l.keys)
	})
	if !st.Restoring() {
		return
	}
	for _, l := range all {
		words := wordsOf(l.keys)
		keys, _, err := keysOf(nil, words, l.count, s.first, s.last)
		if err != nil || len(keys) == 0 {
			st.Fail(cmp.Or(err, errList))
			return
		}
		s.lists.remember(hashOf(l.keys), s.rowsOf(keys), protos.NewTensor(words))
	}
}

// keysIn returns the keys of a known list.
func (s *shard) keysIn(c *chosen) []uint64 {
	if s.table.Sparse {
		return c.keys
	}
	keys := make([]uint64, c.count)
	for i := range keys {
		row := c.start + i
		if c.rows != nil {
			row = int(c.rows[i])
		}
		keys[i] = s.first + uint64(row)
	}
	return keys
}

// State declares the client's tasks and its view of the servers. An actor that embeds the client needs
// a method State of its own, which declares the client as a part: [state.Of] refuses the inherited one.
func (c *Client) State(s *state.State) {
	c.declare(s)
	s.Part("fleet", &c.fleet)
	state.Ints(s, "owners", &c.way.owners)
}

// declare declares the unfinished tasks, and the lists that servers know. It omits the tasks' errors:
// tasks fail only outside of runs, where there are no checkpoints.
func (c *Tasks) declare(s *state.State) {
	state.Int(s, "life", &c.life)
	state.Int(s, "view", &c.view)
	s.Bool("held", &c.held)
	state.Int(s, "last", &c.last)
	state.List(s, "open", &c.open, func(s *state.State, t **task) {
		if *t == nil {
			*t = &task{}
		}
		(*t).declare(s, c.layout)
	})
	state.Int(s, "waiting", &c.waiting)
	s.Group("known", c.knownState)
	s.Group("traffic", func(s *state.State) {
		state.Int(s, "sent", &c.traffic.Sent)
		state.Int(s, "saved", &c.traffic.Saved)
	})
}

// declare declares a task.
func (t *task) declare(s *state.State, l *Layout) {
	state.Int(s, "time", &t.time)
	l.keysState(s, "keys", &t.keys)
	s.Bool("push", &t.push)
	s.Bool("pull", &t.pull)
	s.Bool("started", &t.started)
	s.Bool("finished", &t.finished)
	state.Ints(s, "after", &t.after)
	s.Received("values", &t.values)
	s.Received("pulled", &t.pulled)
	state.List(s, "parts", &t.parts, func(s *state.State, p *part) { p.State(s) })
	state.Int(s, "missing", &t.missing)
}

// State declares the answer of one shard.
func (p *part) State(s *state.State) {
	s.Bool("answered", &p.answered)
	s.Received("values", &p.values)
	state.Ints(s, "keys", &p.keys)
}

// knownState declares the lists that servers know.
func (c *Tasks) knownState(s *state.State) {
	var servers, places []int
	var hashes []uint64
	for _, l := range slices.SortedFunc(maps.Keys(c.known), listed.compare) {
		servers, places = append(servers, l.server), append(places, l.shard)
		hashes = append(hashes, l.hash)
	}
	state.Ints(s, "servers", &servers)
	state.Ints(s, "shards", &places)
	state.Ints(s, "hashes", &hashes)
	if !s.Restoring() {
		return
	}
	if len(servers) != len(hashes) || len(places) != len(hashes) {
		s.Fail(errList)
		return
	}
	clear(c.known)
	for i, hash := range hashes {
		c.known[listed{servers[i], places[i], hash}] = true
	}
}

func (l listed) compare(m listed) int {
	return cmp.Or(cmp.Compare(l.server, m.server), cmp.Compare(l.shard, m.shard), cmp.Compare(l.hash, m.hash))
}

// KeysState declares the keys that an actor holds, or nil.
func (c *Tasks) KeysState(s *state.State, name string, k **Keys) { c.layout.keysState(s, name, k) }

func (l *Layout) keysState(s *state.State, name string, k **Keys) {
	state.Optional(s, name, k, func(s *state.State, k *Keys) { k.declare(s, l) })
}

// declare declares the keys. The pieces follow from the layout.
func (k *Keys) declare(s *state.State, l *Layout) {
	var table string
	var first, last uint64
	var list []uint64
	if !s.Restoring() {
		table, first, last = k.table.Name, k.pieces[0].first, k.pieces[len(k.pieces)-1].last
		list = k.list(l)
	}
	state.Text(s, "table", &table)
	if s.Bool("range", &k.ranged); k.ranged {
		state.Int(s, "first", &first)
		state.Int(s, "last", &last)
	} else {
		state.Ints(s, "keys", &list)
	}
	if !s.Restoring() {
		return
	}
	again, err := l.List(table, list)
	if k.ranged {
		again, err = l.Range(table, first, last)
	}
	if err != nil {
		s.Fail(err)
		return
	}
	*k = *again
}

// list returns the listed keys, or nil for a range.
func (k *Keys) list(l *Layout) (keys []uint64) {
	for i := range k.pieces {
		if p := &k.pieces[i]; p.list != nil {
			_, first, last := l.table(p.shard)
			// This never fails, because Layout.List made the list.
			keys, _, _ = keysOf(keys, p.list.Data, uint64(p.high-p.low), first, last)
		}
	}
	return keys
}

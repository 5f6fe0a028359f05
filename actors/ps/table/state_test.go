package table

import (
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// layout returns a layout with a dense table of 5 shards and a sparse table of 2.
func layout(t *testing.T) *Layout {
	t.Helper()
	update := Optimizer(optim.Momentum{Rate: optim.Constant(0.5), Momentum: 0.5})
	l, err := NewLayout([]*Table{{Name: "dense", Keys: 50, Width: 2, Shards: 5, Update: update},
		{Name: "sparse", Keys: 1000, Width: 2, Sparse: true, Shards: 2, Update: update}}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// access pushes values to one list of a shard's keys, and pulls another list.
func access(t *testing.T, s *shard, pushed, pulled []uint64) {
	t.Helper()
	for i, keys := range [][]uint64{pushed, pulled} {
		list := appendKeys(nil, keys, s.first)
		head := &protos.Access{Push: i == 0, Pull: true, Keys: uint64(len(keys)), List: hashOf(list)}
		tensors := []*protos.Tensor{protos.NewTensor(wordsOf(list))}
		if head.Push {
			values := make([]float32, 2*len(keys))
			for i := range values {
				values[i] = float32(i + 1)
			}
			tensors = append([]*protos.Tensor{protos.NewTensor(values)}, tensors...)
		}
		if _, _, _, err := s.access(&protos.TensorPool{}, head, tensors, &protos.Accessed{}, false); err != nil {
			t.Fatal(err)
		}
	}
}

// The state of a shard has each value that clients pushed, and the known lists in their order.
func TestStateOfAShardHasItsValuesAndLists(t *testing.T) {
	l := layout(t)
	for _, k := range []int{1, 6} {
		for _, kept := range []bool{false, true} {
			filled, err := newShard(l, k)
			if err != nil {
				t.Fatal(err)
			}
			made, _ := newShard(l, k)
			filled.lists.kept, made.lists.kept = kept, kept
			access(t, filled, []uint64{filled.first + 7, filled.first + 9}, []uint64{filled.first, filled.first + 7})
			access(t, filled, []uint64{filled.first + 1, filled.first + 2}, []uint64{filled.first + 3})
			except := []string{"rule", "order", "block", "ranged", "scratch", "gathered"}
			if !filled.table.Sparse {
				except = append(except, "keys", "rows")
			}
			statetest.WholeInto(t, filled, made, func(st *state.State, s *shard) {
				s.State(st)
				for _, c := range s.lists.by {
					_ = s.find(c, false) // the rows of a sparse list, as its next use finds them
				}
			}, except...)
		}
	}
	newKept := func() *kept {
		s, _ := newShard(l, 1)
		return &kept{shard: s, index: 1, log: shards.NewLog(1), taken: make([]taken, 1)}
	}
	filled := newKept()
	filled.log.Touch()
	filled.taken[0] = taken{1, 2, []uint64{3}}
	statetest.WholeInto(t, filled, newKept(), func(s *state.State, h *kept) { h.State(s) }, "server", "place",
		"last", "listed", "answer")
	statetest.Whole(t, &filled.taken[0], func(s *state.State, of *taken) { of.State(s) })
}

// The state of a client has each unfinished task.
func TestStateOfAClientHasItsTasks(t *testing.T) {
	l := layout(t)
	values := func() *protos.Tensor { return protos.NewTensor([]float32{1, 2, 3, 4}) }
	list, err := l.List("sparse", []uint64{3, 4, 700})
	if err != nil {
		t.Fatal(err)
	}
	ranged, err := l.Range("sparse", 7, 800)
	if err != nil {
		t.Fatal(err)
	}
	dense, err := l.List("dense", []uint64{3, 4, 49})
	if err != nil {
		t.Fatal(err)
	}
	var open []*task
	for i, keys := range []*Keys{list, ranged, dense} {
		of := &task{time: Timestamp(i + 1), keys: keys, push: true, pull: true, started: true, finished: true,
			after: []Timestamp{5}, values: values(), pulled: values(), missing: 1,
			parts: []part{{answered: true, values: values(), keys: []uint64{6}}, {}}}
		open = append(open, of)
		statetest.WholeInto(t, of, &task{}, func(s *state.State, t *task) { t.declare(s, l) }, "err")
	}
	statetest.WholeInto(t, &open[0].parts[0], &part{}, func(s *state.State, p *part) { p.State(s) })
	made := func() *Tasks { return &Tasks{layout: l, known: map[listed]bool{}} }
	filled := made()
	filled.life, filled.view, filled.held, filled.last, filled.open, filled.waiting = 1, 2, true, 3, open, 4
	filled.known[listed{1, 2, 1 << 63}], filled.traffic = true, Traffic{5, 6}
	statetest.WholeInto(t, filled, made(), func(s *state.State, c *Tasks) { c.declare(s) },
		"layout", "options", "pool", "road", "node", "free", "access", "done")
	type holder struct{ keys *Keys } // an actor that holds keys
	statetest.WholeInto(t, &holder{list}, &holder{},
		func(s *state.State, h *holder) { filled.KeysState(s, "keys", &h.keys) })
	statetest.WholeInto(t, &Client{Tasks: filled, fleet: shards.Fleet{Since: []uint64{7}}, way: &way{owners: []int{8}}},
		&Client{Tasks: made(), way: &way{}}, func(s *state.State, c *Client) { c.State(s) }, "env")
}

// alone is the Env of the only server of a run.
type alone struct{ actors.Env }

func (alone) View() *actors.View {
	return &actors.View{Number: 1, Members: []actors.Member{{Role: shards.RoleServer, Present: true}}}
}

func TestStateOfAServerSaysThatItHasBegun(t *testing.T) {
	made := func() *Server {
		s, err := NewServer(alone{}, layout(t).tables, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	filled := made()
	filled.begun = true
	statetest.WholeInto(t, filled, made(), func(st *state.State, s *Server) { s.State(st) },
		"env", "layout", "shards", "replicas", "answers")
}

// A shard refuses the state of a shard that has other keys.
func TestStateOfAnotherShardIsRefused(t *testing.T) {
	l := layout(t)
	for k, to := range map[int]int{1: 6, 6: 5} {
		s, err := newShard(l, k)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := newShard(l, to)
		access(t, s, []uint64{s.first + 7, s.first + 9}, []uint64{s.first, s.first + 7})
		saved, err := state.Save(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := saved.Restore(other, state.Into{Pool: &protos.TensorPool{}}); err == nil {
			t.Errorf("shard %d accepts the state of shard %d", to, k)
		}
	}
}

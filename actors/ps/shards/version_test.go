package shards

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// copyOf is a copy without content.
type copyOf struct{ applied int }

func (c *copyOf) Apply(*protos.Replicate, []*protos.Tensor) error         { c.applied++; return nil }
func (c *copyOf) Whole(int, *protos.Replicate) (tensors []*protos.Tensor) { return nil }
func (c *copyOf) Drop()                                                   {}

// shard is a stub.
type shard struct{}

func (*shard) Receive(actor.Context, *protos.Message) {}
func (*shard) Pack() *protos.Message                  { return nil }
func (*shard) Log() *Log                              { return nil }
func (*shard) Tell(*protos.Replicate)                 {}
func (*shard) Freeze() Copy                           { return nil }

// later is the protocol's order of copies: the owner in a later view has everything that a chain has
// acknowledged, whatever the owner of an earlier view has added since.
func later(a, b *protos.Holdings_Copy) bool {
	if a.View != b.View {
		return a.View > b.View
	}
	return a.Sequence > b.Sequence
}

// holdings are reports of servers that hold copies of shard 0 in these versions; nil for none.
func holdings(copies ...*protos.Holdings_Copy) (all []*protos.Holdings) {
	for node, c := range copies {
		h := &protos.Holdings{Node: int32(node)}
		if c != nil {
			h.Copies = []*protos.Holdings_Copy{{Shard: 1, View: 99, Sequence: 99}, c}
		}
		all = append(all, h)
	}
	return all
}

func copyIn(view, sequence uint64) *protos.Holdings_Copy {
	return &protos.Holdings_Copy{View: view, Sequence: sequence}
}

func TestCopyOfALaterViewIsTheLaterOneWhateverItsSequence(t *testing.T) {
	for _, x := range []struct {
		name    string
		reports []*protos.Holdings
		want    int
	}{
		{"the old owner has changes that nobody confirmed", holdings(copyIn(1, 9), copyIn(2, 5), nil), 1},
		{"in either order", holdings(copyIn(2, 5), copyIn(1, 9), nil), 0},
		{"of one view, the longer", holdings(copyIn(2, 5), copyIn(2, 6), nil), 1},
		{"the first of the chain of equal ones", holdings(copyIn(2, 5), copyIn(2, 5), copyIn(2, 5)), 2},
		{"one that is in no chain", holdings(copyIn(3, 1), copyIn(2, 8), copyIn(2, 7)), 0},
		{"nobody", holdings(nil, nil, nil), -1},
	} {
		r := &Replicas[*shard]{reports: x.reports, chains: [][]int{{2, 1}}}
		if got := r.latest(0); got != x.want {
			t.Errorf("%s: server %d, want %d", x.name, got, x.want)
		}
	}
}

// For any holdings, no copy is later than the chosen one.
func TestNoCopyIsLaterThanTheOneThatIsChosen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		copies := make([]*protos.Holdings_Copy, 5)
		for i := range copies {
			if random.IntN(4) > 0 {
				copies[i] = copyIn(random.Uint64N(4), random.Uint64N(4))
			}
		}
		r := &Replicas[*shard]{reports: holdings(copies...), chains: [][]int{random.Perm(5)[:3]}}
		from := r.latest(0)
		for node, c := range copies {
			if c != nil && (from < 0 || later(c, copies[from])) {
				t.Fatalf("of %v server %d is chosen, and %d has a later copy", copies, from, node)
			}
		}
	}
}

// sent records the last message of a server.
type sent struct {
	actor.Context
	head *protos.Replicate
}

func (s *sent) Send(_ *actor.PID, message any) {
	m := message.(*protos.Message)
	s.head, _ = m.Head.(*protos.Replicate)
	m.Release()
}

// The next server of a chain keeps its copy only if the view is the same as well: two copies with
// one sequence may have changes of different owners.
func TestCopyIsKeptOnlyIfItsViewIsTheSameToo(t *testing.T) {
	here := actors.Member{Present: true, PID: &actor.PID{}}
	for _, x := range []struct {
		next  *protos.Holdings_Copy
		whole bool
	}{{copyIn(2, 5), false}, {copyIn(1, 5), true}, {copyIn(2, 4), true}, {copyIn(3, 5), true}, {nil, true}} {
		p := &post{}
		p.see(4, here, here)
		r := &Replicas[*shard]{env: p, view: 4, chains: [][]int{{1, 0}}, reports: holdings(x.next, nil),
			linked: make([]bool, 1)}
		to := &sent{}
		c := &replica{version{4, 5}, &copyOf{}}
		r.link(to, 0, c, version{2, 5})
		if to.head == nil || to.head.Whole != x.whole || to.head.Base != 2 || to.head.Sequence != 5 {
			t.Errorf("to a server with %v goes %v", x.next, to.head)
		}
	}
}

// A change fits the copy before it, of the same view, alone.
func TestChangeFitsOnlyTheCopyBeforeItOfTheSameView(t *testing.T) {
	for _, x := range []struct {
		name string
		has  version
		head *protos.Replicate
		want version
		err  error
	}{
		{"the next change", version{4, 5}, &protos.Replicate{View: 4, Sequence: 6}, version{4, 6}, nil},
		{"one is missing", version{4, 5}, &protos.Replicate{View: 4, Sequence: 7}, version{4, 5}, ErrUnfit},
		{"a copy of an earlier view", version{3, 5}, &protos.Replicate{View: 4, Sequence: 6}, version{3, 5}, ErrUnfit},
		{"the same into a view", version{2, 5}, &protos.Replicate{View: 4, Sequence: 5, Base: 2}, version{4, 5}, nil},
		{"of another view", version{1, 5}, &protos.Replicate{View: 4, Sequence: 5, Base: 2}, version{1, 5}, ErrUnfit},
		{"another sequence", version{2, 4}, &protos.Replicate{View: 4, Sequence: 5, Base: 2}, version{2, 4}, ErrUnfit},
	} {
		r := &Replicas[*shard]{view: 4, copies: []*replica{{x.has, &copyOf{}}}}
		_, err := r.update(0, x.head, &protos.Message{})
		if !errors.Is(err, x.err) || r.copies[0].version != x.want {
			t.Errorf("%s: %v, %v; want %v, %v", x.name, r.copies[0].version, err, x.want, x.err)
		}
	}
}

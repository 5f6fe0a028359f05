package transport_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// TestMain fails if a goroutine of this package outlives the tests. It is also where the other
// process of a benchmark begins.
func TestMain(m *testing.M) {
	if text := os.Getenv(partnerVariable); text != "" {
		if err := partner(text); err != nil {
			fmt.Fprintln(os.Stderr, "partner:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if code == 0 {
		if left := leaked(); left != "" {
			fmt.Fprintln(os.Stderr, "goroutines that outlive the tests:\n"+left)
			code = 1
		}
	}
	os.Exit(code)
}

// leaked returns the goroutines at work in this package but the tests' own.
func leaked() string {
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left := ""
		for _, g := range strings.Split(string(stacks), "\n\n")[1:] {
			if strings.Contains(g, "cluster/transport") {
				left += g + "\n\n"
			}
		}
		if left == "" || time.Now().After(until) {
			return left
		}
	}
}

// patience bounds a wait for what must come to pass, however busy the machine is.
const patience = 2 * time.Minute

// until polls for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain waited until %s", what)
		}
	}
}

var issued = sync.OnceValues(func() (map[string]*identity.Identity, error) {
	root, err := os.MkdirTemp("", "identities")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root) //nolint:errcheck // a test's
	ids := map[string]*identity.Identity{}
	for _, cluster := range []string{"", "foreign/"} {
		ca := filepath.Join(root, cluster, "ca")
		if err := identity.Init(ca); err != nil {
			return nil, err
		}
		for name, role := range map[string]identity.Role{"a": identity.Node, "b": identity.Node, "c": identity.Client,
			"o": identity.Operator} {
			dir := filepath.Join(root, cluster, name)
			if err := identity.Issue(ca, dir, identity.Subject{Name: name, Role: role}); err != nil {
				return nil, err
			}
			if ids[cluster+name], err = identity.Load(dir); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
})

func id(t testing.TB, name string) *identity.Identity {
	t.Helper()
	ids, err := issued()
	if err != nil {
		t.Fatal(err)
	}
	return ids[name]
}

// quick are limits for tests that wait for what takes seconds otherwise.
var quick = transport.Limits{Heartbeat: 20 * time.Millisecond, Backoff: 50 * time.Millisecond,
	Suspend: 400 * time.Millisecond, Drain: 10 * time.Second}

// change is what Changed was told.
type change struct {
	peer   transport.Peer
	state  transport.State
	reason error
}

// node is a node under test that remembers what it is told.
type node struct {
	*transport.Node
	pool    *protos.TensorPool
	mu      sync.Mutex
	indices []uint64 // of the chunks that were handled
	changes []change
	handled atomic.Int64
}

// start starts a node; edit changes its configuration.
func start(t testing.TB, name string, incarnation uint64, edit func(n *node, c *transport.Config)) *node {
	t.Helper()
	n := &node{pool: &protos.TensorPool{Poison: true}}
	config := transport.Config{
		Name: name, Incarnation: incarnation, Address: "127.0.0.1:0", Tensors: n.pool, Limits: quick,
		Receive: n.receive,
		Changed: func(p transport.Peer, s transport.State, reason error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.changes = append(n.changes, change{p, s, reason})
		},
	}
	if edit != nil {
		edit(n, &config)
	}
	var err error
	if n.Node, err = transport.Listen(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() }) //nolint:errcheck // what is lost at the end of a test is no fault
	return n
}

func (n *node) receive(_ transport.Peer, f *wire.Frame) {
	n.mu.Lock()
	n.indices = append(n.indices, uint64(f.Head.(*protos.Chunk).Index))
	n.mu.Unlock()
	for _, t := range f.Tensors {
		t.Release()
	}
	n.handled.Add(1)
}

// got returns what was handled so far.
func (n *node) got() []uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]uint64(nil), n.indices...)
}

func (n *node) told() []change {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]change(nil), n.changes...)
}

// awaitStates waits until the node has reported these states of its only peer, in this order, and returns
// the changes. It ignores other changes, except to Down or Unknown: on a busy machine the peer can be
// suspended for a moment.
func (n *node) awaitStates(t testing.TB, states ...transport.State) []change {
	t.Helper()
	var matched, all []change
	until(t, fmt.Sprintf("the states are %v", states), func() bool {
		matched, all = nil, n.told()
		for _, c := range all {
			switch {
			case len(matched) < len(states) && c.state == states[len(matched)]:
				matched = append(matched, c)
			case c.state == transport.Down || c.state == transport.Unknown:
				t.Fatalf("the changes are %+v, want %v", all, states)
			}
		}
		return len(matched) == len(states)
	})
	return matched
}

func (n *node) stats(name string) transport.PeerStats {
	s, _ := n.Peer(name)
	return s
}

func (n *node) connect(t testing.TB, name string, to *node) {
	t.Helper()
	if err := n.Connect(name, to.Address()); err != nil {
		t.Fatal(err)
	}
}

func (n *node) send(t testing.TB, name string, index int, tensors ...*protos.Tensor) {
	t.Helper()
	if err := n.Send(name, chunk(index, tensors...)); err != nil {
		t.Fatal(err)
	}
}

func chunk(index int, tensors ...*protos.Tensor) *wire.Frame {
	return &wire.Frame{Kind: wire.User, Target: "x/actor", Head: &protos.Chunk{Index: uint32(index)}, Tensors: tensors}
}

// both tests connections with TLS and without, over memory and over sockets.
func both(t *testing.T, test func(t *testing.T, a, b func(n *node, c *transport.Config))) {
	for name, sockets := range map[string]bool{"": false, ", sockets": true} {
		with := func(secure string) func(*node, *transport.Config) {
			return func(_ *node, c *transport.Config) {
				if c.SocketsOnly = sockets; secure != "" {
					c.Identity = id(t, secure)
				}
			}
		}
		t.Run("plain"+name, func(t *testing.T) { test(t, with(""), with("")) })
		t.Run("TLS"+name, func(t *testing.T) { test(t, with("a"), with("b")) })
	}
}

func counting(n, from int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(from + i)
	}
	return list
}

func same(t testing.TB, got, want []uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("message %d is %d, want %d", i, got[i], want[i])
		}
	}
}

func TestFramesOfEverySizeArriveAsTheyWere(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		sizes := [][]int{nil, {0}, {1}, {0, 3, 0}, {2084}, {21840}, {8170}, {131071}, {131072}, {131073},
			{0, 300_000, 0, 1, 250_000}, {1_200_000}, {5, 0}}
		var mu sync.Mutex
		arrived := 0
		var fault error
		a := start(t, "a", 1, first)
		b := start(t, "b", 1, func(n *node, c *transport.Config) {
			if second != nil {
				second(n, c)
			}
			c.Receive = func(from transport.Peer, f *wire.Frame) {
				mu.Lock()
				defer mu.Unlock()
				i := int(f.Head.(*protos.Chunk).Index)
				if from.Name != "a" || from.Incarnation != 1 || from.Role != identity.Node || f.Target != "x/actor" ||
					i != arrived || len(f.Tensors) != len(sizes[i]) {
					fault = fmt.Errorf("frame %d from %+v: %+v", arrived, from, f)
				}
				for j, v := range f.Tensors {
					ok := len(v.Data) == sizes[i][j] && v.Sole()
					for k, x := range v.Data {
						ok = ok && x == float32(k%1000+j)
					}
					if !ok {
						fault = fmt.Errorf("frame %d: tensor %d is not what was sent", i, j)
					}
					v.Release()
				}
				arrived++
			}
		})
		a.connect(t, "b", b)
		for i, lengths := range sizes {
			var tensors []*protos.Tensor
			for j, n := range lengths {
				v := a.pool.Get(n)
				for k := range v.Data {
					v.Data[k] = float32(k%1000 + j)
				}
				tensors = append(tensors, v)
			}
			a.send(t, "b", i, tensors...)
		}
		until(t, "all is delivered", func() bool { return a.stats("b").Delivered == uint64(len(sizes)) })
		mu.Lock()
		defer mu.Unlock()
		if fault != nil || arrived != len(sizes) {
			t.Errorf("%d frames, want %d; %v", arrived, len(sizes), fault)
		}
		until(t, "nothing is held", func() bool { return a.stats("b").WaitingBytes == 0 })
		until(t, "b is up", func() bool { return a.stats("b").State == transport.Up })
		s := a.stats("b")
		if s.Lost != 0 || s.Waiting != 0 || s.Unacknowledged != 0 || s.RoundTrip < 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCallsAtTheSameTimeMakeOneConnectionAndLoseNothing(t *testing.T) {
	rounds, each := 300, 3
	if testing.Short() {
		rounds = 100
	}
	if os.Getenv("GRADWIRE_LENGTHY") != "" {
		rounds = 1000
	}
	doubles := uint64(0)
	for round := range rounds {
		soon := func(_ *node, c *transport.Config) { c.Limits.Heartbeat = 2 * time.Millisecond }
		a, b := start(t, "a", 1, soon), start(t, "b", 1, soon)
		var group sync.WaitGroup
		for _, from := range []struct {
			n, to *node
			name  string
		}{{a, b, "b"}, {b, a, "a"}} {
			group.Go(func() {
				if err := from.n.Connect(from.name, from.to.Address()); err != nil {
					t.Error(err)
				}
				for i := range each {
					if err := from.n.Send(from.name, chunk(i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		until(t, "both have all", func() bool {
			return a.stats("b").Delivered == uint64(each) && b.stats("a").Delivered == uint64(each)
		})
		same(t, a.got(), counting(each, 0))
		same(t, b.got(), counting(each, 0))
		if x, y := a.stats("b"), b.stats("a"); x.Connections != 1 || y.Connections != 1 || x.Lost+y.Lost != 0 {
			t.Fatalf("round %d: %+v and %+v", round, x, y)
		}
		doubles += a.Refused().Double + b.Refused().Double
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d calls met another one", doubles, rounds)
	if doubles == 0 {
		t.Error("no two calls met: nothing was tested")
	}
}

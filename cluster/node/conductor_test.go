package node

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/mesh"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// listen makes one end of a connection without a cluster around it.
func listen(t *testing.T, name string, receive func(f *wire.Frame), change ...func(*transport.Limits)) *transport.Node {
	t.Helper()
	limits := transport.Limits{Backoff: 10 * time.Millisecond, Drain: 10 * time.Millisecond}
	for _, c := range change {
		c(&limits)
	}
	n, err := transport.Listen(transport.Config{
		Name: name, Incarnation: 1, Address: "127.0.0.1:0", Tensors: &protos.TensorPool{},
		Receive: func(_ transport.Peer, f *wire.Frame) { receive(f) },
		Limits:  limits,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() }) //nolint:errcheck // a test's
	return n
}

// brittle passes a single connection on to an address until it is told to cut it.
func brittle(t *testing.T, to string) (address string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // a test's
	cuts := make(chan struct{})
	go func() {
		from, err := l.Accept()
		if err != nil {
			return
		}
		l.Close() //nolint:errcheck // a test's
		onto, err := net.Dial("tcp", to)
		if err == nil {
			go io.Copy(onto, from) //nolint:errcheck // a test's
			go io.Copy(from, onto) //nolint:errcheck // a test's
			<-cuts
			onto.Close() //nolint:errcheck // a test's
		}
		from.Close() //nolint:errcheck // a test's
	}()
	return l.Addr().String(), func() { close(cuts) }
}

func TestConnectionThatBreaksWhileNodesArePlacedEndsTheWait(t *testing.T) {
	arrived := make(chan struct{}, 1)
	b := listen(t, "b", func(f *wire.Frame) {
		if _, ok := f.Head.(*protos.PlaceRun); ok {
			arrived <- struct{}{}
		}
	})
	p := &process{
		config: Config{Name: "a"}, node: listen(t, "a", func(*wire.Frame) {}), mesh: mesh.New(mesh.Config{Name: "a"}),
	}
	p.mesh.Use(p.node)
	p.stop, p.halt = context.WithCancelCause(t.Context())
	defer p.halt(nil)
	address, cut := brittle(t, b.Address())
	if err := p.node.Connect("b", address); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-arrived
		cut() // the answer that b would give goes down with it
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := p.newConductor(1, p.log, &protos.PlaceRun{Processes: []string{"a", "b"}})
	err := c.placeAll(ctx)
	if err == nil || !strings.Contains(err.Error(), "process b: its connection broke before its nodes were placed") {
		t.Error(err)
	}
	if c.again() == 0 {
		t.Error("it is not to be tried again")
	}
}

func TestRunThatWasWithoutAProcessIsToBeTriedAgain(t *testing.T) {
	for name, x := range map[string]struct {
		q    party
		want bool
	}{
		"there from beginning to end": {party{placed: true}, false},
		"done with its part":          {party{placed: true, result: &protos.RunResult{}}, false},
		"gone":                        {party{placed: true, err: errors.New("killed")}, true},
		"back":                        {party{placed: true, lives: 1}, true},
		"coming back":                 {party{lives: 1}, true},
	} {
		c := timed(t)
		c.parties = map[string]*party{"b": {placed: true}, "c": &x.q}
		if got := c.again(); got > 0 != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestProcessWhoseSamplesCannotBeSentDoesNotTakePart(t *testing.T) {
	p := &process{
		config: Config{Name: "a"}, node: listen(t, "a", func(*wire.Frame) {}), mesh: mesh.New(mesh.Config{Name: "a"}),
	}
	p.mesh.Use(p.node)
	p.stop, p.halt = context.WithCancelCause(t.Context())
	defer p.halt(nil)
	c := p.newConductor(1, p.log, &protos.PlaceRun{Processes: []string{"b"}})
	c.stage = &experiment.Stage{Task: arrivalTask()}
	c.supply("b", &protos.AskSamples{Workers: []int32{0}})
	err := c.await(t.Context(), c.placed)
	if err == nil || !strings.Contains(err.Error(), "process b: its samples cannot be sent: transport: to b") {
		t.Error(err)
	}
}

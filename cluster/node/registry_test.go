package node

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/cluster/registry/host"
	"github.com/gradwire/gradwire/cluster/resident"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// registered returns a process without a cluster or actors, and its registry. The id 7 has claimed
// the name x.
func registered(t *testing.T) (*process, *host.Host) {
	t.Helper()
	h, err := host.Open(host.Config{
		Process: "a", Incarnation: 1, MayFound: true, File: filepath.Join(t.TempDir(), "registry"),
		Others: func() []string { return nil }, Log: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{config: Config{Name: "a"}, incarnation: 1, residents: resident.NewService(resident.Config{Node: "a"})}
	p.stop, p.halt = context.WithCancelCause(t.Context())
	p.registry.Store(h)
	t.Cleanup(func() {
		p.halt(nil)
		p.work.Wait()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	claim(t, p, "x", 7)
	return p, h
}

// claim repeats a claim until the registry answers.
func claim(t *testing.T, p *process, name string, id uint64) {
	t.Helper()
	for {
		owner, err := p.claimName(t.Context(), name, id)
		if err == nil && owner == "" {
			return
		}
		if t.Context().Err() != nil || owner != "" {
			t.Fatalf("%s belongs to %s: %v", name, owner, err)
		}
	}
}

// token returns the id that has claimed a name; 0 if the name is free.
func token(t *testing.T, h *host.Host, name string) (id uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Read(ctx, func(s *registry.State) { id = s.Name(name).GetToken() }); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestFailedClaimOfALivingActorKeepsItsName(t *testing.T) {
	t.Parallel()
	p, h := registered(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		if _, err := p.claimName(ctx, "x", 7); err != nil {
			break
		}
	}
	p.work.Wait() // until a release, if any, has had its effect
	if id := token(t, h, "x"); id != 7 {
		t.Errorf("x is claimed by %d, want 7", id)
	}
}

func TestFailedClaimOfANewActorIsReleased(t *testing.T) {
	t.Parallel()
	p, h := registered(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		if err := p.reserveName(ctx, "x", 7); err != nil {
			break
		}
	}
	p.work.Wait()
	if id := token(t, h, "x"); id != 0 {
		t.Errorf("x is still claimed by %d", id)
	}
}

func TestClaimWithoutAnActorIsReleased(t *testing.T) {
	t.Parallel()
	p, h := registered(t)
	if err := p.compareOnce(h, true); err != nil {
		t.Fatal(err)
	}
	if id := token(t, h, "x"); id != 0 {
		t.Errorf("x is still claimed by %d", id)
	}
}

func TestOnlyALaterIncarnationEndsAnEarlierOne(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{}, 1)
	p := &process{node: listen(t, "a", func(*wire.Frame) { heard <- struct{}{} })}
	b := listen(t, "b", func(*wire.Frame) {}) // incarnation 1
	if err := b.Connect("a", p.node.Address()); err != nil {
		t.Fatal(err)
	}
	if err := b.Send("a", &wire.Frame{Kind: wire.User, Head: &protos.News{}}); err != nil {
		t.Fatal(err)
	}
	<-heard
	for incarnation, want := range []bool{true, false, false} {
		if got := p.hasEnded("b", uint64(incarnation)); got != want {
			t.Errorf("incarnation %d of b has ended: %v, want %v", incarnation, got, want)
		}
	}
}

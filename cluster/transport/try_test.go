package transport_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
)

func TestTrySendReturnsAtOnceWhereSendWaits(t *testing.T) {
	hold := make(chan struct{})
	a := start(t, "a", 1, func(_ *node, c *transport.Config) {
		c.Limits.QueueBytes, c.Limits.Patience = 1<<20, time.Hour
	})
	b := start(t, "b", 1, func(n *node, c *transport.Config) {
		c.Receive = func(p transport.Peer, f *wire.Frame) {
			<-hold
			n.receive(p, f)
		}
	})
	a.connect(t, "b", b)
	until(t, "b is up", func() bool { return a.stats("b").State == transport.Up })
	v := a.pool.Get(250_000)
	sent := 0
	var err error
	for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); sent++ {
		err = a.TrySend("b", chunk(sent, v.Retain()))
	}
	if sent--; !errors.Is(err, transport.ErrQueueFull) {
		t.Fatalf("after %d messages that nobody takes: error %v, want %v", sent, err, transport.ErrQueueFull)
	}
	v.Release() // the reference of the message that was not taken
	close(hold)
	until(t, "all that was taken has arrived", func() bool { return len(b.got()) == sent })
	same(t, b.got(), counting(sent, 0))
	until(t, "there is room again", func() bool {
		err := a.TrySend("b", chunk(sent, v.Retain()))
		if err != nil {
			v.Release()
		}
		return err == nil
	})
}

func TestPacketsHaveMoreRoomThanFramesAndTakeNoneFromThem(t *testing.T) {
	hold := make(chan struct{})
	a := start(t, "a", 1, func(_ *node, c *transport.Config) {
		c.Limits.QueueBytes, c.Limits.Backlog = 1<<20, 64
	})
	b := start(t, "b", 1, func(n *node, c *transport.Config) {
		c.Receive = func(p transport.Peer, f *wire.Frame) {
			<-hold
			n.receive(p, f)
		}
	})
	a.connect(t, "b", b)
	until(t, "b is up", func() bool { return a.stats("b").State == transport.Up })
	v := a.pool.Get(250_000)
	sent := 0
	var err error
	for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); sent++ {
		var p *wire.Packet
		if p, err = wire.Pack(chunk(sent, v.Retain()), wire.Eager); err != nil {
			t.Fatal(err)
		}
		if err = a.SendPacket("b", p); err != nil {
			p.Release()
		}
	}
	if sent--; !errors.Is(err, transport.ErrQueueFull) || a.stats("b").WaitingBytes < 63<<20 {
		t.Errorf("after %d messages that nobody takes: error %v; %d bytes wait", sent, err, a.stats("b").WaitingBytes)
	}
	if err := a.TrySend("b", chunk(sent)); err != nil {
		t.Errorf("a message that is sent while posted ones fill their room: %v", err)
	}
	close(hold)
	until(t, "all that was taken has arrived", func() bool { return len(b.got()) == sent+1 })
	same(t, b.got(), counting(sent+1, 0))
}

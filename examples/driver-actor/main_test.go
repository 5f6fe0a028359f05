package main

import (
	"context"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

func TestActorCountsOnItsNode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready, over := make(chan string, 1), make(chan error, 1)
	go func() {
		over <- driver.Serve(ctx, driver.NodeConfig{
			Name: "a", Bind: "127.0.0.1:0", Insecure: true, Catalog: counters(), Out: t.TempDir(), Ready: func(address string) { ready <- address },
		})
	}()
	select {
	case address := <-ready:
		sum, node, err := count(ctx, address)
		if err != nil || sum != 20 || node != "a" {
			t.Errorf("sum %d on node %q, %v; want 20 on a", sum, node, err)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	case err := <-over:
		t.Fatal(err)
	}
	cancel()
}

package tables_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/tables"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

func weights() []*table.Table {
	return []*table.Table{
		{Name: "sums", Keys: 1 << 40, Width: 2, Sparse: true, Update: table.Add()},
		{Name: "model", Keys: 50, Width: 1, Update: table.Optimizer(optim.SGD{Rate: optim.Constant(0.5)})},
	}
}

// cluster is one of a single process in this one, as a driver sees it.
func cluster(t *testing.T) *driver.Client {
	t.Helper()
	t.Chdir(t.TempDir())
	ctx, end := context.WithCancel(t.Context())
	ready, over := make(chan string, 1), make(chan error, 1)
	go func() {
		c := catalog.Default()
		c.Actors.Add(tables.Kind("weights", weights()...))
		over <- driver.Serve(ctx, driver.NodeConfig{Name: "a", Bind: "127.0.0.1:0", Insecure: true, Catalog: c,
			Ready: func(address string) { ready <- address }})
	}()
	seed := ""
	select {
	case seed = <-ready:
	case err := <-over:
		t.Fatal(err)
	}
	client, err := driver.Connect(t.Context(), []string{seed}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		end()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return client
}

func open(t *testing.T, c *driver.Client, o table.Options) *tables.Client {
	t.Helper()
	all, err := tables.Open(t.Context(), c, tables.Config{Kind: "weights", Name: "w", Servers: 3, Tables: weights(),
		Options: o})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDriverPushesAndPullsAsAMapDoes(t *testing.T) {
	c := cluster(t)
	all := open(t, c, table.Options{Delay: 4})
	random := rand.New(rand.NewPCG(1, 2))
	sums := map[uint64][2]float32{}
	list := []uint64{1, 2, 3, 1 << 30, 1<<40 - 1}
	keys, err := all.List("sums", list)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if n == 1 { // until then the servers may not know the list
			if _, err := all.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		var values []float32
		for _, key := range list {
			a, b := float32(random.IntN(9)), float32(random.IntN(9))
			values = append(values, a, b)
			sums[key] = [2]float32{sums[key][0] + a, sums[key][1] + b}
		}
		all.Push(keys, values)
	}
	last := all.Push(keys, make([]float32, 10))
	var want []float32
	for _, key := range list {
		want = append(want, sums[key][0], sums[key][1])
	}
	everything, err := all.Range("sums", 0, 1<<40-1)
	if err != nil {
		t.Fatal(err)
	}
	// The delay lets tasks start before the four before them have finished: those are named.
	pulled := all.Pull(everything, last, last-1, last-2, last-3, last-4)
	done, err := all.Wait(t.Context(), pulled)
	if err != nil || !slices.Equal(done.Keys, list) || !slices.Equal(done.Values.Data, want) {
		t.Errorf("%v, %v, %v; want %v", done.Keys, done.Values.Data, err, want)
	}
	if traffic := all.Traffic(); traffic.Saved != 100*traffic.Sent {
		t.Errorf("%+v for 101 times the same list", traffic)
	}
	model, err := all.Range("model", 10, 12)
	if err != nil {
		t.Fatal(err)
	}
	done, err = all.Wait(t.Context(), all.PushPull(model, []float32{1, 2, -4}))
	if err != nil || !slices.Equal(done.Values.Data, []float32{-0.5, -1, 2}) {
		t.Errorf("%+v, %v", done, err)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := c.Actors(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
}

func TestTaskFailsWithItsServerOrItsWaitWithTheContext(t *testing.T) {
	c := cluster(t)
	all := open(t, c, table.Options{})
	keys, err := all.Range("model", 0, 49)
	if err != nil {
		t.Fatal(err)
	}
	never, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.Wait(never, 77); !errors.Is(err, context.Canceled) {
		t.Errorf("waited for a task that there is not: %v", err)
	}
	ref, err := c.Find(t.Context(), "w-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Wait(t.Context(), all.Pull(keys)); err == nil || !strings.Contains(err.Error(), "it was stopped") {
		t.Errorf("pulled from a server that is gone: %v", err)
	}
	few, err := all.List("sums", []uint64{0})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.Wait(t.Context(), all.Push(few, []float32{1, 2})); err != nil {
		t.Errorf("the others: %v", err)
	}
	_ = all.Close(t.Context())
}

func TestServerThatIsAskedWhatNoClientAsksFailsAndSaysWhy(t *testing.T) {
	c := cluster(t)
	for want, m := range map[string]*protos.Message{
		"a message *protos.Busy":             protos.NewMessage(&protos.Busy{}),
		"shard 7 of":                         protos.NewMessage(&protos.Access{Shard: 7}),
		"shard 1 of 73 is asked of server 0": protos.NewMessage(&protos.Access{Shard: 1}),
		"tensors that do not fit the keys":   protos.NewMessage(&protos.Access{Push: true}),
		"a list of keys that is none": protos.NewMessage(&protos.Access{List: 1, Keys: 9},
			protos.NewTensor([]float32{1})),
		"a range of keys that is none of its": protos.NewMessage(&protos.Access{First: 3, Last: 1}),
	} {
		all := open(t, c, table.Options{})
		ref, err := c.Find(t.Context(), "w-0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ref.Ask(t.Context(), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		_ = all.Close(t.Context())
	}
	_, err := tables.Open(t.Context(), c, tables.Config{Kind: "weights", Name: "w", Tables: weights()})
	if err == nil || !strings.Contains(err.Error(), "0 servers; accepted is 1 and more") {
		t.Error(err)
	}
}

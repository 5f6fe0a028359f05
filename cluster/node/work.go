package node

import (
	"context"
	"os"
	"time"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/store"
)

// uploadEvery is how often a process looks for changes in its folder of records.
const uploadEvery = time.Second

// work makes a working folder for the records of a process that stay in a store, with what the store
// has of it, and uploads changes from then on. The function returned ends that.
func (c *Config) work(ctx context.Context) (upload func(context.Context) error, err error) {
	at, err := store.Parse(c.Out)
	if err != nil {
		return nil, refusal.Input(err)
	}
	if at.Bucket == "" {
		c.Out = at.Path
		return func(context.Context) error { return nil }, nil
	}
	log := func(text string) {
		if c.Log != nil {
			c.Log(text)
		}
	}
	m, err := store.Work(ctx, at.Join(c.Name), store.Either, log)
	if err != nil {
		return nil, err
	}
	c.Out = m.Dir
	if err = os.MkdirAll(m.Dir, 0o750); err == nil {
		err = m.Start(ctx)
	}
	if err != nil {
		_ = m.Close(ctx) // keeps the folder
		return nil, err
	}
	ticks := time.NewTicker(uploadEvery)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticks.C:
				m.Changed()
			case <-over:
				return
			}
		}
	}()
	return func(ctx context.Context) error {
		ticks.Stop()
		close(over)
		return m.Close(ctx)
	}, nil
}

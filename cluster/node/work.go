package node

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/store"
)

const (
	// uploadEvery is how often a process looks for changes in its folder of records.
	uploadEvery = time.Second
	// uploadGrace is how long uploads go on after a process has left the cluster.
	uploadGrace = 5 * time.Second
)

// work makes a working folder for the records of a process that stay in a store, with the records that
// the store has of it, and uploads changes from then on. upload ends that.
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
	c.Out, m.Every = m.Dir, uploadEvery
	if err = os.MkdirAll(m.Dir, 0o750); err == nil {
		err = m.Start(ctx)
	}
	upload = func(ctx context.Context) error { return m.Close(ctx, uploadGrace) }
	if err != nil {
		return nil, errors.Join(err, upload(ctx)) // keeps the folder
	}
	return upload, nil
}

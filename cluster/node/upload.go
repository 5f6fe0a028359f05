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
	// uploadEvery is the interval at which a process scans its folder of records for changes.
	uploadEvery = time.Second
	// uploadGrace bounds the uploads after a process has left the cluster.
	uploadGrace = 5 * time.Second
)

// startUploads opens a working folder if the records of a process go to a store, with its records from the
// store, and uploads changes from then on. The function returned uploads the last changes.
func (c *Config) startUploads(ctx context.Context) (upload func(context.Context) error, err error) {
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
	u, err := store.OpenWorkFolder(ctx, at.Join(c.Name), store.MayHoldRecord, log)
	if err != nil {
		return nil, err
	}
	c.Out, u.Every = u.Dir, uploadEvery
	if err = os.MkdirAll(u.Dir, 0o750); err == nil {
		err = u.Start(ctx)
	}
	upload = func(ctx context.Context) error { return u.Close(ctx, uploadGrace) }
	if err != nil {
		return nil, errors.Join(err, upload(ctx)) // upload keeps the folder
	}
	return upload, nil
}

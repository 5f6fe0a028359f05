package client

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gradwire/gradwire/cluster/refusal"
)

const (
	// successionPatience is how long a client waits until another process goes on with a run whose
	// process is gone.
	successionPatience = 40 * time.Second
	// successionLook is the time between two looks meanwhile.
	successionLook = 250 * time.Millisecond
	// refreshEvery is the interval at which a client that follows a run asks for the addresses of
	// processes.
	refreshEvery = 3 * time.Second
	// movePatience is the time for which a client looks again for a submission that has moved.
	movePatience = 3 * time.Second
)

// at is the address of the process that the client asks.
func (c *Client) at() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seed
}

// moveTo has the client ask another process from now on.
func (c *Client) moveTo(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seed = address
}

// learn takes note of where processes are.
func (c *Client) learn(nodes []Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = c.known[:0:0]
	for i := range nodes {
		c.known = append(c.known, nodes[i].Address)
	}
}

// others are the addresses of all processes but the one that the client asks.
func (c *Client) others() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.known), func(address string) bool { return address == c.seed })
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow listens to the process that carries a run out, and to the one that goes on with it if that
// one is gone.
func (c *Client) follow(ctx context.Context, id string, listen func(address, id string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go c.refresh(ctx)
	held := false
	var broken time.Time // since when nobody was found to listen to
	for {
		address, s, err := c.keeper(ctx, id)
		passes := err != nil // for a moment nobody may know the run
		if err == nil {
			id, held, broken = s.ID, len(s.Holders) > 0, time.Time{}
			err = listen(address, id)
			passes = !errors.As(err, new(*refusal.InputError))
		}
		if broken.IsZero() {
			broken = time.Now()
		}
		if err == nil || !held || !passes || time.Since(broken) > successionPatience {
			return err
		}
		if err := pause(ctx, successionLook); err != nil {
			return err
		}
	}
}

// refresh keeps the addresses of processes current: all of them may restart at other addresses
// while the client listens to one.
func (c *Client) refresh(ctx context.Context) {
	for pause(ctx, refreshEvery) == nil {
		_, _ = c.Nodes(ctx) // the next round repeats a failed request
	}
}

// locate repeats request, which finds a submission's process and asks it, while the process has the
// submission no longer: it can move between the two steps. It returns any error but an AgainError at
// once.
func locate(ctx context.Context, request func() error) error {
	var refused time.Time // when a request was first refused
	for {
		err := request()
		if refused.IsZero() {
			refused = time.Now()
		}
		if !errors.As(err, new(*refusal.AgainError)) || time.Since(refused) >= movePatience {
			return err
		}
		if pause(ctx, successionLook) != nil {
			return err
		}
	}
}

// retryable reports whether a request that failed may succeed later: its process died before it
// answered, or refused the request only for now.
func retryable(err error) bool {
	if errors.As(err, new(*refusal.AgainError)) {
		return true
	}
	return slices.ContainsFunc([]error{
		io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, os.ErrDeadlineExceeded,
		context.DeadlineExceeded,
	}, func(lost error) bool { return errors.Is(err, lost) })
}

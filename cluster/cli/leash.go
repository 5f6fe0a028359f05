package cli

import (
	"context"
	"errors"
	"io"
)

var errLetGo = errors.New("the program that started this node has ended")

// leashed returns a context that ends when nothing more can be read: the process that holds the
// other end of the pipe has ended then, however that came about.
func leashed(ctx context.Context, in io.Reader) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is all that matters
		cancel(errLetGo)
	}()
	return ctx, func() { cancel(nil) }
}

package world

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// NewSystem returns an actor system that logs nothing: failures are reported by the
// world. The goroutine that throttles its log after a dead letter does not outlive a run.
func NewSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Nanosecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(io.Discard, nil))
		}))
}

// PanicError turns what an actor or a job panicked with into an error: the error
// itself if it is of the actor's own making, otherwise one that shows where it happened.
func PanicError(reason any) error {
	if err, ok := reason.(error); ok {
		if _, isRuntime := reason.(runtime.Error); !isRuntime {
			return err
		}
	}
	return fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
}

package door

import (
	"io"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/asynkron/protoactor-go/extensions"
	cmap "github.com/orcaman/concurrent-map"
)

// first is an actor system that logs nothing, and has what all others have in common: its
// configuration and its log.
var first = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Nanosecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(io.Discard, nil))
		}))
})

// NewSystem returns an actor system that logs nothing: failures are reported by the
// world. The goroutine that throttles its log after a dead letter does not outlive a run.
// Nobody must call its Shutdown, which ends all systems together.
//
// It is put together as actor.NewActorSystem does it, but for the register of its processes, which
// has 32 maps instead of 32,768. Those take 3.4 MB, for each node in real time, and most of the
// time of a short run.
func NewSystem() *actor.ActorSystem {
	s := *first()
	s.ProcessRegistry = &actor.ProcessRegistryValue{
		ActorSystem: &s, Address: s.ProcessRegistry.Address,
		LocalPIDs: &actor.SliceMap{LocalPIDs: []cmap.ConcurrentMap{cmap.New()}},
	}
	s.Root = actor.NewRootContext(&s, actor.EmptyMessageHeader)
	s.Guardians = actor.NewGuardians(&s)
	s.EventStream = eventstream.NewEventStream()
	s.DeadLetter = actor.NewDeadLetter(&s)
	s.Extensions = extensions.NewExtensions()
	actor.SubscribeSupervision(&s)
	s.Extensions.Register(actor.NewMetrics(&s, s.Config.MetricsProvider))
	s.ProcessRegistry.Add(actor.NewEventStreamProcess(&s), "eventstream")
	return &s
}

// Locals is how many actors, futures and others an actor system knows.
func Locals(s *actor.ActorSystem) (count int) {
	for _, bucket := range s.ProcessRegistry.LocalPIDs.LocalPIDs {
		count += bucket.Count()
	}
	return count
}

// HasExtras reports whether an actor has spawned others, is watched, stashes messages or has a
// timeout of protoactor's.
func HasExtras(invoker actor.MessageInvoker) bool {
	extras := reflect.ValueOf(invoker).Elem().FieldByName("extras")
	return extras.IsValid() && !extras.IsNil()
}

package cli_test

import (
	"math"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/protos"
)

// tally adds what it is sent and answers with the sum, but for 0, which it does not answer, and for
// the least number there is, at which it blocks for good.
type tally struct {
	First int64 `plan:"first"`
	sum   int64
}

// tallies is a catalog with the actor kind tally, and an optimizer that ends its process.
func tallies() *catalog.Catalog {
	c := catalog.Default()
	addPoisons(c)
	c.Actors.Add(catalog.Define("tally", "adds numbers", func() tally { return tally{} },
		func(_ *catalog.Catalog, t *tally) (actors.ResidentKind, error) {
			return func(actors.Base) (actor.Actor, error) { return &tally{sum: t.First}, nil }, nil
		}))
	return c
}

func (t *tally) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	n := m.Head.(*wrapperspb.Int64Value).Value
	m.Release()
	if n == math.MinInt64 {
		select {}
	}
	t.sum += n
	if n != 0 && ctx.Sender() != nil {
		ctx.Respond(protos.NewMessage(wrapperspb.Int64(t.sum)))
	}
}

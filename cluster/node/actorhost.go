package node

import (
	"context"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/resident"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
)

// actorHost is a process as the service of actors outside of runs sees it.
type actorHost struct{ of *process }

var _ resident.Process = actorHost{}

func (a actorHost) Name() string                        { return a.of.config.Name }
func (a actorHost) Running() context.Context            { return a.of.stop }
func (a actorHost) Entered() error                      { return a.of.entered() }
func (a actorHost) Begin(do func())                     { a.of.begin(do) }
func (a actorHost) Failed(what string, cause any) error { return a.of.failed(what, cause) }
func (a actorHost) Node() *transport.Node               { return a.of.node }
func (a actorHost) Members() []membership.Member        { return a.of.members.View().Members }

func (a actorHost) SendOn(going context.Context, name string, f *wire.Frame) error {
	return a.of.sendOn(going, name, f)
}

// actorKinds are the names of the kinds of actors that can live here.
func (p *process) actorKinds() (names []string) {
	for _, k := range p.catalog.Actors.All() {
		names = append(names, k.Name)
	}
	return names
}

// readActor returns the actor that a section describes.
func (p *process) readActor(section *plan.Node) (actors.Kind, error) {
	kind, _, err := p.catalog.Actors.Read(p.catalog, section)
	return kind, err
}

package node

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// requestPatience is how long a client may take to say what it wants.
const requestPatience = 10 * time.Second

// answer carries out a request.
func (p *process) answer(c *request.Caller) error {
	var r protos.Request
	in := bufio.NewReader(c.Conn)
	if err := c.Conn.SetReadDeadline(time.Now().Add(requestPatience)); err != nil {
		return err
	}
	if err := request.Read(in, &r); err != nil {
		return refusal.Input(fmt.Errorf("the request cannot be read: %w", err))
	}
	if err := c.Conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := p.entered(); err != nil {
		return err
	}
	if p.draining.Load() && (r.GetSubmit() != nil || r.GetSpawn() != nil) {
		return refusal.Again(fmt.Errorf("process %s is about to leave the cluster: ask another one", p.config.Name))
	}
	if r.GetAttach() != nil {
		return p.residents.Attach(c, in)
	}
	// The end of the connection, or anything behind the request, ends the answer.
	ctx, cancel := context.WithCancelCause(p.stop)
	defer cancel(nil)
	go func() {
		_, err := in.ReadByte()
		cancel(fmt.Errorf("the client is gone: %w", err))
	}()
	switch k := r.Kind.(type) {
	case *protos.Request_Nodes:
		return c.Reply(&protos.Reply{Kind: &protos.Reply_Processes{Processes: p.processes()}})
	case *protos.Request_Runs:
		return p.answerRuns(c)
	case *protos.Request_Spawn:
		return p.residents.AnswerSpawn(ctx, c, k.Spawn)
	case *protos.Request_Actors:
		return p.residents.AnswerList(ctx, c, k.Actors.Name)
	case *protos.Request_Recover:
		return p.answerRecover(ctx, c, k.Recover)
	}
	return p.queue.Answer(ctx, c, &r)
}

// processes lists the cluster's processes, as this one sees them.
func (p *process) processes() *protos.Processes {
	all := &protos.Processes{}
	status, unanswered := p.describeQuorum()
	states, trips := map[string]string{p.config.Name: "here"}, map[string]time.Duration{}
	for _, s := range p.node.Peers() {
		states[s.Peer.Name], trips[s.Peer.Name] = s.State.String(), s.RoundTrip
	}
	for _, m := range p.members.View().Members {
		expires, timeout := p.directory.settings(m.Name)
		if m.Name == p.config.Name {
			expires, timeout = p.expires(), int64(p.config.NodeTimeout)
		}
		all.Processes = append(all.Processes, &protos.Process{
			Name:        m.Name,
			Address:     m.Meta.Address,
			Role:        m.Meta.Role,
			Cores:       int32(m.Meta.Cores),
			Labels:      m.Meta.Labels,
			Incarnation: m.Meta.Incarnation,
			State:       states[m.Name],
			RoundTrip:   int64(trips[m.Name]),
			Expires:     expires,
			Build:       m.Meta.Build,
			Timeout:     timeout,
			Vote:        registryRole(&status, m.Name),
			Leaves:      m.Leaves,
		})
	}
	all.WithoutQuorum, all.OtherRegistry = unanswered, status.Other
	all.Refused = p.members.Incompatible()
	return all
}

// answerRuns lists what was submitted here, and what is known here of the submissions of others:
// those whose processes are away, those that this process holds, and those of whose records it has
// copies. The client prefers the word of the process that has the record.
func (p *process) answerRuns(c *request.Caller) error {
	all := &protos.Submissions{}
	for _, s := range p.queue.All() {
		m, _ := s.Listed()
		all.Submissions = append(all.Submissions, m)
	}
	all.Submissions = append(all.Submissions, p.directory.away()...)
	held := p.holders.Held()
	for _, m := range held {
		p.directory.complete(m)
	}
	all.Submissions = append(all.Submissions, held...)
	for _, m := range all.Submissions {
		declareLost(m, time.Now())
	}
	all.Submissions = append(all.Submissions, p.holders.Copies()...)
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Submissions{Submissions: all}})
}

// actorKinds are the names of the kinds of actors that can live here.
func (p *process) actorKinds() (names []string) {
	for _, k := range p.catalog.Actors.All() {
		names = append(names, k.Name)
	}
	return names
}

// readActor returns the actor that a section describes.
func (p *process) readActor(section *syntax.Node) (actors.ResidentKind, error) {
	kind, _, err := p.catalog.Actors.Read(p.catalog, section)
	return kind, err
}

package resident

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

const (
	// listPatience is how long a process may take to tell of its actors.
	listPatience = 2 * time.Second
	// spawnPatience is how long one may take to make an actor.
	spawnPatience = 30 * time.Second
	// maxSeen is of how many actors a process remembers where it last knew them to be.
	maxSeen = 4096
)

// Service is a process's part in the actors that belong to no run: it hosts some, and leads clients
// to all.
type Service struct {
	config  Config
	host    *Host
	node    *transport.Node
	telling sync.WaitGroup // ends of calls that wait for the network

	mu       sync.Mutex
	lines    map[uint64]*line
	lastLine uint64
	asked    map[uint64]*asked
	lastAsk  uint64
	seen     map[string]string // node of an actor, by name
}

// asked is an ActorRequest that is not answered yet.
type asked struct {
	node   string
	answer chan *protos.ActorResponse // nil in it says that the node is gone
}

// NewService returns the service of a process, without actors.
func NewService(c Config) *Service {
	return &Service{
		config: c, host: New(c), lines: map[uint64]*line{}, asked: map[uint64]*asked{}, seen: map[string]string{},
	}
}

// Use says how other processes are reached. It must be called before any of them is.
func (r *Service) Use(node *transport.Node) { r.node = node }

// Free is how many cores of the process no actor has reserved.
func (r *Service) Free() int { return r.host.Free() }

// Close stops all actors of the process, and waits for those that are at work for at most patience.
func (r *Service) Close(patience time.Duration) error { return r.host.Close(patience) }

// Wait waits until what was to be told to other processes is sent or given up, as it is when their
// connections are closed.
func (r *Service) Wait() { r.telling.Wait() }

// send sends a message to another process.
func (r *Service) send(name string, m proto.Message) error {
	return r.node.Send(name, &wire.Frame{Kind: wire.User, Head: m})
}

// Reserved asks all processes how many cores actors have reserved there. Who does not answer is
// left out.
func (r *Service) Reserved(ctx context.Context) map[string]int {
	told, _ := r.reports(ctx, nobody)
	reserved := map[string]int{}
	for _, n := range told {
		reserved[n.Name] = int(n.GetCores() - n.GetFree())
	}
	return reserved
}

// nobody is no name of an actor.
const nobody = " "

// Receive takes what another process says of actors.
func (r *Service) Receive(from string, f *wire.Frame) {
	switch m := f.Head.(type) {
	case *protos.ActorCall:
		r.take(from, m, f.Tensors)
	case *protos.ActorReceipt:
		r.receipt(m, f.Tensors)
	case *protos.ActorRequest:
		f.Release()
		r.config.Begin(func() { r.answer(from, m) })
	case *protos.ActorResponse:
		f.Release()
		r.mu.Lock()
		a := r.asked[m.Id]
		r.mu.Unlock()
		if a != nil && a.node == from {
			a.end(m)
		}
	}
}

// end gives the answer, unless one was given.
func (a *asked) end(m *protos.ActorResponse) {
	select {
	case a.answer <- m:
	default:
	}
}

// errGone says that a process is not there, rather than that it has not answered.
var errGone = errors.New("the node is gone")

// ask asks a process, which may be this one. The error wraps errGone if it is not there.
func (r *Service) ask(ctx context.Context, node string, m *protos.ActorRequest,
	patience time.Duration) (*protos.ActorResponse, error) {
	if node == r.config.Node {
		return r.handle(ctx, m), nil
	}
	if s, ok := r.node.Peer(node); ok && s.State == transport.Down {
		return nil, fmt.Errorf("node %s: %w", node, errGone)
	}
	a := &asked{node: node, answer: make(chan *protos.ActorResponse, 1)}
	r.mu.Lock()
	r.lastAsk++
	m.Id = r.lastAsk
	r.asked[m.Id] = a
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.asked, m.Id)
		r.mu.Unlock()
	}()
	switch err := r.send(node, m); {
	case errors.Is(err, transport.ErrDown):
		return nil, fmt.Errorf("node %s: %w", node, errGone)
	case err != nil:
		return nil, err
	}
	select {
	case answer := <-a.answer:
		if answer == nil {
			return nil, fmt.Errorf("node %s: %w", node, errGone)
		}
		return answer, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("node %s has not answered within %v", node, patience)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// report is what a node has told of its actors.
type report struct {
	membership.Member
	*protos.Actors
}

// known returns all nodes of the cluster, including those that membership has given up although their
// connections have not: they may return with their actors.
func (r *Service) known() []membership.Member {
	all := slices.Clone(r.config.Members())
	for _, p := range r.node.Peers() {
		if p.State != transport.Unknown && p.State != transport.Down &&
			!slices.ContainsFunc(all, func(m membership.Member) bool { return m.Name == p.Peer.Name }) {
			all = append(all, membership.Member{Name: p.Peer.Name})
		}
	}
	return all
}

// reports asks all nodes but those to be skipped for their actors of a name, or all. Nodes that are
// gone are left out; silent are those that do not answer.
func (r *Service) reports(ctx context.Context, name string, skip ...string) (all []report, silent []string) {
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, m := range r.known() {
		if slices.Contains(skip, m.Name) {
			continue
		}
		work.Go(func() {
			request := &protos.ActorRequest{Kind: &protos.ActorRequest_List{List: &protos.ListActors{Name: name}}}
			a, err := r.ask(ctx, m.Name, request, listPatience)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && a.Error == "":
				all = append(all, report{m, a.GetActors()})
			case !errors.Is(err, errGone):
				silent = append(silent, m.Name)
			}
		})
	}
	work.Wait()
	slices.SortFunc(all, func(a, b report) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(silent)
	return all, silent
}

// answer answers another process.
func (r *Service) answer(from string, m *protos.ActorRequest) {
	answer := r.attempt(m)
	answer.Id = m.Id
	if err := r.send(from, answer); err != nil {
		r.host.log("to %s about actors: %v", from, err)
	}
}

// attempt carries out a request of another process. One at which this process fails ends alone.
func (r *Service) attempt(m *protos.ActorRequest) (answer *protos.ActorResponse) {
	defer func() {
		if cause := recover(); cause != nil {
			err := r.config.Failed("a request about actors", cause)
			answer = &protos.ActorResponse{Error: request.Text(err.Error(), request.MaxText)}
		}
	}()
	return r.handle(r.config.Running, m)
}

// handle carries out a request to this process.
func (r *Service) handle(ctx context.Context, m *protos.ActorRequest) *protos.ActorResponse {
	if err := r.config.Entered(); err != nil {
		return &protos.ActorResponse{Error: err.Error()}
	}
	switch k := m.Kind.(type) {
	case *protos.ActorRequest_List:
		return &protos.ActorResponse{Actors: r.own(k.List.GetName())}
	case *protos.ActorRequest_Spawn:
		a, err := r.spawn(ctx, k.Spawn)
		if err != nil {
			var wrong *refusal.InputError
			return &protos.ActorResponse{Error: request.Text(err.Error(), request.MaxText),
				Input: errors.As(err, &wrong), Full: errors.Is(err, ErrCores)}
		}
		return &protos.ActorResponse{Actors: &protos.Actors{Actors: []*protos.Actor{a}}}
	}
	return &protos.ActorResponse{Error: fmt.Sprintf("node %s does not know this request: is it older than the others?",
		r.config.Node)}
}

// own are the actors of this process.
func (r *Service) own(name string) *protos.Actors {
	all := &protos.Actors{Actors: r.host.List(name), Free: int32(r.host.Free()), Cores: int32(r.config.Cores),
		Kinds: r.config.Kinds()}
	if name != "" && len(all.Actors) == 0 {
		if grave := r.host.Grave(name); grave != "" {
			all.Trace = fmt.Sprintf("on node %s it %s", r.config.Node, grave)
		}
	}
	return all
}

// spawn claims the name of an actor and makes the actor in this process.
func (r *Service) spawn(ctx context.Context, m *protos.SpawnActor) (*protos.Actor, error) {
	section, err := request.ActorSection(m.Name, m.Kind, m.Settings)
	if err != nil {
		return nil, refusal.Input(err)
	}
	kind, err := r.config.Read(section)
	if err != nil {
		return nil, refusal.Input(fmt.Errorf("node %s: %w", r.config.Node, err))
	}
	place, err := r.host.Reserve(m, kind)
	if err != nil {
		return nil, refusal.Input(err)
	}
	if err := place.claim(ctx); err != nil {
		place.Release()
		return nil, err
	}
	return place.Begin()
}

// Claims returns the ids of this process's actors with claimed names, by name.
func (r *Service) Claims() map[string]uint64 { return r.host.claims() }

// Has reports whether this process has an actor with a name and an id, or has reserved its place.
func (r *Service) Has(name string, id uint64) bool { return r.host.has(name, id) }

// EndForClaim ends an actor of this process whose name another node has claimed.
func (r *Service) EndForClaim(name string, id uint64, node string) {
	r.host.endForClaim(name, id, node)
}

// checkNameFree returns an error if a node reports an actor of a name. A name without a report may
// still be taken: only a claim decides.
func checkNameFree(name string, all []report) error {
	for _, n := range all {
		if len(n.GetActors()) == 0 {
			continue
		}
		a := n.GetActors()[0]
		if !a.Begun {
			return refusal.Input(fmt.Errorf("the name %s is being taken on node %s at this moment", name, n.Name))
		}
		return refusal.Input(fmt.Errorf("the name %s is taken by an actor of kind %s on node %s", name, a.Kind, n.Name))
	}
	return nil
}

// AnswerSpawn finds a node for an actor and has it made there.
func (r *Service) AnswerSpawn(ctx context.Context, c *request.Caller, m *protos.SpawnActor) error {
	if err := c.May("spawn actors", identity.Operator); err != nil {
		return err
	}
	all, silent := r.reports(ctx, m.Name)
	if err := checkNameFree(m.Name, all); err != nil {
		return err
	}
	hosts, err := candidates(m, all)
	if err != nil {
		return unplaced(m, err, silent)
	}
	var refused error
	for _, host := range hosts {
		a, err := r.ask(ctx, host, &protos.ActorRequest{Kind: &protos.ActorRequest_Spawn{Spawn: m}}, spawnPatience)
		switch {
		case err != nil:
			return fmt.Errorf("actor %s: %w", m.Name, err)
		case a.Error == "":
			for _, a := range a.GetActors().GetActors() {
				r.rememberNode(a.Name, a.Node)
			}
			r.host.log("%s has spawned actor %s on node %s", c.Name, m.Name, host)
			return c.Reply(&protos.Reply{Kind: &protos.Reply_Actors{Actors: a.Actors}})
		}
		refused = errors.New(a.Error)
		if a.Input {
			refused = refusal.Input(refused)
		}
		if !a.Full {
			return refused
		}
	}
	return refused
}

// unplaced returns the error of a spawn that fits no node. It is an input error, unless nodes that
// did not answer might fit.
func unplaced(m *protos.SpawnActor, err error, silent []string) error {
	switch {
	case slices.Contains(silent, m.Node):
		return fmt.Errorf("actor %s: node %s did not answer within %v; see `gradwire nodes`", m.Name, m.Node,
			listPatience)
	case m.Node == "" && len(silent) > 0:
		return fmt.Errorf("%w; no answer from %s", err, strings.Join(silent, ", "))
	}
	return refusal.Input(err)
}

// candidates are the nodes that an actor can live on, those with most free cores first.
func candidates(m *protos.SpawnActor, all []report) ([]string, error) {
	var fit []report
	var why []string
	for _, n := range all {
		switch {
		case m.Node != "" && n.Name != m.Node:
			continue
		case m.Label != "" && n.Meta.Labels[m.Label] != m.Value:
			why = append(why, fmt.Sprintf("%s has no label %s:%s", n.Name, m.Label, m.Value))
		case !slices.Contains(n.Kinds, m.Kind):
			why = append(why, fmt.Sprintf("%s knows the kinds %s", n.Name, listOrNone(n.Kinds)))
		case m.Cores > n.Free:
			why = append(why, fmt.Sprintf("%s has %d free cores of %d", n.Name, n.Free, n.GetCores()))
		default:
			fit = append(fit, n)
		}
	}
	if m.Node != "" && len(fit)+len(why) == 0 {
		return nil, fmt.Errorf("actor %s: the cluster has no node %s", m.Name, m.Node)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("no node fits actor %s of kind %s with %d cores: %s", m.Name, m.Kind, m.Cores,
			strings.Join(why, "; "))
	}
	slices.SortStableFunc(fit, func(a, b report) int { return cmp.Compare(b.Free, a.Free) })
	names := make([]string, len(fit))
	for i := range fit {
		names[i] = fit[i].Name
	}
	return names, nil
}

func listOrNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// AnswerList tells of the actors of all nodes, node by node.
func (r *Service) AnswerList(ctx context.Context, c *request.Caller, name string) error {
	all, silent := r.reports(ctx, name)
	rest, found := &protos.Actors{Silent: silent}, false
	for _, n := range all {
		n.Actors.Actors = slices.DeleteFunc(n.Actors.Actors, func(a *protos.Actor) bool { return !a.Begun })
		for _, a := range n.Actors.Actors {
			if found = true; name != "" {
				r.rememberNode(a.Name, a.Node)
			}
		}
		if err := c.Reply(&protos.Reply{Kind: &protos.Reply_Actors{Actors: n.Actors}}); err != nil {
			return err
		}
	}
	if name != "" && !found {
		rest.Trace = r.trace(name, all)
	}
	if err := c.Reply(&protos.Reply{Kind: &protos.Reply_Actors{Actors: rest}}); err != nil {
		return err
	}
	return c.Done()
}

// rememberNode remembers where an actor is.
func (r *Service) rememberNode(name, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == maxSeen {
		clear(r.seen)
	}
	r.seen[name] = node
}

// trace says what this process remembers of an actor whose node has not told of it.
func (r *Service) trace(name string, told []report) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	node, known := r.seen[name]
	if !known || slices.ContainsFunc(told, func(n report) bool { return n.Name == node }) {
		return ""
	}
	return fmt.Sprintf("it was on node %s, which is gone", node)
}

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// ErrNoActor is wrapped by errors of Find about a name that no actor bears.
var ErrNoActor = errors.New("no such actor")

// ActorSpec is an actor that a driver wants, outside of any run.
type ActorSpec struct {
	// Name is unique in the cluster: 1 to 128 printable ASCII characters without spaces.
	//
	// The node that is to host the actor keeps the name while it asks all others whether they have
	// it. Of two who take one name at the same moment at most one succeeds, and perhaps neither. A
	// node that belongs to the cluster and does not answer has the request refused. On the two
	// sides of a partition, once membership has given the other side up, the same name can be taken
	// twice; when the partition has healed, Actors lists both and Find refuses to choose.
	Name string
	// Kind is one of the kinds in Catalog.Actors of the node.
	Kind string
	// Settings of the kind, in the YAML of a plan, such as "{first: 5}"; empty for all defaults.
	Settings string
	// Node is where it is to live; without one, where most cores are free among the nodes
	// with the Label, KEY:VALUE, if one is given.
	Node, Label string
	// Cores are reserved for what the actor computes with Env.Compute, until it has ended. An actor
	// without any cannot compute. Runs do not reserve cores; no node of a plan is placed where all
	// are reserved.
	Cores int
	// Restart says how often the actor is restarted when it fails; the zero value, never.
	Restart Restart
}

// Restart says how often an actor is restarted: at most Times, up to 1000, within any span of
// Within, which is at least a second, or in its whole life if Within is 0. Messages that wait
// remain; the one it failed at is lost, and so are questions that it had begun and not answered. An
// actor that is an actors.Restorer hands its state on. Nothing survives its process.
type Restart struct {
	Times  int
	Within time.Duration
}

// Actor is an actor outside of any run, as its node sees it.
type Actor struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Node string `json:"node"`
	// Cores are reserved.
	Cores int `json:"cores"`
	// Mailbox is how many messages wait.
	Mailbox  int `json:"mailbox"`
	Restarts int `json:"restarts"`
	// Handled and Lost count messages of drivers.
	Handled uint64    `json:"handled"`
	Lost    uint64    `json:"lost"`
	Since   time.Time `json:"since"`
	// Failure is the last one; empty if there was none.
	Failure string `json:"failure,omitempty"`
}

// MaxUnderWay is how many messages of one Ref may be under way at a time.
const MaxUnderWay = 1024

// Ref refers to an actor: to this one, not to another one that takes its name when it has ended. It
// is safe for use by many goroutines.
//
// A message is handled at most once, and in the order in which the calls of Send, Ask and Stop
// began for all Refs of a Client to one actor. It is lost, and counted, if the actor or its node
// ends before it is handled, if the actor fails at it, if its mailbox is full (10,000 messages), or
// if a connection on the way breaks meanwhile, even if it should have been handled in spite of
// that. Nothing is repeated: who wants more asks, or numbers messages and has the actor answer.
type Ref struct {
	Name, Kind, Node string

	client *Client
	id     uint64
	window chan struct{}
	mu     sync.Mutex
	stats  RefStats
}

// RefStats is what has become of a Ref's messages. Sent = Handled + Lost + UnderWay, always.
type RefStats struct {
	Sent uint64
	// Handled by the actor; questions count when they are answered.
	Handled uint64
	// Lost or, after a broken connection, not known to have been handled; and questions that were
	// not answered.
	Lost     uint64
	UnderWay uint64
	// Cause is why the latest one was lost.
	Cause error
}

func (c *Client) newRef(a *protos.Actor) *Ref {
	return &Ref{Name: a.Name, Kind: a.Kind, Node: a.Node, client: c, id: a.Id, window: make(chan struct{}, MaxUnderWay)}
}

func (r *Ref) String() string { return fmt.Sprintf("actor %s on node %s", r.Name, r.Node) }

// Stats returns the counters of this Ref.
func (r *Ref) Stats() RefStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Spawn has an actor made. An InputError says what is wrong with the specification, or that no node
// fits.
func (c *Client) Spawn(ctx context.Context, s ActorSpec) (*Ref, error) {
	m, err := s.request()
	if err != nil {
		return nil, refusal.Input(err)
	}
	r, err := c.one(ctx, c.at(), &protos.Request{Kind: &protos.Request_Spawn{Spawn: m}})
	if err != nil {
		return nil, err
	}
	if n := len(r.GetActors().GetActors()); n != 1 {
		return nil, fmt.Errorf("the process has answered with %d actors where one was to be", n)
	}
	return c.newRef(r.GetActors().GetActors()[0]), nil
}

// request checks a specification as far as a driver can.
func (s *ActorSpec) request() (*protos.SpawnActor, error) {
	if err := request.CheckActor(s.Name, s.Cores, s.Restart.Times, s.Restart.Within); err != nil {
		return nil, err
	}
	if s.Kind == "" {
		return nil, fmt.Errorf("actor %s needs a kind", s.Name)
	}
	if _, err := request.ActorSection(s.Name, s.Kind, s.Settings); err != nil {
		return nil, err
	}
	key, value, ok := strings.Cut(s.Label, ":")
	if s.Label != "" && (!ok || key == "") {
		return nil, fmt.Errorf("actor %s: label %q; accepted is KEY:VALUE", s.Name, s.Label)
	}
	return &protos.SpawnActor{
		Name: s.Name, Kind: s.Kind, Settings: s.Settings, Node: s.Node, Label: key, Value: value,
		Cores:    int32(min(s.Cores, 1<<30)),
		Restarts: int32(s.Restart.Times), Within: int64(s.Restart.Within),
	}, nil
}

// Find returns a reference to the actor of a name. The error wraps ErrNoActor if no node has one,
// and says what is known of the last one and which nodes have not answered.
func (c *Client) Find(ctx context.Context, name string) (*Ref, error) {
	found, silent, trace, err := c.list(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case len(found) > 1:
		return nil, refusal.Input(fmt.Errorf("%d actors bear the name %s, on nodes %s and %s, as after a partition; "+
			"stop one of them", len(found), name, found[0].Node, found[1].Node))
	case len(found) == 1:
		return c.newRef(found[0]), nil
	}
	text := fmt.Sprintf("the cluster has no actor %s", name)
	if trace != "" {
		text += "; " + trace
	}
	if len(silent) > 0 {
		text += "; not answered have: " + strings.Join(silent, ", ")
	}
	return nil, refusal.Input(fmt.Errorf("%w: %s", ErrNoActor, text))
}

// FindOn returns a reference to the actor of a name on one node, for a name that is borne twice.
func (c *Client) FindOn(ctx context.Context, name, node string) (*Ref, error) {
	found, _, _, err := c.list(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		if a.Node == node {
			return c.newRef(a), nil
		}
	}
	return nil, refusal.Input(fmt.Errorf("%w: node %s has no actor %s", ErrNoActor, node, name))
}

// Actors returns the actors of all nodes that belong to no run, by name and node. Nodes that do not
// answer are passed over; the error then says so.
func (c *Client) Actors(ctx context.Context) ([]Actor, error) {
	found, silent, _, err := c.list(ctx, "")
	all := make([]Actor, len(found))
	for i, a := range found {
		all[i] = Actor{
			Name: a.Name, Kind: a.Kind, Node: a.Node, Cores: int(a.Cores), Mailbox: int(a.Mailbox),
			Restarts: int(a.Restarts),
			Handled:  a.Handled, Lost: a.Lost, Since: time.Unix(0, a.Since), Failure: a.Failure,
		}
	}
	if err == nil && len(silent) > 0 {
		err = fmt.Errorf("not answered have: %s", strings.Join(silent, ", "))
	}
	return all, err
}

// list asks the seed for the actors of a name, or all.
func (c *Client) list(ctx context.Context, name string) (found []*protos.Actor, silent []string, trace string,
	err error) {
	wanted := &protos.Request{Kind: &protos.Request_Actors{Actors: &protos.ListActors{Name: name}}}
	err = c.each(ctx, c.at(), wanted, func(r *protos.Reply) bool {
		found = append(found, r.GetActors().GetActors()...)
		silent = append(silent, r.GetActors().GetSilent()...)
		trace = cmp.Or(trace, r.GetActors().GetTrace())
		return true
	})
	if err != nil {
		return nil, nil, "", err
	}
	slices.SortFunc(found, func(a, b *protos.Actor) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node))
	})
	return found, silent, trace, nil
}

// AskPatience is how long Ask waits for an answer if its context has no deadline.
const AskPatience = 30 * time.Second

// Send sends the actor a message, and takes over the caller's reference. It does not wait until the
// message is handled, but where MaxUnderWay messages are, it waits for one of them. An error says
// that it was not sent; what becomes of it later, Stats tells. At most 1 MiB of head, and 4 MiB in
// all, can be sent.
func (r *Ref) Send(ctx context.Context, m *protos.Message) error {
	defer m.Release()
	_, err := r.call(ctx, protos.ActorCall_SEND, m, 0)
	return err
}

// Ask sends the actor a message and returns its answer, whose reference is the caller's. It ends
// with the context, or after AskPatience if that has no deadline.
func (r *Ref) Ask(ctx context.Context, m *protos.Message) (*protos.Message, error) {
	defer m.Release()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(AskPatience)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	s, err := r.call(ctx, protos.ActorCall_ASK, m, time.Until(deadline))
	if err != nil {
		return nil, err
	}
	answer, err := s.wait(ctx, "has not answered")
	if err == nil && answer == nil {
		err = fmt.Errorf("%s: the answer is empty", r)
	}
	return answer, err
}

// Stop has the actor end once it has handled all that was sent before, and waits until it has.
func (r *Ref) Stop(ctx context.Context) error {
	s, err := r.call(ctx, protos.ActorCall_STOP, nil, 0)
	if err == nil {
		_, err = s.wait(ctx, "is still at work")
	}
	return err
}

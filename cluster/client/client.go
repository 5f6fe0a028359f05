// Package client is a program's way into a cluster: it submits plans and follows them, fetches
// records, and spawns actors that live outside of runs. A client is not part of the cluster.
package client

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/protos"
)

// Client is a driver's way into a cluster, one connection for each request and one for all that it
// says to actors. It is no part of the cluster: what it has submitted or spawned goes on without
// it. It is safe for use by many goroutines.
type Client struct {
	identity *identity.Identity
	attached attachment
	tensors  protos.TensorPool // of answers of actors

	mu    sync.Mutex
	seed  string   // the address that has answered
	known []string // addresses of all processes
}

// Node is a process of a cluster, as a client sees it.
type Node struct {
	Name    string            `json:"name"`
	Address string            `json:"address"`
	Role    string            `json:"role,omitempty"`
	Cores   int               `json:"cores"`
	Labels  map[string]string `json:"labels,omitempty"`
	Started time.Time         `json:"started"`
	// State is the state of the connection from the process that was asked: up, suspended (silent for
	// 1.5 s), absent (silent for that process's NodeTimeout), down, unknown or here.
	State string `json:"state"`
	// RoundTrip is what a heartbeat takes from the process that was asked to this one and back, in
	// seconds, smoothed; 0 if none has come back yet.
	RoundTrip float64 `json:"round_trip_s"`
	// Expires is when its certificate does; zero if it has none, or the process that was asked does
	// not know.
	Expires time.Time `json:"certificate_expires,omitzero"`
	// Build identifies the process's program.
	Build string `json:"build,omitempty"`
	// Timeout is the node timeout in seconds: the process regards another process as absent after so long a
	// silence. It is 0 if the answering process does not know it.
	Timeout float64 `json:"node_timeout_s,omitzero"`
	// Vote is the process's part in the registry of names and submissions: leads, votes or learns. It is empty if the
	// process has no part, or if the answering process does not know it.
	Vote string `json:"vote,omitempty"`
	// Leaves is true if the process is about to leave: it hands over its work, and no run starts
	// on it.
	Leaves bool `json:"leaves,omitempty"`
	// WithoutQuorum is the reason why the answering process cannot use the registry, and so refuses new names
	// of actors. It is empty if the process can, and for all other processes.
	WithoutQuorum string `json:"without_quorum,omitempty"`
	// OtherRegistry is a process of an unrelated registry, which may grant the same names as the
	// answering process's registry. It is empty without one, and for all other processes.
	OtherRegistry string `json:"other_registry,omitempty"`
	// Refused names the processes that cannot join the cluster because they speak another
	// protocol, each with the reason. Only the answering process has it.
	Refused []string `json:"refused,omitempty"`
}

// Submission is a plan that was submitted, and how far it is.
type Submission struct {
	ID   string `json:"id"`
	Plan string `json:"plan"`
	// Process carries it out and keeps its record.
	Process string `json:"process"`
	// By is the name in the submitter's certificate.
	By string `json:"by"`
	// State is Waiting, Running, Done, Degraded, Failed, Stopped, Interrupted or Lost.
	State string `json:"state"`
	// Folder is where the process keeps the record.
	Folder string `json:"folder,omitempty"`
	// Done and Total count runs; Share is the share of the whole that is done.
	Done  int     `json:"done"`
	Total int     `json:"total"`
	Share float64 `json:"share"`
	// Error says why it has Failed, was Stopped or Interrupted, or is Lost.
	Error     string    `json:"error,omitempty"`
	Submitted time.Time `json:"submitted"`
	// Placement is the process of each node of the run under way, or of the last one.
	Placement map[string]string `json:"placement,omitempty"`
	// Holders are the processes that hold it, the one that it was submitted to first; none if that
	// one alone does. Another one carries it out when the one that does dies.
	Holders []string `json:"holders,omitempty"`
	// Lacking are holders without an up-to-date copy, each with the reason, as in
	// "n3: no space left on device". Without Holders, it says why the submission does not survive
	// Process.
	Lacking []string `json:"lacking,omitempty"`
	// Copy says that Process has a copy of the record; the process that made it is away, or has it
	// no longer.
	Copy bool `json:"copy,omitempty"`
	// Continues are the ids of the submissions that this one continues, the latest first. Each of
	// these ids leads to this one.
	Continues []string `json:"continues,omitempty"`
	// Lost says that somebody has deleted the record, and that no process that answers has a copy.
	Lost bool `json:"lost,omitempty"`
	// Insecure says that the cluster's connections are not protected.
	Insecure bool `json:"insecure,omitempty"`
	// Away is since when the process is, as another one sees it, and Why; zero while it is there.
	// The rest is then as it was when last heard of.
	Away time.Time `json:"away_since,omitzero"`
	Why  string    `json:"away_because,omitempty"`
	// Builds maps the submission's processes to their builds; nil if all run the same build. Status sets it.
	Builds map[string]string `json:"builds,omitempty"`
}

// Over reports whether the submission has ended.
func (s *Submission) Over() bool { return request.Over(s.State) }

// connectPatience is how long one seed may take to answer.
const connectPatience = 5 * time.Second

// Connect finds a process of a cluster that answers, among the addresses of seeds. The identity
// belongs to an operator or client; it is nil for a cluster without identities.
func Connect(ctx context.Context, seeds []string, id *identity.Identity) (*Client, error) {
	if len(seeds) == 0 {
		return nil, refusal.Input(errors.New("no address of the cluster is given, as --join or GRADWIRE_JOIN does"))
	}
	for _, seed := range seeds {
		if _, _, err := net.SplitHostPort(seed); err != nil {
			return nil, refusal.Input(fmt.Errorf("%.80q is no address of a node, which is HOST:PORT: %w", seed, err))
		}
	}
	var errs []error
	for _, seed := range seeds {
		one := &Client{identity: id, seed: seed, attached: attachment{turn: make(chan struct{}, 1)}}
		if _, err := one.Nodes(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		return one, nil
	}
	return nil, errors.Join(errs...)
}

// conversation is one request and its replies.
type conversation struct {
	conn    net.Conn
	in      *bufio.Reader
	release func() bool
	ctx     context.Context
	explain func(error) error
	address string
	heard   bool // something
}

// ask sends a request to a process.
func (c *Client) ask(ctx context.Context, address string, r *protos.Request) (*conversation, error) {
	opening, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	conn, _, err := transport.Open(opening, c.identity, address, identity.Clients)
	if err != nil {
		return nil, c.explain(err)
	}
	t := &conversation{conn: conn, in: bufio.NewReader(conn), ctx: ctx, explain: c.explain, address: address}
	t.release = context.AfterFunc(ctx, func() {
		conn.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // the conversation is over in any case
	})
	if err := request.Write(conn, r); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// explain says what an error of a connection means to a user who wants to reach a cluster.
func (c *Client) explain(err error) error {
	var alert tls.AlertError
	var stranger x509.UnknownAuthorityError
	switch {
	case errors.As(err, &alert):
		return fmt.Errorf("the certificates are not of one cluster, or the role is not accepted: %w", err)
	case errors.As(err, &stranger):
		return fmt.Errorf("the identity is one of another cluster: %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it has not answered in time: %w", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no node runs there: %w", err)
	case !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
		return err
	}
	perhaps := "it is not a node, or its cluster has no certificates"
	if c.identity == nil {
		perhaps = "a cluster that has certificates wants an identity"
	}
	if errors.Is(err, syscall.ECONNRESET) { // as of a process that is killed
		return fmt.Errorf("the connection was reset: the process there has just ended, or something on the way "+
			"has cut it off, or %s: %w", perhaps, err)
	}
	return fmt.Errorf("it has closed the connection without a word: %s; or it has just ended: %w", perhaps, err)
}

func (t *conversation) close() {
	t.release()
	t.conn.Close() //nolint:errcheck // all was heard
}

// next returns the next reply. A refusal is an error.
func (t *conversation) next() (*protos.Reply, error) {
	var r protos.Reply
	if err := request.Read(t.in, &r); err != nil {
		if cause := context.Cause(t.ctx); cause != nil {
			return nil, cause
		}
		if t.heard {
			return nil, fmt.Errorf("the connection with the process has broken: %w", err)
		}
		return nil, t.explain(fmt.Errorf("the process has not answered: %w", err))
	}
	t.heard = true
	if no := r.GetRefusal(); no != nil {
		err := refused(no, t.address)
		switch {
		case no.Input:
			return nil, refusal.Input(err)
		case no.Again:
			return nil, refusal.Again(err)
		}
		return nil, err
	}
	return &r, nil
}

// refused is why the process at an address refuses a request, with the name of the process.
func refused(no *protos.Refusal, address string) error {
	for _, word := range []string{"process ", "node "} {
		if no.Process != "" && strings.Contains(no.Error, word+no.Process) {
			return errors.New(no.Error)
		}
	}
	if no.Process == "" { // it is of an earlier version
		return fmt.Errorf("the process at %s: %s", address, no.Error)
	}
	return fmt.Errorf("process %s: %s", no.Process, no.Error)
}

// answerPatience is how long a process may take for what it has at hand.
const answerPatience = 10 * time.Second

// prompt asks for a single reply that needs no work.
func (c *Client) prompt(ctx context.Context, address string, r *protos.Request) (*protos.Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerPatience,
		fmt.Errorf("the process at %s has not answered for %v", address, answerPatience))
	defer cancel()
	return c.one(ctx, address, r)
}

// one asks for a single reply.
func (c *Client) one(ctx context.Context, address string, r *protos.Request) (*protos.Reply, error) {
	t, err := c.ask(ctx, address, r)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.next()
}

// each sends a request to a process and gives its replies to take, until take wants no more or
// the process is done.
func (c *Client) each(ctx context.Context, address string, r *protos.Request, take func(*protos.Reply) bool) error {
	t, err := c.ask(ctx, address, r)
	if err != nil {
		return err
	}
	defer t.close()
	for {
		reply, err := t.next()
		if err != nil || reply.GetDone() != nil || !take(reply) {
			return err
		}
	}
}

// Nodes returns the processes of the cluster, by name. Where the one that was asked so far does not
// answer, another one is.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	nodes, err := c.nodesOf(ctx, c.at())
	if err == nil {
		c.learn(nodes)
		return nodes, nil
	}
	for _, address := range c.others() {
		if nodes, failed := c.nodesOf(ctx, address); failed == nil {
			c.moveTo(address)
			c.learn(nodes)
			return nodes, nil
		}
	}
	return nil, err
}

// nodesOf asks the process at an address.
func (c *Client) nodesOf(ctx context.Context, address string) ([]Node, error) {
	r, err := c.prompt(ctx, address, &protos.Request{Kind: &protos.Request_Nodes{Nodes: &protos.ListNodes{}}})
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, p := range r.GetProcesses().GetProcesses() {
		n := Node{
			Name: p.Name, Address: p.Address, Role: p.Role, Cores: int(p.Cores), Labels: p.Labels, State: p.State,
			Started: time.Unix(0, int64(p.Incarnation)), RoundTrip: time.Duration(p.RoundTrip).Seconds(),
			Build: p.Build, Timeout: time.Duration(p.Timeout).Seconds(), Vote: p.Vote, Leaves: p.Leaves,
		}
		if p.State == "here" {
			n.WithoutQuorum = r.GetProcesses().GetWithoutQuorum()
			n.OtherRegistry = r.GetProcesses().GetOtherRegistry()
			n.Refused = r.GetProcesses().GetRefused()
		}
		if p.Expires != 0 {
			n.Expires = time.Unix(p.Expires, 0)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// askedAtOnce is how many processes a client asks at a time.
const askedAtOnce = 32

// everywhere asks processes side by side, since one that does not answer takes its time, and
// returns their answers in the order of the processes. The error names those that did not answer.
func everywhere[T any](nodes []Node, ask func(n *Node) (T, error)) ([]T, error) {
	answers, errs := make([]T, len(nodes)), make([]error, len(nodes))
	var asking sync.WaitGroup
	slots := make(chan struct{}, askedAtOnce)
	for i := range nodes {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			var err error
			if answers[i], err = ask(&nodes[i]); err != nil {
				errs[i] = fmt.Errorf("node %s: %w", nodes[i].Name, err)
			}
		})
	}
	asking.Wait()
	return answers, errors.Join(errs...)
}

// RoundTrips asks every process for what heartbeats take to the others and back, in seconds, by the
// names of both. Processes that do not answer are passed over; the error then says so.
func (c *Client) RoundTrips(ctx context.Context) (map[string]map[string]float64, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	others, err := everywhere(nodes, func(n *Node) ([]Node, error) { return c.nodesOf(ctx, n.Address) })
	trips := map[string]map[string]float64{}
	for i, from := range nodes {
		if others[i] == nil {
			continue
		}
		trips[from.Name] = map[string]float64{}
		for _, to := range others[i] {
			if to.RoundTrip > 0 {
				trips[from.Name][to.Name] = to.RoundTrip
			}
		}
	}
	return trips, err
}

// Submissions returns what was submitted to the processes of the cluster, in the order of time, and
// what others know of those that are away. Processes that do not answer are passed over; the error
// then says so.
func (c *Client) Submissions(ctx context.Context) ([]Submission, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	found, err := c.tell(ctx, nodes, "")
	all := make([]Submission, len(found))
	for i := range found {
		all[i] = found[i].Submission
	}
	return all, err
}

// told is what a process, at an address, tells of a submission.
type told struct {
	Submission
	held    bool // by this process, for another one
	address string
}

// rank orders what processes tell of one submission. The best is the word of the process that has
// the record; then that of one with a copy, of a holder, and of others that knew its process.
func (t *told) rank() int {
	switch {
	case t.Copy:
		return 1
	case t.held:
		return 2
	case t.Lost || !t.Away.IsZero():
		return 3
	}
	return 0
}

// stragglerPatience is how long other processes may take to answer once one knows the submission
// that is looked for: its own may be paused.
const stragglerPatience = 2 * time.Second

// absentPatience replaces stragglerPatience for a process that the cluster counts as absent.
const absentPatience = 200 * time.Millisecond

// tell asks some processes for what they know, or what they know of the submission with an id.
func (c *Client) tell(ctx context.Context, nodes []Node, id string) ([]told, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	whileAbsent, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	late := func(stop context.CancelCauseFunc, patience time.Duration) {
		time.AfterFunc(patience, func() {
			stop(fmt.Errorf("it has not answered for %v after another process had", patience))
		})
	}
	replies, err := everywhere(nodes, func(n *Node) (*protos.Reply, error) {
		ctx := ctx
		if n.State == transport.Absent.String() || n.State == transport.Down.String() {
			ctx = whileAbsent
		}
		r, err := c.prompt(ctx, n.Address, &protos.Request{Kind: &protos.Request_Runs{Runs: &protos.ListRuns{}}})
		if id != "" && slices.ContainsFunc(r.GetSubmissions().GetSubmissions(), func(m *protos.Submission) bool {
			return leadsTo(id, m.Id, m.Continues)
		}) {
			late(cancel, stragglerPatience)
			late(giveUp, absentPatience)
		}
		return r, err
	})
	all := merge(nodes, replies)
	slices.SortStableFunc(all, func(a, b told) int { return a.Submitted.Compare(b.Submitted) })
	return all, err
}

// merge are the submissions of all replies, each once: as the process tells it that ranks first or,
// of those that only knew its process, the one that has missed it for longest.
func merge(nodes []Node, replies []*protos.Reply) (all []told) {
	at := map[string]int{}
	for from, r := range replies {
		for _, m := range r.GetSubmissions().GetSubmissions() {
			t := told{submissionOf(m), m.Held, nodes[from].Address}
			i, twice := at[t.ID]
			if !twice {
				at[t.ID] = len(all)
				all = append(all, t)
				continue
			}
			before, now := all[i].rank(), t.rank()
			if now < before || now == before && (t.Away.IsZero() || t.Away.Before(all[i].Away)) {
				all[i] = t
			}
		}
	}
	return all
}

func submissionOf(s *protos.Submission) Submission {
	var away time.Time
	if s.Away != 0 {
		away = time.Unix(0, s.Away)
	}
	return Submission{
		ID: s.Id, Plan: s.Plan, Process: s.Process, By: s.By, State: s.State, Folder: s.Folder, Done: int(s.Done),
		Total: int(s.Total), Share: s.Share, Error: s.Error, Submitted: time.Unix(0, s.Submitted),
		Placement: s.Placement, Insecure: s.Insecure, Away: away, Why: s.Why, Holders: s.Holders, Lacking: s.Lacking,
		Copy: s.Copy, Lost: s.Lost, Continues: s.Continues,
	}
}

// leadsTo reports whether an id, which may be shortened, names a submission or one that it continues.
func leadsTo(id, whole string, continues []string) bool {
	return strings.HasPrefix(whole, id) ||
		slices.ContainsFunc(continues, func(former string) bool { return strings.HasPrefix(former, id) })
}

// find returns what is known of a run, as the process tells it that knows best.
func (c *Client) find(ctx context.Context, id string) (found told, err error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return found, err
	}
	all, failed := c.tell(ctx, nodes, id)
	for _, s := range all {
		continued := slices.ContainsFunc(all, func(o told) bool { return slices.Contains(o.Continues, s.ID) })
		if id == "" || continued || !leadsTo(id, s.ID, s.Continues) {
			continue
		}
		if found.ID != "" {
			return found, refusal.Input(fmt.Errorf("%s stands for more than one submission: %s and %s", id,
				found.ID, s.ID))
		}
		found = s
	}
	switch {
	case found.ID == "" && failed != nil:
		return found, refusal.Again(fmt.Errorf("no node that answers knows a run %q: %w", id, failed))
	case found.ID == "":
		return found, refusal.Input(fmt.Errorf("the cluster knows no submission %q", id))
	}
	return found, nil
}

// keeper returns a run, and the address of the process that keeps it, which is there. A process
// that is gone is waited for while another one may take over from it.
func (c *Client) keeper(ctx context.Context, id string) (address string, s Submission, err error) {
	for began := time.Now(); ; {
		found, err := c.find(ctx, id)
		s = found.Submission
		switch {
		case err != nil:
			return "", s, err
		case s.Away.IsZero():
			return found.address, s, nil
		case len(s.Holders) > 0 && !s.Over() && time.Since(began) < successionPatience:
			if err := pause(ctx, successionLook); err != nil {
				return "", s, err
			}
		case !s.Away.IsZero():
			return "", s, refusal.Again(fmt.Errorf("run %s is kept by process %s, which is away since %s (%s); "+
				"it was %s, with %d of %d runs, when last heard of",
				s.ID, s.Process, s.Away.Format(time.DateTime), s.Why, s.State, s.Done, s.Total))
		}
	}
}

// SubmitOptions say how a plan is submitted.
type SubmitOptions struct {
	// Place says where nodes live: WHAT=PROCESS or WHAT=LABEL:VALUE, where WHAT is a node, a group
	// or a role of the plan. What is said of a node first holds.
	Place []string
	// Note, if not nil, is told what the user should know, such as that the submission does not
	// survive its process.
	Note func(text string)
}

// WrittenPlan is a plan as it was written: the cluster reads it itself.
type WrittenPlan interface {
	// Written returns the plan's file, the text in it, and the assignments key=value that were
	// carried out.
	Written() (file string, text []byte, set []string)
}

// Submit has the cluster carry a plan out, and returns the submission's id. An InputError says what
// is wrong with the plan, or why the cluster cannot host it.
func (c *Client) Submit(ctx context.Context, p WrittenPlan, o SubmitOptions) (string, error) {
	file, text, set := p.Written()
	m := &protos.SubmitPlan{File: filepath.Base(file), Text: string(text), Set: set, Place: o.Place}
	if n := proto.Size(&protos.Request{Kind: &protos.Request_Submit{Submit: m}}); n > request.MaxMessage {
		return "", refusal.Input(fmt.Errorf("%s takes %d bytes with what was set in it; a cluster takes plans of at "+
			"most %d", file, n, request.MaxMessage))
	}
	id, err := c.submit(ctx, c.at(), m, o.Note)
	return id, located(file, err)
}

// Continue carries out the missing runs of a submission that ended before all its runs had finished.
// Its id may be shortened. The process that keeps it makes a new submission with the same plan and
// the same placement of nodes, and a saved run resumes from its checkpoint. Continue returns the id
// of the new submission, to which the old id leads from then on.
func (c *Client) Continue(ctx context.Context, id string, note func(text string)) (string, error) {
	address, s, err := c.keeper(ctx, id)
	if err != nil {
		return "", err
	}
	return c.submit(ctx, address, &protos.SubmitPlan{Continues: s.ID}, note)
}

// submit submits a plan to the process at an address.
func (c *Client) submit(ctx context.Context, to string, m *protos.SubmitPlan, note func(text string)) (string, error) {
	r, err := c.one(ctx, to, &protos.Request{Kind: &protos.Request_Submit{Submit: m}})
	if err != nil || note == nil {
		return r.GetSubmitted().GetId(), err
	}
	if text := r.GetSubmitted().GetNote(); text != "" {
		note(text)
	}
	if nodes, err := c.Nodes(ctx); err == nil {
		if text := DifferentBuilds(Builds(nodes)); text != "" {
			note(text)
		}
	}
	return r.GetSubmitted().GetId(), nil
}

// Status returns the present state of a run, whose id may be shortened; what others know of it if
// its process is away or does not answer.
func (c *Client) Status(ctx context.Context, id string) (s Submission, err error) {
	now, err := c.find(ctx, id)
	if err != nil {
		return now.Submission, err
	}
	defer func() { s.Builds = c.buildsOf(ctx, &s) }()
	if !now.Away.IsZero() {
		return now.Submission, nil
	}
	asked, cancel := context.WithTimeout(ctx, stragglerPatience)
	defer cancel()
	wanted := &protos.Request{Kind: &protos.Request_Watch{Watch: &protos.WatchRun{Id: now.ID}}}
	if r, err := c.one(asked, now.address, wanted); err == nil && r.GetSubmission() != nil { // with its placement
		now.Submission = submissionOf(r.GetSubmission())
	}
	return now.Submission, ctx.Err()
}

// Watch tells how far a run is with every change, until it has ended, and returns its last state.
func (c *Client) Watch(ctx context.Context, id string, tell func(Submission)) (Submission, error) {
	var last Submission
	err := c.watch(ctx, id, func(s Submission) bool {
		last = s
		tell(s)
		return !s.Over()
	})
	return last, err
}

// watch tells the states of a run while tell wants more.
func (c *Client) watch(ctx context.Context, id string, tell func(Submission) bool) error {
	return c.follow(ctx, id, func(address, id string) error {
		wanted := &protos.Request{Kind: &protos.Request_Watch{Watch: &protos.WatchRun{Id: id}}}
		return c.each(ctx, address, wanted, func(r *protos.Reply) bool {
			return tell(submissionOf(cmp.Or(r.GetSubmission(), &protos.Submission{})))
		})
	})
}

// Logs tells the lines of a run's log, with follow until it has ended, also where another process
// goes on with it. Without follow, a holder tells what it has where the run's process is away.
func (c *Client) Logs(ctx context.Context, id string, follow bool, tell func(line string)) error {
	told := 0
	listen := func(address, id string) error {
		at := 0
		return c.logOf(ctx, address, id, follow, func(line string) {
			if at++; at > told {
				told = at
				tell(line)
			}
		})
	}
	if follow {
		return c.follow(ctx, id, listen)
	}
	held := false
	err := locate(ctx, func() error {
		found, err := c.find(ctx, id)
		if held = found.held; err != nil || !held {
			return err
		}
		return listen(found.address, found.ID)
	})
	if err != nil || held {
		return err
	}
	return c.follow(ctx, id, listen)
}

// logOf tells the lines of a log that the process at an address has.
func (c *Client) logOf(ctx context.Context, address, id string, follow bool, tell func(line string)) error {
	wanted := &protos.Request{Kind: &protos.Request_Log{Log: &protos.ReadLog{Id: id, Follow: follow}}}
	return c.each(ctx, address, wanted, func(r *protos.Reply) bool {
		for _, line := range r.GetLines().GetLines() {
			tell(line)
		}
		return true
	})
}

// Stop ends a run and keeps its finished work. If the run's process dies before it answers, and
// others hold the run, Stop asks the process that goes on with it.
func (c *Client) Stop(ctx context.Context, id string) error {
	asked, held := false, false
	for began := time.Now(); ; {
		err := locate(ctx, func() error {
			address, s, err := c.keeper(ctx, id)
			if err != nil {
				return err
			}
			if asked && s.Over() {
				return nil // an earlier request, whose answer was lost, may have ended it
			}
			asked, held = true, len(s.Holders) > 0
			stop := &protos.Request{Kind: &protos.Request_Stop{Stop: &protos.StopRun{Id: s.ID}}}
			_, err = c.prompt(ctx, address, stop)
			return err
		})
		if err == nil || !held || !retryable(err) || time.Since(began) > successionPatience ||
			pause(ctx, successionLook) != nil {
			return err
		}
	}
}

// Remove removes a run that has ended from the process that keeps it, with its record, and returns
// its full id.
func (c *Client) Remove(ctx context.Context, id string) (whole string, err error) {
	err = locate(ctx, func() error {
		address, s, err := c.keeper(ctx, id)
		if err != nil {
			return err
		}
		whole = s.ID
		_, err = c.prompt(
			ctx,
			address,
			&protos.Request{Kind: &protos.Request_Remove{Remove: &protos.RemoveRun{Id: s.ID}}},
		)
		return err
	})
	return whole, err
}

// located has the error of a process, which knows only the last element of the plan's path, name
// the file as it was named here.
func located(file string, err error) error {
	var wrong *refusal.InputError
	if !errors.As(err, &wrong) {
		return err
	}
	lines, located := strings.Split(wrong.Error(), "\n"), false
	for i, line := range lines {
		by := ""
		if process, rest, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(process, "process ") {
			by, line = process+": ", rest
		}
		if place, ok := strings.CutPrefix(line, filepath.Base(file)+":"); ok {
			lines[i], located = by+file+":"+place, true
		}
	}
	if !located {
		return err
	}
	return refusal.Input(errors.New(strings.Join(lines, "\n")))
}

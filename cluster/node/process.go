// Package node runs one process of a cluster. A process carries out the plans that clients submit
// to it, one after the other. Several processes share a run: one conducts and watches it, and the
// others host the nodes placed on them.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/holders"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/mesh"
	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/lockfile"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/registry/host"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/resident"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/submission"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Config is a process of a cluster.
type Config struct {
	// Name is unique in the cluster; with an identity it is the one in its certificate.
	Name string
	// Bind is the HOST:PORT of the process, over TCP and UDP; port 0 stands for any that is free.
	Bind string
	// Advertise is the HOST:PORT at which others reach the process, if it is not Bind.
	Advertise string
	// Seeds are addresses of processes of the cluster. Without any, the process begins one.
	Seeds []string
	// JoinTimeout is how long the seeds are tried while none answers, or a name does not resolve;
	// 0 stands for 10 s, and less for as long as it takes.
	JoinTimeout time.Duration
	// Identity has the role of a node. Without one, which Insecure must ask for, there is no
	// protection at all, and only loopback addresses are accepted.
	Identity *identity.Identity
	Insecure bool
	// SocketsOnly has connections with processes of this machine go over sockets, too, where a
	// network is emulated below them, say; otherwise two of one user share memory.
	SocketsOnly bool
	// Renew, if not nil, gives identities that replace Identity: of the same node, with another
	// certificate. They hold for connections that are made from then on.
	Renew <-chan *identity.Identity
	// Catalog is what plans can name; nil stands for catalog.Default().
	Catalog *catalog.Catalog
	// Data is the folder of data sets, and of all other files that a plan may name.
	Data string
	// Out is the folder of the records of runs that were submitted to this process; empty for
	// results.
	Out string
	// Role, if given, is the only role that nodes may have that are placed here without being
	// named.
	Role string
	// Labels are what placements can ask for.
	Labels map[string]string
	// Cores is how many steps compute at a time; 0 stands for all.
	Cores int
	// KeepRuntime leaves GOMAXPROCS and GOGC of this process as they are while runs go on in it, at
	// the price of later timers; see live.Config.
	KeepRuntime bool
	// NodeTimeout is the silence after which this process counts another one as absent: it places
	// no run there any more, and replicas take the place of its servers. If this process leads the
	// registry, other holders take over the submissions of the absent process. Processes need not
	// have equal timeouts: terms and incarnations keep two from acting as one. 0 stands for
	// DefaultNodeTimeout; LeastNodeTimeout or more is accepted.
	NodeTimeout time.Duration
	// Absence is how long a run that stands still waits for processes that are gone and could set
	// it going again, and how long it waits for a silent process that no other can replace: the
	// latter for 15 s at least, and no less than NodeTimeout. 0 stands for half a minute.
	Absence time.Duration
	// Ready, if not nil, gets the address when the process is part of the cluster.
	Ready func(address string)
	// Log, if not nil, gets a line for each thing that happens.
	Log func(line string)
}

const (
	// DefaultNodeTimeout is the default of Config.NodeTimeout. It is longer than a busy machine
	// keeps a healthy process from answering.
	DefaultNodeTimeout = 5 * time.Second
	// LeastNodeTimeout is the least Config.NodeTimeout. A shorter one would not leave a suspended
	// process, one that was silent for 1.5 s, time to answer.
	LeastNodeTimeout = 2 * time.Second
)

// clusterLabel keeps Gradwire's gossip apart from other programs' gossip.
const clusterLabel = "gradwire"

// process is a node of a cluster: a process that hosts nodes of plans.
type process struct {
	config      Config
	catalog     *catalog.Catalog
	fingerprint string
	files       *os.Root // the folder of data; nil if there is none
	incarnation uint64
	tensors     protos.TensorPool
	node        *transport.Node
	mesh        *mesh.Mesh
	members     *membership.Members
	gossip      gossip
	residents   *resident.Service
	queue       *submission.Queue
	holders     *holders.Service
	registry    atomic.Pointer[host.Host] // nil before the process has joined
	stop        context.Context
	halt        context.CancelCauseFunc
	work        sync.WaitGroup

	mu        sync.Mutex
	runs      map[uint64]*hosted
	shelf     *shelf.Shelf // the data of the latest submission whose runs other processes conduct
	shelfOf   string       // that submission
	clients   map[*request.Caller]bool
	shared    shelf.Shared
	directory directory
	identity  atomic.Pointer[identity.Identity] // nil without any
	expired   chan error                        // gets why the process has to leave
	declining chan struct{}                     // holds one for each caller that hears why it is not let in
	joined    atomic.Bool                       // the cluster
	draining  atomic.Bool                       // true once this process accepts no new runs
	leavers   map[string]uint64                 // incarnations of processes that leave runs conducted here
	leaving   atomic.Bool                       // true once the process leaves the registry and claims no more names
	remember  func()                            // returns when the queue has the submissions of earlier lives
	unlock    func() error                      // lets another process of this name have the folder of records
}

// Serve is the life of a process of a cluster. It returns when ctx is cancelled: nil if the process
// has taken its leave. An error wraps identity.ErrExpired if it had to because its certificate has
// expired.
func Serve(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return refusal.Input(err)
	}
	upload, err := c.startUploads(ctx)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, c), upload(ctx))
}

func serve(ctx context.Context, c Config) error {
	p, err := start(ctx, c)
	if err != nil {
		return err
	}
	if c.Ready != nil {
		c.Ready(p.address())
	}
	select {
	case <-ctx.Done():
		return p.close()
	case err := <-p.expired:
		return errors.Join(err, p.close())
	}
}

// portAttempts is how often a free port is looked for whose two sides are both free.
const portAttempts = 20

func start(ctx context.Context, c Config) (p *process, err error) {
	for range portAttempts {
		p, err = c.join(ctx)
		_, port, _ := net.SplitHostPort(c.Bind)
		if err == nil || port != "0" || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return p, err
}

// complete checks the configuration and fills in its defaults.
func (c *Config) complete() error {
	switch {
	case c.Identity == nil && !c.Insecure:
		return errors.New("a node needs an identity, as --identity gives it; --insecure does without, on loopback " +
			"addresses")
	case c.Identity != nil && c.Insecure:
		return errors.New("an identity and --insecure exclude each other")
	case c.Identity != nil && c.Identity.Role() != identity.Node:
		return fmt.Errorf("the identity of %s has the role %s; a node needs the role %s", c.Identity.Name(),
			c.Identity.Role(), identity.Node)
	case c.Identity != nil && c.Name != "" && c.Name != c.Identity.Name():
		return fmt.Errorf("the node is to be called %s, its certificate says %s", c.Name, c.Identity.Name())
	case c.Identity != nil:
		c.Name = c.Identity.Name()
	}
	if c.Insecure {
		if host, _, err := net.SplitHostPort(c.Bind); err != nil || host != "localhost" && !loopback(host) {
			return fmt.Errorf("without an identity a node can be bound to a loopback address and port alone, such as "+
				"127.0.0.1:7946, not to %s", c.Bind)
		}
	}
	if c.Name == "" {
		return errors.New("a node without an identity needs a name, as --name gives it")
	}
	if err := c.checkAddresses(); err != nil {
		return err
	}
	c.NodeTimeout = cmp.Or(c.NodeTimeout, DefaultNodeTimeout)
	if err := CheckNodeTimeout(c.NodeTimeout); err != nil {
		return err
	}
	c.Out = cmp.Or(c.Out, "results")
	c.Cores = cmp.Or(c.Cores, runtime.NumCPU())
	c.Absence = cmp.Or(c.Absence, 30*time.Second)
	if c.Catalog == nil {
		c.Catalog = catalog.Default()
	}
	return nil
}

// CheckNodeTimeout returns an error if Config.NodeTimeout does not accept d.
func CheckNodeTimeout(d time.Duration) error {
	if d < LeastNodeTimeout {
		return fmt.Errorf("--node-timeout %v; accepted is %v or more: a busy machine can keep a healthy node from "+
			"answering for almost as long", d, LeastNodeTimeout)
	}
	return nil
}

// loopback reports whether a host is an address that only this machine reaches.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// join makes the process a part of its cluster.
func (c Config) join(ctx context.Context) (*process, error) {
	p := c.process()
	if err := p.lock(); err != nil {
		return nil, refusal.Input(err)
	}
	if err := p.openFiles(); err != nil {
		return nil, refusal.Input(errors.Join(err, p.unlock()))
	}
	if err := p.connect(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.joined.Store(true)
	p.openRegistry()
	p.remember() // not before: until now the file may have belonged to a process of this name that lives
	p.work.Go(p.queue.Work)
	p.work.Go(p.holders.Work)
	p.work.Go(p.residents.Watch)
	p.work.Go(p.spread)
	p.work.Go(p.watchIdentity)
	p.work.Go(p.watchMemory)
	return p, nil
}

// process is a process that is no part of a cluster yet.
func (c Config) process() *process {
	own := *c.Catalog
	p := &process{
		config: c, catalog: &own, fingerprint: fingerprint(c.Catalog), incarnation: uint64(time.Now().UnixNano()),
		runs: map[uint64]*hosted{}, leavers: map[string]uint64{}, clients: map[*request.Caller]bool{},
		declining: make(chan struct{}, maxDeclined),
		directory: directory{known: map[string]*listing{}, wake: make(chan struct{}, 1), number: 1},
		expired:   make(chan error, 1), unlock: func() error { return nil },
	}
	p.mesh = mesh.New(mesh.Config{Name: c.Name, Unaddressed: p.receive, Log: p.log})
	p.stop, p.halt = context.WithCancelCause(context.Background())
	p.shared.Stop = p.stop
	p.gossip = gossip{process: p, conns: make(chan net.Conn)}
	p.identity.Store(c.Identity)
	p.holders = p.newHolders()
	var key []byte
	if c.Identity != nil {
		key = c.Identity.GossipKey() // which all processes of the cluster have
	}
	p.queue = submission.New(submission.Config{
		Process: c.Name, Stop: p.stop, Out: c.Out, Data: c.Data, Insecure: c.Insecure, Catalog: p.catalog,
		Shared: &p.shared, Holders: p.holders, Key: key,
		Venue: p.venue, Changed: p.directory.changed, Removed: p.directory.restate, Log: p.log,
	})
	p.remember = sync.OnceFunc(func() {
		p.holders.Remember()
		p.queue.Remember()
	})
	p.residents = resident.NewService(resident.Config{
		Node: c.Name, Cores: c.Cores, Tensors: &p.tensors, Log: p.log, Running: p.stop, Entered: p.entered,
		Begin: p.begin, Failed: p.failed, Kinds: p.actorKinds, Read: p.readActor,
		Members:   func() []membership.Member { return p.members.View().Members },
		ClaimName: p.reserveName, ReleaseName: p.releaseName,
	})
	return p
}

// lock keeps other processes of this name, which would write the same files, from the folder of
// records. A process that cannot write there can host nodes nevertheless.
func (p *process) lock() error {
	path := filepath.Join(p.config.Out, ".lock-"+p.config.Name)
	err := os.MkdirAll(p.config.Out, 0o750)
	var unlock func() error
	if err == nil {
		unlock, err = lockfile.Hold(path)
	}
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		return fmt.Errorf("%s, the folder of records, is in use by %s, which is node %s too; --out names another "+
			"folder", p.config.Out, lockfile.Holder(path), p.config.Name)
	case err != nil:
		p.log("no records can be kept here: %v", err)
	default:
		p.unlock = unlock
	}
	return nil
}

// openFiles lets plans name files in the folder of data, or none at all.
func (p *process) openFiles() (err error) {
	dir := p.config.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "gradwire-no-data-"); err != nil {
			return err
		}
		defer os.Remove(dir) //nolint:errcheck // it is empty
	}
	if p.files, err = os.OpenRoot(dir); err != nil {
		return fmt.Errorf("the folder of data: %w", err)
	}
	p.catalog.Folder, p.catalog.FolderHint = p.files, p.folderHint()
	return nil
}

// folderHint says where this process looks for the files of a plan.
func (p *process) folderHint() string {
	const only = "node %s reads the files of a plan only from its data folder, "
	if p.config.Data == "" {
		return fmt.Sprintf(only+"and has none: start it with --data FOLDER, and name the file by its path in that "+
			"folder", p.config.Name)
	}
	folder := p.config.Data
	if whole, err := filepath.Abs(folder); err == nil {
		folder = whole
	}
	return fmt.Sprintf(only+"%s (--data): copy the file there, and name it by its path in that folder", p.config.Name,
		folder)
}

func (p *process) connect(ctx context.Context) (err error) {
	c := &p.config
	if err := p.listen(); err != nil {
		return err
	}
	about := membership.Config{
		Name: c.Name, Bind: p.node.Address(), Seeds: c.Seeds, Insecure: c.Insecure, Label: clusterLabel,
		Meta: membership.Meta{Role: c.Role, Address: c.Advertise, Incarnation: p.incarnation, Cores: c.Cores,
			Labels: c.Labels, Build: build(), Catalog: p.fingerprint},
		Streams: &p.gossip, Notify: p.member,
	}
	if c.Identity != nil {
		about.Key = c.Identity.GossipKey()
	}
	switch {
	case c.JoinTimeout > 0:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.JoinTimeout)
		defer cancel()
		about.Waits = p.joining
	case c.JoinTimeout < 0:
		about.Waits = p.joining
	}
	if p.members, err = membership.Join(ctx, about); errors.As(err, new(*protocol.Error)) {
		err = refusal.Input(err) // only another build can join
	}
	return err
}

// joining says what comes of the seeds while none lets the process in.
func (p *process) joining(err error) { p.log("tries to join again: %v", err) }

// build identifies this program.
var build = sync.OnceValue(func() string {
	b := record.ReadBuild("")
	return fmt.Sprintf("%.23s, commit %.12s, program %.8s", b.Version, b.Commit, record.Program())
})

// buildOf names the program of a process of the cluster; empty if it is not there.
func (p *process) buildOf(name string) string {
	if name == p.config.Name {
		return build()
	}
	for _, m := range p.members.View().Members {
		if m.Name == name {
			return m.Meta.Build
		}
	}
	return ""
}

// leastAbsence is the least silence before a process that no other can replace is given up.
const leastAbsence = 15 * time.Second

// listen opens the process's port. Callers that come before it is open wait for the lock.
func (p *process) listen() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.config
	p.node, err = transport.Listen(transport.Config{
		Name: c.Name, Incarnation: p.incarnation, Address: c.Bind, Advertise: c.Advertise, Identity: c.Identity,
		SocketsOnly: c.SocketsOnly, Tensors: &p.tensors, Receive: p.mesh.Receive, Posted: p.mesh.Posted,
		Changed: p.changed,
		Protocols: map[string]func(net.Conn, transport.Peer){identity.Gossip: p.gossip.take,
			identity.Clients: p.client, identity.Copies: p.takeCopy},
		Limits: transport.Limits{Absent: c.NodeTimeout, GiveUp: max(c.Absence, c.NodeTimeout, leastAbsence)},
	})
	if err == nil {
		c.Advertise = p.node.Advertised()
	}
	p.mesh.Use(p.node)
	p.residents.Use(p.node)
	return err
}

// address is where others reach the process.
func (p *process) address() string { return cmp.Or(p.config.Advertise, p.node.Address()) }

// leavePatience is how long a process takes its leave at most.
const leavePatience = 3 * time.Second

// releasePatience is how long a process waits at most until others go on with what it carries out.
const releasePatience = 2 * time.Second

// leaveSubmissions has others go on with the submissions that this process carries out.
func (p *process) leaveSubmissions() {
	ctx, cancel := context.WithTimeout(context.Background(), releasePatience)
	defer cancel()
	p.holders.Leave(ctx)
}

// leaveRuns has this process's nodes leave the runs that other processes conduct, and waits for
// that.
func (p *process) leaveRuns(ctx context.Context) {
	var leaving sync.WaitGroup
	for _, h := range p.hosts() {
		if w := h.World(); w != nil && h.conductor == nil && h.begun.Err() != nil {
			leaving.Go(func() {
				if err := h.leave(ctx, w); err != nil {
					p.log("run %x: not everything was handed over: %v", h.Number(), err)
				}
			})
		}
	}
	leaving.Wait()
}

// workPatience is how long a process that stops waits for what it is doing: a file that it reads,
// or an actor, may block for good.
const workPatience = 3 * time.Second

// awaitWork waits until nothing is done any more, within bounds, and says whether that is so.
func (p *process) awaitWork() bool {
	over := make(chan struct{})
	go func() {
		p.work.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-time.After(workPatience):
		p.log("does not wait any longer, after %v, for something that does not end: a file that cannot be read, or an "+
			"actor that blocks", workPatience)
		return false
	}
}

// close takes leave of the cluster. Runs that this process conducts end with it. What blocks is
// left behind.
func (p *process) close() error {
	if p.members != nil {
		if p.joined.Load() {
			p.drain()
		}
		p.leaveSubmissions()
	}
	if p.joined.Load() {
		p.leaveRegistry()
	}
	p.mu.Lock() // whatever begins from now on finds that the process is stopping
	p.halt(experiment.ErrStopping)
	p.mu.Unlock()
	if err := p.residents.Close(leavePatience); err != nil {
		p.log("%v", err)
	}
	p.closeClients()
	idle := p.awaitWork()
	if p.members != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
		if err := p.members.Leave(ctx); err != nil {
			p.log("%v", err) // the others may take it for a crash
		}
		cancel()
	}
	if p.node != nil {
		if err := p.node.Close(); err != nil {
			p.log("%v", err)
		}
		if idle {
			p.residents.Wait()
		}
	}
	return errors.Join(p.files.Close(), p.unlock())
}

// begin does something beside, which close waits for; nothing if the process is stopping.
func (p *process) begin(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop.Err() == nil {
		p.work.Go(do)
	}
}

func (p *process) log(format string, args ...any) { p.config.logf(format, args...) }

func (c *Config) logf(format string, args ...any) {
	if c.Log != nil {
		c.Log(fmt.Sprintf(format, args...))
	}
}

// member follows who is in the cluster.
func (p *process) member(e membership.Event) {
	switch e.Kind {
	case membership.Refused:
		p.log("does not let %s in: %v", e.Member.Name, e.Reason)
		return
	case membership.Joined, membership.Returned:
		if err := p.node.Connect(e.Member.Name, e.Member.Meta.Address); err != nil {
			p.log("%v", err)
		}
	case membership.Left, membership.Failed:
		peer, known := p.node.Peer(e.Member.Name)
		if known && peer.Peer.Incarnation > e.Member.Meta.Incarnation {
			return // a later life of it is here already
		}
		p.directory.left(e.Member.Name, e.Kind.String())
		if known && e.Kind == membership.Failed && peer.State != transport.Down &&
			(!peer.State.Gone() || p.waitsFor(e.Member.Name)) {
			p.residents.Gone(e.Member.Name, e.Kind.String())
			break // while it is waited for, what is on its way is not given up
		}
		p.node.Remove(e.Member.Name)
		p.gone(e.Member.Name, e.Kind.String())
	}
	p.log("%s %s", e.Member.Name, e.Kind)
}

// changed follows the connections.
func (p *process) changed(peer transport.Peer, state transport.State, reason error) {
	switch {
	case state == transport.Up:
		conductors := p.conductors()
		for _, c := range conductors {
			c.heardAgain(peer.Name)
		}
		p.directory.back(peer.Name)
		p.directory.changed()
		for _, c := range conductors {
			p.begin(func() { c.back(peer.Name) })
		}
	case state == transport.Suspended:
		p.directory.left(peer.Name, reason.Error())
		for _, c := range p.conductors() {
			c.silent(peer.Name, reason.Error())
		}
	case state == transport.Absent:
		p.absent(peer.Name, reason)
	case state == transport.Down && !errors.Is(reason, transport.ErrRemoved): // which member has told
		p.directory.left(peer.Name, reason.Error())
		if errors.Is(reason, transport.ErrRefused) || errors.Is(reason, transport.ErrRestarted) {
			for _, c := range p.conductors() {
				c.crashed(peer.Name)
			}
		}
		p.gone(peer.Name, reason.Error())
	}
}

// absent handles a process that has been silent for NodeTimeout. Other processes take its place
// where they can. Where they cannot, runs wait for it until the connection gives it up.
func (p *process) absent(name string, reason error) {
	p.log("%s is absent: %v", name, reason)
	for _, c := range p.conductors() {
		c.absent(name, reason.Error())
	}
	if p.joined.Load() && !p.isMember(name) && !p.waitsFor(name) { // membership gave it up before
		p.node.Remove(name)
		p.gone(name, reason.Error())
	}
}

// isMember reports whether a process of a name is a member of the cluster.
func (p *process) isMember(name string) bool {
	return slices.ContainsFunc(p.members.View().Members, func(m membership.Member) bool { return m.Name == name })
}

// hosts returns the parts of runs that live in this process.
func (p *process) hosts() []*hosted {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.runs))
}

// conductors returns the conductors of the runs that this process conducts.
func (p *process) conductors() (all []*conductor) {
	for _, h := range p.hosts() {
		if h.conductor != nil {
			all = append(all, h.conductor)
		}
	}
	return all
}

// gone tells all runs that a process is gone.
func (p *process) gone(name, why string) {
	p.residents.Gone(name, why)
	for _, h := range p.hosts() {
		h.gone(name, why)
		if h.conductor != nil {
			h.conductor.gone(name, why, 0)
		}
	}
}

// receive takes what another process sends: a message about a run, or one about actors of no run.
func (p *process) receive(from transport.Peer, f *wire.Frame) {
	p.mu.Lock()
	h := p.runs[f.Run]
	p.mu.Unlock()
	mine := h != nil && h.Lead() == from.Name
	switch m := f.Head.(type) {
	case *protos.PlaceRun:
		run := f.Run
		p.begin(func() { p.host(from.Name, run, m) })
	case *protos.BeginRun, *protos.HaltRun, *protos.EndRun, *protos.CutRun, *protos.LeaveRun:
		h.dispatch(from.Name, m)
	case *protos.AskRun:
		run := f.Run
		p.begin(func() {
			if mine {
				p.report(from.Name, run, h.state(m))
			} else { // it was given up when whoever conducts it seemed to be gone
				p.report(from.Name, run, &protos.RunResult{Left: true})
			}
		})
	case *protos.RunMark:
		if h != nil {
			h.marked(from.Name, m.Mark)
		}
	case *protos.CutPassed:
		if h != nil && h.World() != nil {
			h.World().Passed(from.Name, m.Number)
		}
	case *protos.StatePart:
		if h != nil {
			h.stated(from.Name, m)
		}
	case *protos.Samples:
		if mine {
			h.arrived(m, f.Tensors)
		}
		f.Release()
	case *protos.AskSamples, *protos.AskState, *protos.RunPlaced, *protos.RunState, *protos.RunEvents,
		*protos.RunResult, *protos.NodeChanged:
		if h != nil && h.conductor != nil {
			h.conductor.heard(from.Name, m)
		} else if _, over := m.(*protos.RunResult); !over {
			run := f.Run // whoever conducted it was this process in an earlier life
			p.begin(func() { p.report(from.Name, run, &protos.EndRun{}) })
		}
	case *protos.News:
		f.Release()
		p.directory.learn(from.Name, m)
	case *protos.Leaving:
		p.receiveLeaving(from.Name, f, m)
	case *protos.RegistryFrame:
		p.receiveRegistryFrame(from.Name, f, m)
	case *protos.ActorCall, *protos.ActorReceipt, *protos.ActorRequest, *protos.ActorResponse:
		p.residents.Receive(from.Name, f)
	default:
		f.Release()
	}
}

// tell sends a message about a run to another process.
func (p *process) tell(name string, run uint64, m proto.Message) error {
	return p.node.Send(name, &wire.Frame{Kind: wire.KindOf(m), Run: run, Head: m})
}

// gossip is the TCP side of membership.
type gossip struct {
	process *process
	conns   chan net.Conn
}

var _ membership.Streams = (*gossip)(nil)

// Conns gives the connections that came in.
func (g *gossip) Conns() <-chan net.Conn { return g.conns }

// Dial connects to the gossip of another process.
func (g *gossip) Dial(address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, _, err := g.process.node.Open(ctx, address, identity.Gossip)
	return conn, err
}

// take hands a connection that came in over to membership, if it takes one in time.
func (g *gossip) take(c net.Conn, _ transport.Peer) {
	patience, cancel := context.WithTimeout(g.process.stop, time.Second)
	defer cancel()
	select {
	case g.conns <- c:
	case <-patience.Done():
		c.Close() //nolint:errcheck // it was never used
	}
}

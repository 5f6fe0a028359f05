// Package host runs a process's member of the registry with a clock, a log file and a network. One
// goroutine does all of the member's work.
//
// If the host cannot open or write the log file, or if the log contradicts the other members, the
// process continues with a new member that keeps its log in memory. The next incarnation of the
// process tries the file again.
package host

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

const (
	// tick is the duration of a member's tick.
	tick = 50 * time.Millisecond
	// heartbeatTicks are 100 ms, electionTicks 1 s, retryTicks 500 ms and replaceTicks 10 s.
	heartbeatTicks  = 2
	electionTicks   = 20
	retryTicks      = 10
	replaceTicks    = 200
	snapshotEntries = 1000
	// maxWaiting bounds the inputs that wait for the member. Frames beyond it are dropped.
	maxWaiting = 4096
)

// ErrNoQuorum says that the registry did not answer in time.
var ErrNoQuorum = errors.New("the registry has no quorum")

// unansweredError is an ErrNoQuorum with a specific reason.
type unansweredError string

func (e unansweredError) Error() string { return string(e) }

// Is makes the error match ErrNoQuorum.
func (e unansweredError) Is(target error) bool { return target == ErrNoQuorum }

// errClosed says that Close was called.
var errClosed = errors.New("the registry is closed")

// Config configures a Host.
type Config struct {
	// Process is the name of the process. Incarnation grows with each of its starts.
	Process     string
	Incarnation uint64
	// File is the path of the log file.
	File string
	// MayFound makes a process without a log found a registry; otherwise it asks to join one.
	MayFound bool
	// Others returns the names of the other processes of the cluster.
	Others func() []string
	// Send sends a frame to another process without blocking. The frame may be lost.
	Send func(process string, f *protos.RegistryFrame)
	// Log, if not nil, writes a line about an event that an operator should know.
	Log func(format string, args ...any)
}

// Host runs a process's member of the registry. It is safe for concurrent use.
type Host struct {
	config Config
	file   *File // nil while the log is in memory
	member *registry.Member
	inputs chan func() // functions for the goroutine of work
	status atomic.Pointer[registry.Status]
	stop   chan struct{}
	dead   chan struct{} // closed once the member has failed, with the reason in status
	closed sync.WaitGroup
	once   sync.Once

	// Only the goroutine of work uses the fields below.
	commands map[uint64]chan *protos.RegistryResult // receivers of results, by ticket
	reads    map[uint64]pendingRead                 // pending reads, by ticket
	failed   bool                                   // true once dead is closed
}

// pendingRead is a read that waits for the member.
type pendingRead struct {
	ticket *uint64 // the read's current ticket, for CancelRead
	do     func()
}

// Open starts a Host that continues the log in its file, or a new log in memory.
func Open(c Config) (*Host, error) {
	h := &Host{
		config: c, inputs: make(chan func(), maxWaiting), stop: make(chan struct{}), dead: make(chan struct{}),
		commands: map[uint64]chan *protos.RegistryResult{}, reads: map[uint64]pendingRead{},
	}
	file, err := OpenFile(c.File)
	if err == nil {
		h.file = file
		h.member, err = h.newMember(file)
	}
	if err != nil {
		if err = h.useMemory(err); err != nil {
			return nil, err
		}
	}
	h.deliverReady()
	h.closed.Go(h.work)
	return h, nil
}

func (h *Host) newMember(s registry.Storage) (*registry.Member, error) {
	var seed [8]byte
	rand.Read(seed[:])
	c := &h.config
	return registry.New(registry.Config{
		Name: c.Process, Incarnation: c.Incarnation, MayFound: c.MayFound, Seed: binary.LittleEndian.Uint64(seed[:]),
		Storage: s, Volatile: h.file == nil, HeartbeatTicks: heartbeatTicks, ElectionTicks: electionTicks,
		RetryTicks: retryTicks, ReplaceTicks: replaceTicks, SnapshotEntries: snapshotEntries, Log: c.Log,
	})
}

// useMemory replaces the member with a new one that keeps its log in memory. Pending reads
// continue at the new member. The results of pending commands stay unknown.
func (h *Host) useMemory(cause error) (err error) {
	h.logf("%v; this process continues as a new member, which keeps its log in memory until it restarts", cause)
	if h.file != nil {
		_ = h.file.Close() // the new member does not use the file
		h.file = nil
	}
	if h.member, err = h.newMember(memory{}); err != nil {
		return err
	}
	for ticket, answer := range h.commands {
		delete(h.commands, ticket)
		answer <- &protos.RegistryResult{Code: protos.RegistryResult_NO_SESSION}
	}
	reads := h.reads
	h.reads = map[uint64]pendingRead{}
	for _, r := range reads {
		h.startRead(r)
	}
	return nil
}

// startRead starts a read at the current member.
func (h *Host) startRead(r pendingRead) {
	*r.ticket = h.member.Read()
	h.reads[*r.ticket] = r
}

// Close stops the member without leaving the group, as a crash would, and closes the file.
func (h *Host) Close() error {
	h.once.Do(func() { close(h.stop) })
	h.closed.Wait()
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}

// work passes ticks and inputs to the member until the host is closed.
func (h *Host) work() {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-clock.C:
			h.run(h.member.Tick)
		case input := <-h.inputs:
			h.run(input)
		}
	}
}

// run passes an input to the member. raft panics if the log contradicts the other members.
func (h *Host) run(input func()) {
	defer func() {
		if cause := recover(); cause != nil {
			h.replace(cause)
		}
	}()
	if !h.failed {
		input()
		h.deliverReady()
	}
}

// replace replaces a member that has panicked. A member whose log is already in memory stops for
// good. The log has the stack, the status only the first line.
func (h *Host) replace(cause any) {
	first, _, _ := strings.Cut(fmt.Sprint(cause), "\n")
	if h.file != nil && h.useMemory(fmt.Errorf("the registry's member panicked: %v\n%s", cause, debug.Stack())) == nil {
		h.deliverReady()
		return
	}
	s := *h.status.Load()
	s.Err, s.Leader, s.Leads = fmt.Errorf("the registry's member panicked: %s", first), "", false
	h.status.Store(&s)
	h.failWaiting()
	h.logf("this process takes no part in the registry until it is restarted: panic: %v\n%s", cause, debug.Stack())
}

// failWaiting makes all present and later calls return the error in the status.
func (h *Host) failWaiting() {
	if !h.failed {
		h.failed = true
		close(h.dead)
	}
}

func (h *Host) logf(format string, args ...any) {
	if h.config.Log != nil {
		h.config.Log(format, args...)
	}
}

// deliverReady delivers the effects of an input: frames to other processes, results to callers.
func (h *Host) deliverReady() {
	r := h.member.Ready()
	s := h.member.Status()
	h.status.Store(&s)
	for _, m := range r.Messages {
		if m.To != "" {
			h.config.Send(m.To, m.Frame)
			continue
		}
		for _, name := range h.config.Others() {
			h.config.Send(name, m.Frame)
		}
	}
	for _, o := range r.Results {
		if answer := h.commands[o.Ticket]; answer != nil {
			delete(h.commands, o.Ticket)
			answer <- o.Result
		}
	}
	for _, ticket := range r.Reads {
		if read, pending := h.reads[ticket]; pending {
			delete(h.reads, ticket)
			read.do()
		}
	}
	switch {
	case s.Err == nil:
	case h.file != nil && h.useMemory(s.Err) == nil:
		h.deliverReady()
	default:
		h.failWaiting()
	}
}

// Receive passes a frame from another process to the member, or drops it if too many inputs wait.
func (h *Host) Receive(f *protos.RegistryFrame) {
	select {
	case h.inputs <- func() { h.member.Step(f) }:
	default:
	}
}

// submit passes a function to the member's goroutine, unless the caller gives up first.
func (h *Host) submit(ctx context.Context, do func()) error {
	select {
	case h.inputs <- do:
		return nil
	case <-h.stop:
		return errClosed
	case <-h.dead:
		return h.Status().Err
	case <-ctx.Done():
		return h.unanswered(ctx)
	}
}

// Do executes a command and returns its result. After an error that is ErrNoQuorum the command may
// still have its effect.
func (h *Host) Do(ctx context.Context, c *protos.RegistryCommand) (*protos.RegistryResult, error) {
	answer := make(chan *protos.RegistryResult, 1)
	var ticket uint64
	var member *registry.Member // the member that issued the ticket
	own := proto.Clone(c).(*protos.RegistryCommand)
	if err := h.submit(ctx, func() {
		member = h.member
		ticket = member.Submit(own)
		h.commands[ticket] = answer
	}); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		if r.Code == protos.RegistryResult_NO_SESSION {
			return nil, unansweredError("the registry ended this process's session: the result is unknown; try again")
		}
		return r, nil
	case <-h.stop:
		return nil, errClosed
	case <-h.dead:
		return nil, h.Status().Err
	case <-ctx.Done():
		h.enqueue(func() {
			if member == h.member {
				delete(h.commands, ticket)
				member.Cancel(ticket)
			}
		})
		return nil, h.unanswered(ctx)
	}
}

// enqueue passes a function to the member's goroutine, unless the host is closed or has failed.
func (h *Host) enqueue(do func()) {
	select {
	case h.inputs <- do:
	case <-h.stop:
	case <-h.dead:
	}
}

// Read calls a function with a state that contains all commands acknowledged before the call. The
// function must not keep the state.
func (h *Host) Read(ctx context.Context, do func(*registry.State)) error {
	read := make(chan struct{})
	var ticket uint64
	if err := h.submit(ctx, func() {
		h.startRead(pendingRead{&ticket, func() {
			do(h.member.State())
			close(read)
		}})
	}); err != nil {
		return err
	}
	select {
	case <-read:
		return nil
	case <-h.stop:
		h.closed.Wait() // until do has returned
		return errClosed
	case <-h.dead:
		return h.Status().Err
	case <-ctx.Done():
		canceled := make(chan struct{})
		h.enqueue(func() {
			delete(h.reads, ticket)
			h.member.CancelRead(ticket)
			close(canceled)
		})
		select { // until do has returned
		case <-canceled:
		case <-h.dead:
		case <-h.stop:
			h.closed.Wait()
		}
		return h.unanswered(ctx)
	}
}

// ReadLocal calls a function with this process's state, which may be stale. The function must not
// keep the state.
func (h *Host) ReadLocal(ctx context.Context, do func(*registry.State)) error {
	read := make(chan struct{})
	if err := h.submit(ctx, func() {
		do(h.member.State())
		close(read)
	}); err != nil {
		return err
	}
	select {
	case <-read:
		return nil
	case <-h.dead:
		return h.Status().Err
	case <-h.stop:
		h.closed.Wait() // until do has returned
		return errClosed
	}
}

// Recovery is the result of Recover.
type Recovery struct {
	*protos.RegistryRecovery
	// Already is true if an earlier call started the new registry.
	Already bool
	// Copy is the path of the copy of the superseded log.
	Copy string
}

// Recover starts a new registry from this process's log, see registry.Member.Recover. The function do
// receives the new state, and must not keep it.
func (h *Host) Recover(ctx context.Context, do func(*registry.State)) (*Recovery, error) {
	r, done := &Recovery{}, make(chan error, 1)
	if err := h.submit(ctx, func() {
		if h.file == nil {
			done <- errors.New("this process keeps its copy of the registry in memory only: recover from another process")
			return
		}
		var err error
		if r.RegistryRecovery, r.Already, err = h.member.Recover(); err == nil {
			r.Copy = h.file.supersededPath(r.Superseded)
			do(h.member.State())
		}
		done <- err
	}); err != nil {
		return nil, err
	}
	select { // done stays empty if the member panics or the host closes
	case err := <-done:
		return r, err
	case <-h.stop:
		h.closed.Wait()
	case <-h.dead:
	}
	select {
	case err := <-done:
		return r, err
	default:
		return nil, errors.Join(errClosed, h.Status().Err)
	}
}

// unanswered returns the error of a call whose context has ended.
func (h *Host) unanswered(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return unansweredError(Describe(h.Status()))
}

// Describe returns a clause that says why the registry does not answer.
func Describe(s registry.Status) string {
	voters := strings.Join(s.Voters, ", ")
	switch {
	case s.Err != nil:
		return s.Err.Error()
	case s.Cluster == 0:
		return "this process has not joined a registry yet; if no process of the cluster has a registry, start one " +
			"process without --join"
	case s.Leader == "":
		return fmt.Sprintf("no quorum: this process hears no majority of the voters %s", voters)
	}
	return fmt.Sprintf("%s leads the registry but did not answer in time; try again (voters: %s)", s.Leader, voters)
}

// Status returns the member's view of the registry.
func (h *Host) Status() registry.Status { return *h.status.Load() }

// Leave transfers this process's leadership and vote to other processes. It returns once the group
// has recorded that this process leaves.
func (h *Host) Leave(ctx context.Context) error {
	if s := h.Status(); len(s.Voters)+len(s.Learners) < 2 {
		return nil // no successor
	}
	if err := h.submit(ctx, h.member.Leave); err != nil {
		return err
	}
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		if s := h.Status(); s.Err != nil || !s.Votes && (s.Left || !s.Listed) {
			return s.Err
		}
		select {
		case <-clock.C:
		case <-h.stop:
			return errClosed
		case <-ctx.Done():
			return h.unanswered(ctx)
		}
	}
}

// Package host runs a process's member of the registry: it ticks with the clock, keeps the log in a
// file and sends frames. All of the member's work happens on one goroutine.
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
	// tick is the unit of the member's time.
	tick = 50 * time.Millisecond
	// heartbeatTicks are 100 ms, electionTicks 1 s, retryTicks 500 ms and replaceTicks 10 s.
	heartbeatTicks  = 2
	electionTicks   = 20
	retryTicks      = 10
	replaceTicks    = 200
	snapshotEntries = 1000
	// maxWaiting bounds the frames that wait for the member. Further ones are lost.
	maxWaiting = 4096
)

// ErrNoQuorum says that the registry gives no answer at present.
var ErrNoQuorum = errors.New("the registry has no quorum")

// unansweredError is an ErrNoQuorum that says why in its own words.
type unansweredError string

func (e unansweredError) Error() string { return string(e) }

// Is has errors.Is find ErrNoQuorum.
func (e unansweredError) Is(target error) bool { return target == ErrNoQuorum }

// errClosed says that the process stops.
var errClosed = errors.New("the registry is closed")

// Config is a Host.
type Config struct {
	// Process is the process's name, and Incarnation tells its lives apart.
	Process     string
	Incarnation uint64
	// File is the path of the log.
	File string
	// MayFound has a process without a log found a registry.
	MayFound bool
	// Others names the other processes of the cluster.
	Others func() []string
	// Send sends a frame to another process, without waiting. The frame may be lost.
	Send func(process string, f *protos.RegistryFrame)
	// Log, if not nil, gets a line for each thing that an operator should know.
	Log func(format string, args ...any)
}

// Host is a process's part in the registry.
type Host struct {
	config Config
	file   *File
	member *registry.Member
	inputs chan func()
	status atomic.Pointer[registry.Status]
	stop   chan struct{}
	dead   chan struct{} // closed when the member has failed: its status says why
	closed sync.WaitGroup
	once   sync.Once

	// The rest belongs to the goroutine of work.
	commands map[uint64]chan *protos.RegistryResult
	reads    map[uint64]func()
	failed   bool // true once dead is closed: the member gets no more inputs
}

// Open starts a Host with the log in its file.
func Open(c Config) (*Host, error) {
	file, err := OpenFile(c.File)
	if err != nil {
		return nil, err
	}
	var seed [8]byte
	rand.Read(seed[:])
	h := &Host{
		config: c, file: file, inputs: make(chan func(), maxWaiting), stop: make(chan struct{}),
		dead: make(chan struct{}), commands: map[uint64]chan *protos.RegistryResult{}, reads: map[uint64]func(){},
	}
	h.member, err = registry.New(registry.Config{
		Name: c.Process, Incarnation: c.Incarnation, MayFound: c.MayFound, Seed: binary.LittleEndian.Uint64(seed[:]),
		Storage: file, HeartbeatTicks: heartbeatTicks, ElectionTicks: electionTicks, RetryTicks: retryTicks,
		ReplaceTicks: replaceTicks, SnapshotEntries: snapshotEntries, Log: c.Log,
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	h.deliverReady()
	h.closed.Go(h.work)
	return h, nil
}

// Close ends the member's part at once, as a crash would, and closes the file.
func (h *Host) Close() error {
	h.once.Do(func() { close(h.stop) })
	h.closed.Wait()
	return h.file.Close()
}

// work feeds the member.
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

// run gives the member an input. What raft takes for impossible makes it panic: then the log is not
// what this member has promised, and it stops.
func (h *Host) run(input func()) {
	defer func() {
		if cause := recover(); cause != nil {
			h.fail(cause)
		}
	}()
	if !h.failed {
		input()
		h.deliverReady()
	}
}

// fail stops a member that has panicked. Only the log gets the stack.
func (h *Host) fail(cause any) {
	first, _, _ := strings.Cut(fmt.Sprint(cause), "\n")
	s := *h.status.Load()
	s.Err, s.Leader, s.Leads = fmt.Errorf("the registry's member panicked: %s", first), "", false
	h.status.Store(&s)
	h.failWaiting()
	h.logf("this process takes no part in the registry until it is restarted: panic: %v\n%s", cause, debug.Stack())
}

// failWaiting ends all waiting for the member, for good. The status must have the error already.
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

// deliverReady passes on what has come of an input.
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
		if do := h.reads[ticket]; do != nil {
			delete(h.reads, ticket)
			do()
		}
	}
	if s.Err != nil {
		h.failWaiting()
	}
}

// Receive gives the member a frame from another process. It is lost if too many wait.
func (h *Host) Receive(f *protos.RegistryFrame) {
	select {
	case h.inputs <- func() { h.member.Step(f) }:
	default:
	}
}

// submit has the member's goroutine do something.
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

// Do carries a command out. An error that is ErrNoQuorum means that there was no answer before ctx
// was done: the command may have its effect nevertheless.
func (h *Host) Do(ctx context.Context, c *protos.RegistryCommand) (*protos.RegistryResult, error) {
	answer := make(chan *protos.RegistryResult, 1)
	var ticket uint64
	own := proto.Clone(c).(*protos.RegistryCommand)
	if err := h.submit(ctx, func() {
		ticket = h.member.Submit(own)
		h.commands[ticket] = answer
	}); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		if r.Code == protos.RegistryResult_NO_SESSION {
			return nil, unansweredError("the registry gave this process up meanwhile; try again")
		}
		return r, nil
	case <-h.stop:
		return nil, errClosed
	case <-h.dead:
		return nil, h.Status().Err
	case <-ctx.Done():
		h.enqueue(func() {
			delete(h.commands, ticket)
			h.member.Cancel(ticket)
		})
		return nil, h.unanswered(ctx)
	}
}

// enqueue has the member's goroutine do something, unless the host is closed or the member has failed.
func (h *Host) enqueue(do func()) {
	select {
	case h.inputs <- do:
	case <-h.stop:
	case <-h.dead:
	}
}

// Read calls a function with the state, which has at least what was acknowledged before.
func (h *Host) Read(ctx context.Context, do func(*registry.State)) error {
	read := make(chan struct{})
	var ticket uint64
	if err := h.submit(ctx, func() {
		ticket = h.member.Read()
		h.reads[ticket] = func() {
			do(h.member.State())
			close(read)
		}
	}); err != nil {
		return err
	}
	select {
	case <-read:
		return nil
	case <-h.stop:
		h.closed.Wait() // do is not running any more
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
		select { // do is not running any more
		case <-canceled:
		case <-h.dead:
		case <-h.stop:
			h.closed.Wait()
		}
		return h.unanswered(ctx)
	}
}

// ReadLocal calls a function with the state that this process has, which may lack the latest changes.
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
		h.closed.Wait() // do is not running any more
		return errClosed
	}
}

// unanswered says why there is no answer.
func (h *Host) unanswered(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return unansweredError(Describe(h.Status()))
}

// Describe says why the registry gives no answer, as a clause.
func Describe(s registry.Status) string {
	voters := strings.Join(s.Voters, ", ")
	switch {
	case s.Err != nil:
		return s.Err.Error()
	case s.Cluster == 0:
		return "no registry has let this process join yet"
	case s.Leader == "":
		return fmt.Sprintf("no quorum: this process hears no majority of the voters %s", voters)
	}
	return fmt.Sprintf("%s leads the registry but did not answer in time; try again (voters: %s)", s.Leader, voters)
}

// Status returns the member's view of the registry.
func (h *Host) Status() registry.Status { return *h.status.Load() }

// Leave hands this process's vote and lead over to others, and returns once that is done, or ctx is.
func (h *Host) Leave(ctx context.Context) error {
	if s := h.Status(); len(s.Voters)+len(s.Learners) < 2 {
		return nil // nobody is there to go on
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

// Package holders keeps copies of a submission's plan and finished runs at three processes, so that
// the submission survives the process that carries it out. The plan is copied before the submission
// is acknowledged, and each finished run before it counts.
//
// The registry records which process owns a submission, in which term, which processes are its
// holders, and the committed version: the plan, runs and checkpoints that another holder has, too.
// The owner carries the submission out. When the registry's leader finds that the owner is gone, it
// releases the submission, and the holders claim it; the registry refuses a claimant that lacks the
// applyResult version. An owner that leaves in order gives the submission up. What an earlier owner
// adds later does not count, because the registry accepts versions only from the owner.
//
// The owner replaces a holder that has been gone for a while, or leaves, by a process that has a copy
// by then. A process that finds in the registry that it is no holder any more drops its copy.
//
// When a submission has ended, holders keep a copy of its record, in case the process that ended it
// is gone. The latest hundred stay.
//
// Without a quorum of the registry, runs go on and their records stay. What finishes meanwhile counts
// once there is a quorum, unless another process has become the owner by then.
package holders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// Needed is how many processes hold a submission.
const Needed = 3

const (
	// pollEvery is the time between two looks at what is due.
	pollEvery = 150 * time.Millisecond
	// stagger is the delay between the claims of two holders.
	stagger = time.Second
	// commandPatience bounds the registry's answer to a command. Afterwards the command is repeated.
	commandPatience = 5 * time.Second
	// slowAfter is the age of an uncommitted addition at which the log reports it.
	slowAfter = 5 * time.Second
	// maxEnded bounds the ended submissions that a process remembers, and maxCopies the copies of their
	// records.
	maxEnded  = 1000
	maxCopies = 100
)

// ErrElsewhere says that another process owns a submission.
var ErrElsewhere = errors.New("another process carries this submission out")

// ErrUncommitted says that the registry has no quorum. The addition counts once there is a quorum.
var ErrUncommitted = errors.New("the registry has no quorum")

// Registry is the cluster's registry, as a process sees it.
type Registry interface {
	// Do executes a command. After an error the command may still have its effect.
	Do(ctx context.Context, c *protos.RegistryCommand) (*protos.RegistryResult, error)
	// Read calls a function with a state that contains all commands acknowledged before the call, and
	// ReadLocal with this process's state, which may be stale. The functions must not keep the state.
	Read(ctx context.Context, do func(*registry.State)) error
	ReadLocal(ctx context.Context, do func(*registry.State)) error
	// Status returns this process's view of the registry.
	Status() registry.Status
}

// Config describes a process to its Service.
type Config struct {
	// Process is the name of the process, and Incarnation the number of its present start.
	Process     string
	Incarnation uint64
	// Stop ends when the process stops.
	Stop context.Context
	// Out is the folder of records of the process.
	Out string
	// Others names the other processes of the cluster.
	Others func() []string
	// Build returns the build of a process; empty if unknown.
	Build func(process string) string
	// Gone reports whether an incarnation of a process has ended or is absent, as far as this process
	// knows. With incarnation 0 it reports whether the process has no incarnation in the cluster.
	Gone func(process string, incarnation uint64) bool
	// Silent reports whether an incarnation that is Gone is absent rather than ended.
	Silent func(process string, incarnation uint64) bool
	// Heard returns when another process was last heard; the zero time if it never was.
	Heard func(process string) time.Time
	// Registry returns the registry; nil while this process takes no part in it.
	Registry func() Registry
	// Send sends another process a Leaving; it may be lost.
	Send func(process string, m proto.Message)
	// Open makes a connection with another process, whose Service takes it with Take.
	Open func(ctx context.Context, process string) (net.Conn, error)
	// Begin runs a function in a goroutine, whose end the process awaits when it stops.
	Begin func(do func())
	// Ready returns an error if this process cannot run a plan, and otherwise makes the record's folder.
	Ready func(ctx context.Context, p *protos.HeldPlan, dir string) error
	// Adopt makes this process carry out a submission that it owns in a term. The record, with the
	// finished runs, is in the folder that p names. If the submission has ended already, Adopt returns
	// its end. Why describes the failure of the previous owner; it is empty after an orderly handover.
	Adopt func(p *protos.HeldPlan, term uint64, why string) *protos.Submission
	// Drop stops a submission in this process, because process to owns it; to is empty if the new owner
	// is unknown. Drop returns once this process no longer writes the record.
	Drop func(id, to string)
	// Held reports the new holders of a submission that this process owns.
	Held func(id string, holders []string)
	// Note adds a line to the log of a submission that this process owns.
	Note func(id, text string)
	// Intact returns an error if the record of a submission that this process conducts is incomplete:
	// such a record must not replace a copy.
	Intact func(id string) error
	// Has reports whether this process has the record of a submission that has ended here. If the
	// record is lost, the process forgets the submission: another one has a copy.
	Has func(id string) bool
	// Log writes a line to the log of the process.
	Log func(format string, args ...any)
	// Disk writes into Out; nil stands for the operating system's file system.
	Disk Disk
}

// Service manages the submissions of which a process is a holder.
type Service struct {
	config Config
	began  time.Time

	mu         sync.Mutex
	ready      bool // the notes of earlier incarnations are loaded
	leaving    bool // this process leaves the cluster
	all        map[string]*holding
	left       map[string]uint64 // incarnations of the other processes that leave or have left, by name
	leaderless time.Duration     // time at which the registry lost its leader, as seen here; 0 with a leader
	proposing  map[string]bool   // ids of the submissions with a command of propose under way
}

// Version numbers the state of a submission's record. Versions are ordered by the term of
// the owner that made them, then by number.
type Version struct {
	Term   uint64 `json:"term"`
	Number uint64 `json:"number"`
}

// Before reports whether a version lacks something that the other has.
func (v Version) Before(other Version) bool {
	return cmp.Or(cmp.Compare(v.Term, other.Term), cmp.Compare(v.Number, other.Number)) < 0
}

func (v Version) message() *protos.Version { return &protos.Version{Term: v.Term, Number: v.Number} }

func versionOf(m *protos.Version) Version { return Version{Term: m.GetTerm(), Number: m.GetNumber()} }

// holding is a submission that this process is a holder of.
type holding struct {
	plan    *protos.HeldPlan // without its text once the submission has ended
	version Version          // version of the copy or the record in folder
	term    uint64           // latest known term of the submission
	folder  string           // name of the copy or the record in the folder of records; empty without one
	ended   bool
	by      string // the process that ended it; empty if this process is a holder no longer

	entry   *protos.RegistrySubmission // latest known entry of the registry; nil without one
	absent  time.Duration              // time at which the entry was first missing; 0 if there is one
	useless time.Duration              // time from which the registry lists no need of the copy; 0 if it does
	claims  time.Duration              // earliest time of the next claim; 0 while there is an owner
	owner   string                     // latest known owner
	heard   time.Time                  // time of the owner's latest message
	asking  bool                       // a command or read about the ownership is under way

	duty       *duty // nil unless this process is the owner
	busy       bool  // a copy arrives, or the record becomes a copy
	recordless bool  // this process lost the record and has no copy

	noteFault string // error of the latest note; empty without one
	copyFault string // error of the latest copy; empty without one
}

// duty is the ownership of a submission by this process.
type duty struct {
	of        *holding
	term      uint64
	committed Version                  // version in the registry
	replicas  []string                 // holders in the registry
	copies    map[string]*copyState    // by holder, former holder and next holder
	next      string                   // process that becomes a holder once it has a copy; empty without one
	away      map[string]time.Duration // times at which holders went away, by name
	changed   chan struct{}            // closed at the next change
	ending    bool                     // the submission has ended, and the others must learn so
	removed   bool                     // the submission is removed, and the others must learn so
	slow      bool                     // the log has reported a delayed commit
	over      bool                     // the registry has recorded the end
	lost      bool                     // this process is the owner no longer
}

// New returns the Service of a process without submissions.
func New(c Config) *Service {
	if c.Disk == nil {
		c.Disk = osDisk{}
	}
	return &Service{config: c, began: time.Now(), all: map[string]*holding{}, left: map[string]uint64{},
		proposing: map[string]bool{}}
}

// now returns the time since the start of this process.
func (s *Service) now() time.Duration { return time.Since(s.began) }

// others returns the other holders of a submission.
func (s *Service) others(plan *protos.HeldPlan) []string {
	return slices.DeleteFunc(slices.Clone(plan.Holders), func(name string) bool { return name == s.config.Process })
}

// newDuty makes this process the owner of a submission in a term. The term is 0 if the submission has
// ended.
func (s *Service) newDuty(h *holding, term uint64) *duty {
	d := &duty{of: h, term: term, replicas: h.plan.Holders, copies: map[string]*copyState{},
		away: map[string]time.Duration{}, changed: make(chan struct{})}
	h.duty = d
	for _, name := range s.others(h.plan) {
		d.copies[name] = &copyState{}
	}
	return d
}

// supply starts the goroutines that keep the other holders and the registry up to date.
func (s *Service) supply(d *duty) {
	for name, c := range d.copies {
		s.config.Begin(func() { s.supplyOne(d, name, c) })
	}
	if d.term > 0 {
		s.config.Begin(func() { s.proposeDue(d) })
	}
}

// change wakes all goroutines that wait for a change; s.mu is held.
func (d *duty) change() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// rank orders the processes of the cluster for a submission, by rendezvous hashing (D. Thaler and
// C. Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM Transactions on
// Networking 6, 1998).
func rank(id string, names []string) []string {
	weight := func(name string) uint64 { return xxhash.Sum64String(id + "\x00" + name) }
	return slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
}

// Hold makes two other processes holders of a submission, whose record is in plan.Folder. It returns
// the names of all three holders, this process first. If only one of the two can store a copy, the
// other is a holder without a copy, and the note gives the reason. If neither can, Hold returns no
// names, and the note gives the reason. If the registry does not answer, no submission is accepted,
// and Hold returns an error.
func (s *Service) Hold(ctx context.Context, plan *protos.HeldPlan) (names []string, note string, err error) {
	r, err := s.ask(ctx)
	if err != nil {
		return nil, "", err
	}
	able, denied := rank(plan.Id, s.config.Others()), denials{}
	var h *holding
	for len(able) > 0 && len(able)+len(denied.unable) >= Needed-1 {
		plan = proto.CloneOf(plan)
		plan.Holders = append([]string{s.config.Process}, able[:min(len(able), Needed-1)]...)
		plan.Holders = append(plan.Holders, denied.unable[:Needed-len(plan.Holders)]...)
		plan.Build, plan.Registry = s.config.Build(s.config.Process), r.Status().Cluster
		h = &holding{plan: plan, folder: plan.Folder, version: Version{Term: 1}, term: 1}
		latest := s.offer(ctx, h, &denied)
		if len(latest) == 0 {
			if err := s.enroll(ctx, r, h); err != nil {
				s.withdraw(h, true)
				return nil, "", err
			}
			return plan.Holders, denied.copies(plan), nil
		}
		if denied.add(plan.Holders, latest); latest[s.config.Process].err != nil {
			break
		}
		able = slices.DeleteFunc(able, func(name string) bool { return denied.why[name] != "" })
	}
	if h != nil {
		s.withdraw(h, false)
	}
	why := fmt.Sprintf("that takes three processes, and the cluster has %d", len(s.config.Others())+1)
	if len(denied.all) > 0 {
		why = "others cannot hold it: " + strings.Join(denied.all, "; ")
	}
	return nil, fmt.Sprintf("submission %s does not survive process %s: %s", plan.Id, s.config.Process, why), nil
}

// ask returns the registry, or an error if it has no quorum.
func (s *Service) ask(ctx context.Context) (Registry, error) {
	r := s.config.Registry()
	if r == nil {
		return nil, refusal.Again(fmt.Errorf("no submission is accepted here now: process %s takes no part in the "+
			"registry, see its log", s.config.Process))
	}
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	if err := r.Read(ctx, func(*registry.State) {}); err != nil {
		return nil, refusal.Again(fmt.Errorf("no submission is accepted now: %w", err))
	}
	return r, nil
}

// enroll claims a new submission, of which the other holders have copies.
func (s *Service) enroll(ctx context.Context, r Registry, h *holding) error {
	s.mu.Lock()
	s.all[h.plan.Id] = h
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	result, err := r.Do(ctx, claimCommand(h, 1))
	switch {
	case err != nil:
		return refusal.Again(fmt.Errorf("no submission is accepted now: %w", err))
	case result.Code != protos.RegistryResult_DONE:
		owner := result.Owner.GetName()
		return refusal.Again(fmt.Errorf("submission %s exists already, at process %s", h.plan.Id, owner))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.busy = false
	h.duty.committed = h.version
	s.advance(h) // a version above 0 shows that the submission was accepted
	s.supply(h.duty)
	return nil
}

// denial is the reason of a process that does not hold a submission offered to it.
type denial struct {
	err    error
	unable bool // the process cannot store a copy, but can be a holder without one
}

// denials are the reasons of all processes that do not hold a submission offered to them.
type denials struct {
	all    []string          // first reason of each process, after its name
	why    map[string]string // latest reason by process
	unable []string          // possible holders without a copy
}

// add notes the denials of some processes, in the order of the names.
func (r *denials) add(names []string, denied map[string]denial) {
	if r.why == nil {
		r.why = map[string]string{}
	}
	for _, name := range names {
		d, is := denied[name]
		if !is {
			continue
		}
		if r.why[name] == "" {
			r.all = append(r.all, fmt.Sprintf("%s: %v", name, d.err))
		}
		r.why[name] = request.Text(d.err.Error(), request.MaxListed)
		r.unable = slices.DeleteFunc(r.unable, func(n string) bool { return n == name })
		if d.unable {
			r.unable = append(r.unable, name)
		}
	}
}

// copies says how many holders of a plan have a copy and why the others have none; it is empty if all
// have one.
func (r *denials) copies(plan *protos.HeldPlan) string {
	var lacking []string
	for _, name := range plan.Holders {
		if why := r.why[name]; why != "" {
			lacking = append(lacking, name+": "+why)
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	return fmt.Sprintf("submission %s has copies %s", plan.Id, countCopies(lacking, len(plan.Holders)))
}

// offer sends copies of a new submission to the other holders. It returns the denials by process. It
// does not ask a process again that was unable before.
func (s *Service) offer(ctx context.Context, h *holding, before *denials) map[string]denial {
	s.mu.Lock()
	d := s.newDuty(h, 1)
	h.busy = true
	for name, c := range d.copies {
		if c.why = before.why[name]; c.why != "" {
			c.unable, c.failed, c.refused = true, 1, s.now()
		}
	}
	s.mu.Unlock()
	denied := map[string]denial{}
	var mu sync.Mutex
	var offering sync.WaitGroup
	for name, c := range d.copies {
		if c.unable {
			continue
		}
		offering.Go(func() {
			s.mu.Lock()
			head := s.head(h, c)
			s.mu.Unlock()
			if err := s.copyTo(ctx, d, name, head); err != nil {
				unable := s.isUnable(c)
				mu.Lock()
				defer mu.Unlock()
				denied[name] = denial{err, unable}
			}
		})
	}
	offering.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeNote(h); err != nil && len(denied) == 0 {
		denied[s.config.Process] = denial{err: fmt.Errorf("it cannot note it: %s", cause(err))}
	}
	return denied
}

// withdraw makes the processes that took a submission, when it was offered last, drop it. If it was
// claimed, the registry is told that it has ended, because the claim may have its effect later.
func (s *Service) withdraw(h *holding, claimed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.ended = true
	h.duty.ending, h.duty.removed, h.duty.over = true, true, !claimed
	for name, c := range h.duty.copies {
		if c.files == nil {
			delete(h.duty.copies, name)
		}
	}
	s.removeNote(h)
	delete(s.all, h.plan.Id)
	s.supply(h.duty)
}

// Holds reports whether this process is a holder of a submission that has not ended.
func (s *Service) Holds(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	return h != nil && !h.ended
}

// Commit waits until a finished run counts: another holder has its files, and the registry has
// recorded the version. The error is ErrElsewhere if another process owns the submission, and
// ErrUncommitted if the registry has no quorum: then the run counts later. This process's attempt
// starts again with the next run.
func (s *Service) Commit(ctx context.Context, id string) error {
	return s.reach(ctx, id, true, func(h *holding) {
		if len(h.plan.Attempts) > 0 {
			h.plan.Attempts = []*protos.Attempt{s.attempt()}
		}
	})
}

// End waits until another holder has the record of an ended submission, and the registry has recorded
// the end. The error is ErrElsewhere if another process owns the submission.
func (s *Service) End(ctx context.Context, id string, end *protos.Submission) error {
	return s.reach(ctx, id, false, func(h *holding) {
		h.duty.ending, h.duty.next = true, ""
		h.plan.End, h.plan.Attempts = end, nil
	})
}

// reach adds an attempt, a run or the end to a submission, and waits until the version with it is
// committed. With goesOn it returns ErrUncommitted once the quorum has been lost for slowAfter.
func (s *Service) reach(ctx context.Context, id string, goesOn bool, add func(h *holding)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	switch {
	case h != nil && h.ended && h.by == s.config.Process:
		return nil
	case h == nil || h.duty == nil || h.duty.lost || h.ended:
		return ErrElsewhere
	}
	d, began := h.duty, s.now()
	h.plan = proto.CloneOf(h.plan)
	add(h)
	s.advance(h)
	want := h.version.Number
	for !d.lost {
		alone := s.leaderless != 0 && s.now()-s.leaderless > slowAfter
		switch {
		case h.ended || !d.ending && (d.committed.Number >= want || s.alone(d)):
			return nil
		case (alone || s.now()-began > slowAfter) && !d.slow:
			d.slow = true
			s.logDelay(d)
		case alone && goesOn:
			return ErrUncommitted
		}
		if err := s.await(ctx, d.changed); err != nil {
			return err
		}
	}
	return ErrElsewhere
}

// logDelay writes to a submission's log why its latest addition does not count yet; s.mu is held.
func (s *Service) logDelay(d *duty) {
	id := d.of.plan.Id
	if s.leaderless == 0 {
		others := strings.Join(s.others(d.of.plan), ", ")
		s.logCopies(d.of, "what has finished counts when one more of "+others+" has it: ")
		return
	}
	status := s.config.Registry().Status()
	text := fmt.Sprintf("what has finished counts when a majority of the registry's voters, %s, answers",
		strings.Join(status.Voters, ", "))
	s.config.Begin(func() { s.config.Note(id, text) })
}

// await releases s.mu until a change, for pollEvery at most. It returns the cause if ctx ends or the
// process stops.
func (s *Service) await(ctx context.Context, changed <-chan struct{}) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-time.After(pollEvery):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.config.Stop.Done():
		return context.Cause(s.config.Stop)
	}
}

// Remove makes all other holders drop a submission that has ended here, with their copies of its
// record.
func (s *Service) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil || h.busy || h.ended && h.by != s.config.Process {
		return
	}
	term := uint64(0) // the registry knows that it has ended
	if h.duty != nil {
		if !h.ended {
			term = h.duty.term
		}
		h.duty.lost = true
		h.duty.change()
	}
	d := s.newDuty(h, term)
	d.ending, d.removed, d.over = true, true, term == 0
	s.end(h, s.config.Process)
	_ = s.writeNote(h) // it has logged its error
	s.supply(d)
}

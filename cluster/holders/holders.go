// Package holders keeps copies of a submission's plan and finished runs at three processes, so that
// the submission survives the process that carries it out. The plan is copied before the submission
// is acknowledged, and each finished run before it counts.
//
// The registry records which process owns a submission, in which term, which processes are its
// holders, and the committed version: the plan, runs and checkpoints that another holder has, too.
// The owner carries the submission out. When the registry's leader finds that the owner is gone, it
// releases the submission, and the holders claim it; the registry refuses a claimant that lacks the
// committed version. An owner that leaves in order gives the submission up. What an earlier owner
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
	// lookEvery is the time between two looks at what is due.
	lookEvery = 150 * time.Millisecond
	// stagger is how much later each further holder claims a submission without an owner.
	stagger = time.Second
	// commandPatience is how long the registry may take to answer a command until it is repeated.
	commandPatience = 5 * time.Second
	// slowAfter is how long it may take until another process has what has finished, before the log
	// says who lacks a copy.
	slowAfter = 5 * time.Second
	// maxEnded is how many submissions that have ended are remembered, and maxCopies of how many
	// the copy of a record is kept.
	maxEnded  = 1000
	maxCopies = 100
)

// ErrElsewhere says that another process carries a submission out.
var ErrElsewhere = errors.New("another process carries this submission out")

// ErrUncommitted says that the registry has no quorum: what was added counts once there is one again.
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

// Config is the process that a Service belongs to, and what it does there.
type Config struct {
	// Process is its name, and Incarnation tells its lives apart.
	Process     string
	Incarnation uint64
	// Stop ends when it stops.
	Stop context.Context
	// Out is its folder of records.
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
	// Begin does something beside, which the process waits for.
	Begin func(do func())
	// Ready finds out whether a plan can be carried out here, and makes the folder of its record.
	Ready func(ctx context.Context, p *protos.HeldPlan, dir string) error
	// Adopt has this process carry a submission out, in a term: with the record in the folder that p
	// names, which has the runs that have finished. If it has ended already, it returns how. Why says
	// what happened to the process that carried it out before; it is empty after an orderly handover.
	Adopt func(p *protos.HeldPlan, term uint64, why string) *protos.Submission
	// Drop has this process carry a submission out no longer, because another one does; it is empty
	// if that is not known. It returns when nothing is written to the record any more.
	Drop func(id, to string)
	// Held is told who holds a submission that is carried out here, when that has changed.
	Held func(id string, holders []string)
	// Note adds a line to the log of a submission that is carried out here.
	Note func(id, text string)
	// Intact returns an error if the record of a submission that this process conducts is incomplete:
	// such a record must not replace a copy.
	Intact func(id string) error
	// Has reports whether this process has the record of a submission that has ended here. If the
	// record is lost, the process forgets the submission: another one has a copy.
	Has func(id string) bool
	// Log is told in a line what has happened.
	Log func(format string, args ...any)
	// Disk writes into Out; nil stands for the operating system's file system.
	Disk Disk
}

// Service is what one process holds.
type Service struct {
	config Config
	began  time.Time

	mu         sync.Mutex
	ready      bool // the notes of earlier incarnations are loaded
	leaving    bool // this process does
	all        map[string]*holding
	left       map[string]uint64 // the incarnation of each other process that leaves, or has left
	leaderless time.Duration     // since when the registry has no leader, as far as is known here; 0 if it has one
	proposing  map[string]bool   // submissions about which propose has a command under way
}

// Version says how much of a submission's record a process has. Versions are ordered by the term of
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
	version Version          // of the copy or the record in folder
	term    uint64           // the latest known
	folder  string           // of the copy or the record, within the process's folder of records; empty without
	ended   bool
	by      string // the process that ended it; empty if this process is a holder no longer

	entry   *protos.RegistrySubmission // of the registry, as known here; nil if unknown
	absent  time.Duration              // since when the registry knows no such submission; 0 if it knows it
	useless time.Duration              // since when the copy is not needed; 0 if it is
	claims  time.Duration              // it does not claim before; 0 while there is an owner
	owner   string                     // the latest known one
	heard   time.Time                  // when it was last heard
	asking  bool                       // a command about the ownership is under way

	duty       *duty // nil unless this process carries it out
	busy       bool  // a copy is being taken, or the record given up
	recordless bool  // this process gave the record up and has no copy

	noteFault string // why the latest note was not written; empty if it was
	copyFault string // why the latest copy was not
}

// duty is the part of the process that carries a submission out.
type duty struct {
	of        *holding
	term      uint64
	committed Version                  // in the registry
	replicas  []string                 // in the registry
	copies    map[string]*held         // of all other holders, those that were, and the next
	next      string                   // it is to become a holder; empty if none is
	away      map[string]time.Duration // since when each holder is gone
	changed   chan struct{}            // closed at the next change
	ending    bool                     // the others are to know that it has ended
	removed   bool                     // they are to know that it is removed
	slow      bool                     // the log says that something does not count yet
	over      bool                     // the registry knows that it has ended
	lost      bool                     // another process has taken over
}

// New returns the service of a process that holds nothing.
func New(c Config) *Service {
	if c.Disk == nil {
		c.Disk = osDisk{}
	}
	return &Service{config: c, began: time.Now(), all: map[string]*holding{}, left: map[string]uint64{},
		proposing: map[string]bool{}}
}

// now is on the clock of this process.
func (s *Service) now() time.Duration { return time.Since(s.began) }

// others are the other holders of a submission.
func (s *Service) others(plan *protos.HeldPlan) []string {
	return slices.DeleteFunc(slices.Clone(plan.Holders), func(name string) bool { return name == s.config.Process })
}

// newDuty makes this process the owner of a submission in a term; 0 if it has ended.
func (s *Service) newDuty(h *holding, term uint64) *duty {
	d := &duty{of: h, term: term, replicas: h.plan.Holders, copies: map[string]*held{},
		away: map[string]time.Duration{}, changed: make(chan struct{})}
	h.duty = d
	for _, name := range s.others(h.plan) {
		d.copies[name] = &held{}
	}
	return d
}

// supply keeps the other holders and the registry up to date from now on.
func (s *Service) supply(d *duty) {
	for name, c := range d.copies {
		s.config.Begin(func() { s.supplyOne(d, name, c) })
	}
	if d.term > 0 {
		s.config.Begin(func() { s.commit(d) })
	}
}

// change wakes those who wait for a change; s.mu is held.
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

// Hold has two other processes hold a submission, whose record is in plan.Folder, and returns all
// three, this one first. If only one of the two can store a copy, the other one is a holder without a
// copy, and the note says why. If neither can, Hold returns no names, and the note says why. An error
// says why no submission is accepted now: the registry does not answer.
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

// ask returns the registry if it has a quorum.
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

// enroll claims a new submission, which the others have taken.
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
	s.advance(h) // so that a copy shows that the submission was accepted
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

// offer gives the others a new submission. It returns the denials by process. A process that has
// denied it as unable before is not asked again.
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
	if err := s.keep(h); err != nil && len(denied) == 0 {
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

// Holds reports whether this process is a holder of a submission that has not ended. It carries it
// out once Adopt is called.
func (s *Service) Holds(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	return h != nil && !h.ended
}

// Commit waits until a run that has finished counts: another holder has it, and the registry knows.
// The error is ErrElsewhere if another process has taken over, and ErrUncommitted if the registry has
// no quorum: then the run counts later. The attempt of this process begins anew, with the next run.
func (s *Service) Commit(ctx context.Context, id string) error {
	return s.reach(ctx, id, true, func(h *holding) {
		if len(h.plan.Attempts) > 0 {
			h.plan.Attempts = []*protos.Attempt{s.attempt()}
		}
	})
}

// End waits until another holder has the record of a submission that has ended, and the registry
// knows that it has. The error is ErrElsewhere if another process has taken over.
func (s *Service) End(ctx context.Context, id string, end *protos.Submission) error {
	return s.reach(ctx, id, false, func(h *holding) {
		h.duty.ending, h.duty.next = true, ""
		h.plan.End, h.plan.Attempts = end, nil
	})
}

// reach adds an attempt, a run or the end to a submission, and waits until that is committed. With
// goesOn it does not wait for a quorum that has been lost for longer than slowAfter.
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
			s.tellSlow(d)
		case alone && goesOn:
			return ErrUncommitted
		}
		if err := s.await(ctx, d.changed); err != nil {
			return err
		}
	}
	return ErrElsewhere
}

// tellSlow says in a submission's log why what has finished does not count yet; s.mu is held.
func (s *Service) tellSlow(d *duty) {
	id := d.of.plan.Id
	if s.leaderless == 0 {
		others := strings.Join(s.others(d.of.plan), ", ")
		s.tellCopies(d.of, "what has finished counts when one more of "+others+" has it: ")
		return
	}
	status := s.config.Registry().Status()
	text := fmt.Sprintf("what has finished counts when a majority of the registry's voters, %s, answers",
		strings.Join(status.Voters, ", "))
	s.config.Begin(func() { s.config.Note(id, text) })
}

// await releases s.mu until a change, for lookEvery at most. The error is that of ctx or of the
// process.
func (s *Service) await(ctx context.Context, changed <-chan struct{}) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-time.After(lookEvery):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.config.Stop.Done():
		return context.Cause(s.config.Stop)
	}
}

// Remove makes all other holders forget a submission that has ended here, with their copies of its
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
	_ = s.keep(h) // it has logged its error
	s.supply(d)
}

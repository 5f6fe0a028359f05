// Package holders keeps what a submission needs at three processes, so that it survives the one
// that carries it out. The plan is there before the submission is acknowledged, and each finished
// run before it counts. The three have a lease on it, see package lease: who owns the lease carries
// the submission out. When the owner's process is gone, as far as another holder can see, that one
// asks for the lease as soon as it has run out, and goes on from the last finished run. An owner
// that leaves in order gives the lease up, and need not be waited for.
//
// The owner replaces a holder that has been gone for a while, or leaves: by one that has a copy by
// then. A fourth is added first, and then one removed. Who was removed while it was away hears so
// when it is back, and until then nothing depends on it.
//
// When a submission has ended, holders keep a copy of its record, in case that the process is gone
// which has ended it. The latest hundred stay.
//
// A silent process, such as a paused one, is gone once it is absent (Config.Gone). If it returns
// before another holder has the lease, it goes on. If it returns later, its lease has expired, and it
// stops. Runs that it finishes count only after it has renewed the lease and another holder has a copy.
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

	"github.com/gradwire/gradwire/cluster/lease"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// Needed is how many processes hold a submission.
const Needed = 3

const (
	// lookEvery is the time between two looks at what is due.
	lookEvery = 150 * time.Millisecond
	// stagger is how much later each further holder asks for a lease that has run out, and how long
	// one waits that was not granted it.
	stagger = time.Second
	// slowAfter is how long it may take until another process has what has finished, before the log
	// says who lacks a copy.
	slowAfter = 5 * time.Second
	// maxEnded is how many submissions that have ended are remembered, and maxCopies of how many
	// the copy of a record is kept.
	maxEnded  = 1000
	maxCopies = 100
)

// spans are those of the leases.
var spans = lease.Config{Length: 3 * time.Second, Margin: 500 * time.Millisecond, Renew: 700 * time.Millisecond}

// ErrElsewhere says that another process carries a submission out.
var ErrElsewhere = errors.New("another process carries this submission out")

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
	// Send sends another process LeaseAsks or LeaseAnswers; they may be lost.
	Send func(process string, m proto.Message)
	// Open makes a connection with another process, whose Service takes it with Take.
	Open func(ctx context.Context, process string) (net.Conn, error)
	// Begin does something beside, which the process waits for.
	Begin func(do func())
	// Ready finds out whether a plan can be carried out here, and makes the folder of its record.
	Ready func(ctx context.Context, p *protos.HeldPlan, dir string) error
	// Adopt has this process carry a submission out, in a term of its lease: with the record in the
	// folder that p names, which has the runs that have finished. If it has ended here already, it
	// returns how. Why says what happened to the process that carried it out before; it is empty
	// after an orderly handover.
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

	mu      sync.Mutex
	ready   bool // what earlier lives have held is known
	leaving bool // this process does
	all     map[string]*holding
	left    map[string]uint64 // the life of each other process that leaves, or has left
}

// holding is a submission that this process is a holder of.
type holding struct {
	member *lease.Member
	plan   *protos.HeldPlan // without its text once it has ended
	life   uint64           // of the owner
	folder string           // of the copy or the record, within the process's folder of records; empty without
	ended  bool
	by     string        // which process has brought it to its end; empty if this one holds it no longer
	kept   lease.Promise // that is on the disk

	duty       *duty         // nil unless this process carries it out
	busy       bool          // a copy is being taken, or the record given up
	campaign   time.Duration // it does not ask for the lease before; 0 if the owner is there
	ahead      bool          // or at once: a candidate lacks something that is here
	lost       string        // since when the owner is gone, if this process asked for its lease
	released   string        // the owner that has given the lease up; empty if none has
	bereft     bool          // the owner released the lease because it could not keep the record
	recordless bool          // this process handed the record over and has no copy
	witness    bool          // this process votes without a copy, since it cannot write one
	abstains   bool          // this process does not vote: the note of its latest promise may be missing

	noteFault string            // why the latest note was not written; empty if it was
	copyFault string            // why the latest copy was not
	denied    map[string]string // why other holders cannot write their promises
}

// duty is the part of the process that carries a submission out.
type duty struct {
	of      *holding
	copies  map[string]*held         // of all other holders, those that were, and the next
	next    string                   // it is to become a holder; empty if none is
	away    map[string]time.Duration // since when each holder is gone
	changed chan struct{}            // closed at the next change
	ending  bool                     // the others are to know that it has ended
	removed bool                     // they are to know that nobody holds it any longer
	lost    bool                     // another process has taken over
}

// New returns the service of a process that holds nothing.
func New(c Config) *Service {
	if c.Disk == nil {
		c.Disk = osDisk{}
	}
	return &Service{config: c, began: time.Now(), all: map[string]*holding{}, left: map[string]uint64{}}
}

// now is on the clock of this process.
func (s *Service) now() time.Duration { return time.Since(s.began) }

// newHolding returns a holding with what is known of an earlier one.
func (s *Service) newHolding(plan *protos.HeldPlan, folder string, p lease.Promise, v lease.Version) *holding {
	return &holding{plan: plan, folder: folder, kept: p,
		member: lease.New(spans, s.config.Process, plan.Holders, p, v, s.now())}
}

// others are the other holders of a submission.
func (s *Service) others(plan *protos.HeldPlan) []string {
	return slices.DeleteFunc(slices.Clone(plan.Holders), func(name string) bool { return name == s.config.Process })
}

// newDuty has this process supply the others.
func (s *Service) newDuty(h *holding) {
	d := &duty{of: h, copies: map[string]*held{}, away: map[string]time.Duration{}, changed: make(chan struct{})}
	h.duty = d
	for _, name := range append(s.others(h.plan), h.plan.Former...) {
		d.copies[name] = &held{}
	}
}

// supply keeps the other holders up to date from now on.
func (s *Service) supply(d *duty) {
	for name, c := range d.copies {
		s.config.Begin(func() { s.supplyOne(d, name, c) })
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
// three, this one first. If only one of the two can store a copy, the other one is a witness, and the
// note says why. If neither can, Hold returns no names, and the note says why.
func (s *Service) Hold(ctx context.Context, plan *protos.HeldPlan) (names []string, note string) {
	able, denied := rank(plan.Id, s.config.Others()), denials{}
	var h *holding
	for term := uint64(0); len(able) > 0 && len(able)+len(denied.unable) >= Needed-1; term++ {
		plan = proto.CloneOf(plan)
		plan.Holders = append([]string{s.config.Process}, able[:min(len(able), Needed-1)]...)
		plan.Holders = append(plan.Holders, denied.unable[:Needed-len(plan.Holders)]...)
		plan.Build = s.config.Build(s.config.Process)
		h = s.newHolding(plan, plan.Folder, lease.Promise{Term: term, Owner: s.config.Process}, lease.Version{})
		latest := s.offer(ctx, h, &denied)
		if len(latest) == 0 {
			return plan.Holders, denied.copies(plan)
		}
		if denied.add(plan.Holders, latest); latest[s.config.Process].err != nil {
			break
		}
		able = slices.DeleteFunc(able, func(name string) bool { return denied.why[name] != "" })
	}
	if h != nil {
		s.withdraw(h)
	}
	why := fmt.Sprintf("that takes three processes, and the cluster has %d", len(s.config.Others())+1)
	if len(denied.all) > 0 {
		why = "others cannot hold it: " + strings.Join(denied.all, "; ")
	}
	return nil, fmt.Sprintf("submission %s does not survive process %s: %s", plan.Id, s.config.Process, why)
}

// denial is the reason of a process that does not hold a submission offered to it.
type denial struct {
	err    error
	unable bool // the process cannot store a copy, but can be a witness
}

// denials are the reasons of all processes that do not hold a submission offered to them.
type denials struct {
	all    []string          // first reason of each process, after its name
	why    map[string]string // latest reason by process
	unable []string          // possible witnesses
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

// offer gives the others a new submission. It returns the denials by process.
func (s *Service) offer(ctx context.Context, h *holding, before *denials) map[string]denial {
	s.mu.Lock()
	s.newDuty(h)
	h.busy = true
	h.member.Campaign(s.now())
	h.member.Set(lease.Version{Term: h.member.Promise().Term}, h.plan.Holders)
	h.member.Due(s.now())
	d := h.duty
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
		offering.Go(func() {
			s.mu.Lock()
			head := s.head(h, c)
			head.Anew, head.Witness = true, c.unable
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
	if len(denied) > 0 {
		return denied
	}
	return s.awaitLease(ctx, h)
}

// awaitLease waits until this process has the lease of a submission that all others have taken. The
// lease may have expired while they checked the plan. It returns the denials of the processes that
// prevent the lease.
func (s *Service) awaitLease(ctx context.Context, h *holding) map[string]denial {
	patience := time.NewTimer(spans.Length)
	defer patience.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[h.plan.Id] = h
	for !h.member.Leads() {
		if !h.member.Claims() || h.member.Expired(s.now()) {
			h.member.Campaign(s.now())
		}
		changed := h.duty.changed
		s.mu.Unlock()
		over := false
		select {
		case <-changed:
		case <-time.After(lookEvery):
		case <-patience.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		s.mu.Lock()
		if over {
			delete(s.all, h.plan.Id)
			return unanswered(h, s.others(h.plan))
		}
	}
	h.member.Set(lease.Version{Term: h.member.Promise().Term}, h.plan.Holders)
	if err := s.keep(h); err != nil {
		delete(s.all, h.plan.Id)
		return map[string]denial{s.config.Process: {err: fmt.Errorf("it cannot note it: %s", cause(err))}}
	}
	h.busy = false
	s.supply(h.duty)
	return nil
}

// unanswered returns the denials of the processes that no longer answer; s.mu is held.
func unanswered(h *holding, others []string) map[string]denial {
	denied := map[string]denial{}
	for _, name := range others {
		if !h.member.Granted(name) {
			denied[name] = denial{err: errors.New("it does not answer any more")}
		}
	}
	if len(denied) == 0 { // all have granted the lease, but too late
		denied[others[0]] = denial{err: errors.New("it answers too late")}
	}
	return denied
}

// withdraw has those forget a submission that took it when it was offered last.
func (s *Service) withdraw(h *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.duty.ending, h.duty.removed = true, true
	for name, c := range h.duty.copies {
		if c.files == nil && !c.witness {
			delete(h.duty.copies, name)
		}
	}
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

// Commit waits until a run that has finished is at another holder, while this process has the
// lease. The error is ErrElsewhere if another one has taken over. The attempt of this process
// begins anew, with the next run.
func (s *Service) Commit(ctx context.Context, id string) error {
	return s.reach(ctx, id, func(h *holding) {
		if len(h.plan.Attempts) > 0 {
			h.plan.Attempts = []*protos.Attempt{s.attempt()}
		}
	})
}

// End waits until another holder has the record of a submission that has ended, while this process
// has the lease, and knows how. The error is ErrElsewhere if another one has taken over.
func (s *Service) End(ctx context.Context, id string, end *protos.Submission) error {
	return s.reach(ctx, id, func(h *holding) {
		h.duty.ending, h.duty.next = true, ""
		h.plan.End, h.plan.Attempts = end, nil
	})
}

// reach adds an attempt, a run or the end to a submission, and waits until a majority has stored it.
func (s *Service) reach(ctx context.Context, id string, add func(h *holding)) error {
	s.mu.Lock()
	h := s.all[id]
	switch {
	case h != nil && h.ended && h.by == s.config.Process:
		s.mu.Unlock()
		return nil
	case h == nil || h.duty == nil || h.ended:
		s.mu.Unlock()
		return ErrElsewhere
	}
	d := h.duty
	h.plan = proto.CloneOf(h.plan)
	add(h)
	s.advance(h)
	slow := time.AfterFunc(slowAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.duty == d {
			others := strings.Join(s.others(h.plan), ", ")
			s.tellCopies(h, "what has finished counts when one more of "+others+" has it: ")
		}
	})
	defer slow.Stop()
	for {
		lost, changed, there := d.lost, d.changed, h.ended || h.member.Decided(s.now())
		if there && !h.ended && d.ending {
			s.end(h, s.config.Process)
			_ = s.keep(h) // it has logged its error
		}
		s.mu.Unlock()
		switch {
		case lost:
			return ErrElsewhere
		case there:
			return nil
		}
		select {
		case <-changed:
		case <-time.After(lookEvery): // the lease may be back
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.config.Stop.Done():
			return context.Cause(s.config.Stop)
		}
		s.mu.Lock()
	}
}

// Remove has all others forget a submission that has ended here, with their copies of its record.
func (s *Service) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil || h.busy || h.ended && h.by != s.config.Process {
		return
	}
	if h.duty != nil {
		h.duty.lost = true
		h.duty.change()
	}
	s.newDuty(h)
	h.duty.ending, h.duty.removed = true, true
	s.end(h, s.config.Process)
	_ = s.keep(h) // it has logged its error
	s.supply(h.duty)
}

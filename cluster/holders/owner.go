package holders

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// waitPatience is how long a process keeps a copy although the registry does not list the process as a
// holder: the owner may be about to add it.
const waitPatience = time.Minute

// endPatience is how long a holder waits for the last files of a submission that has ended.
const endPatience = 10 * time.Second

// Work polls the registry until Config.Stop ends. It claims submissions whose owners are gone, and
// yields submissions that other processes have claimed.
func (s *Service) Work() {
	clock := time.NewTicker(pollEvery)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
			s.poll()
		case <-s.config.Stop.Done():
			return
		}
	}
}

// poll reconciles the holdings with the registry. In the registry's leader it also releases the
// submissions of owners that are gone.
func (s *Service) poll() {
	r := s.config.Registry()
	if r == nil {
		return
	}
	status := r.Status()
	var ids []string
	s.mu.Lock()
	switch ids = slices.Collect(maps.Keys(s.all)); {
	case status.Leader != "" && status.Cluster != 0 && status.Err == nil:
		s.leaderless = 0
	case s.leaderless == 0:
		s.leaderless = s.now()
	}
	s.mu.Unlock()
	if status.Cluster == 0 || status.Err != nil {
		return
	}
	entries := map[string]*protos.RegistrySubmission{}
	var owned []*protos.RegistrySubmission // this process's submissions; in the leader, those of all processes
	if err := r.ReadLocal(s.config.Stop, func(state *registry.State) {
		for _, id := range ids {
			entries[id] = proto.CloneOf(state.Submission(id))
		}
		for _, e := range state.Submissions() {
			if e.Owner != nil && (status.Leads || s.isOwner(e)) {
				owned = append(owned, proto.CloneOf(e))
			}
		}
	}); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range owned {
		switch {
		case s.isOwner(e) && s.all[e.Id] == nil: // a refused submission, whose claim was granted later
			s.propose(r, e.Id, &protos.RegistryCommand{Kind: &protos.RegistryCommand_EndSubmission{
				EndSubmission: &protos.EndSubmission{Id: e.Id, Term: e.Term},
			}})
		case !s.isOwner(e) && (e.Owner.Name == s.config.Process || s.config.Gone(e.Owner.Name, e.Owner.Incarnation)):
			s.propose(r, e.Id, &protos.RegistryCommand{Kind: &protos.RegistryCommand_ReleaseSubmission{
				ReleaseSubmission: &protos.ReleaseSubmission{Id: e.Id, Term: e.Term},
			}})
		}
	}
	now := s.now()
	for _, id := range ids {
		h := s.all[id]
		if h == nil || h.ended || h.busy || h.asking || s.leaving {
			continue
		}
		h.entry = entries[id]
		if s.reconcile(r, h, status.Cluster, now); h.duty != nil && !h.duty.lost {
			s.replaceLost(h, now)
		}
	}
}

// propose proposes a command about a submission, unless an earlier one is under way. poll repeats a
// command without an effect; s.mu is held.
func (s *Service) propose(r Registry, id string, command *protos.RegistryCommand) {
	if s.proposing[id] {
		return
	}
	s.proposing[id] = true
	s.config.Begin(func() {
		_, _ = s.do(r, command) // poll repeats it
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.proposing, id)
	})
}

// do executes a command within commandPatience.
func (s *Service) do(r Registry, c *protos.RegistryCommand) (*protos.RegistryResult, error) {
	ctx, cancel := context.WithTimeout(s.config.Stop, commandPatience)
	defer cancel()
	return r.Do(ctx, c)
}

// reconcile acts on the difference between a holding and its entry in the registry with a number; s.mu
// is held.
func (s *Service) reconcile(r Registry, h *holding, number uint64, now time.Duration) {
	e := h.entry
	if e == nil {
		s.reconcileUnknown(r, h, number, now)
		return
	}
	h.absent = 0
	owner := e.Owner.GetName()
	s.noteHeard(h, cmp.Or(owner, e.Previous.GetName()))
	switch {
	case e.Ended:
		s.reconcileEnded(h, e, now)
	case owner == s.config.Process:
		s.reconcileOwned(r, h, e)
	case owner != "" && e.Term < h.term && h.plan.Registry == number: // this process's state is stale
	case owner != "":
		h.claims = 0
		if h.term = e.Term; h.duty != nil || s.hasRecord(h) {
			s.yield(h, owner)
			return
		}
		s.dropUnlisted(r, h, now)
	case h.duty != nil && e.Term > h.duty.term: // another process was the owner in between
		s.yield(h, "")
	case h.duty != nil:
		s.claim(r, h)
	default:
		s.dropUnlisted(r, h, now)
		s.claimIfDue(r, h, now)
	}
}

// reconcileOwned is reconcile for an entry whose owner is this process; s.mu is held.
func (s *Service) reconcileOwned(r Registry, h *holding, e *protos.RegistrySubmission) {
	switch d := h.duty; {
	case !s.isOwner(e): // an earlier incarnation, which the leader releases
	case h.recordless:
		s.giveUpOwnership(r, h, e.Term, protos.Release_OWNER_WITHOUT_RECORD)
	case d == nil && e.Term < h.term: // the registry was recovered from a state before another process owned it
		s.giveUpOwnership(r, h, e.Term, protos.Release_OWNER_GONE)
	case d == nil:
		s.takeOver(r, h)
	case e.Term != d.term: // the answer to its claim was lost
		s.continueInTerm(r, h)
	case versionOf(e.Version).Before(d.committed): // the registry was recovered from an earlier state
		d.committed, d.replicas = versionOf(e.Version), e.Replicas
		d.change()
	}
}

// noteHeard records the time of the latest message from a submission's owner; s.mu is held.
func (s *Service) noteHeard(h *holding, owner string) {
	if owner != h.owner {
		h.owner, h.heard = owner, time.Now()
	}
	if heard := s.config.Heard(owner); !heard.IsZero() { // zero once the transport has forgotten the owner
		h.heard = heard
	}
}

// hasRecord reports whether this process has a submission's record, rather than a copy, because it, or
// an earlier incarnation, was the owner; s.mu is held.
func (s *Service) hasRecord(h *holding) bool {
	return h.folder != "" && h.folder != s.copyName(h.plan.Id)
}

// dropUnlisted drops a copy once the registry has not listed this process as a holder for
// waitPatience; s.mu is held.
func (s *Service) dropUnlisted(r Registry, h *holding, now time.Duration) {
	switch {
	case s.leaderless != 0 || slices.Contains(h.entry.Replicas, s.config.Process):
		h.useless = 0
	case h.useless == 0:
		h.useless = now
	case now-h.useless > waitPatience:
		s.confirm(r, h, func(e *protos.RegistrySubmission, _ uint64) {
			if e != nil && !slices.Contains(e.Replicas, s.config.Process) {
				s.drop(h, "")
			}
		})
	}
}

// confirm reads the latest entry of a holding, nil without one, and the registry's number. Then it calls
// act with them, unless the holding has changed meanwhile; s.mu is held.
func (s *Service) confirm(r Registry, h *holding, act func(e *protos.RegistrySubmission, number uint64)) {
	h.asking = true
	id := h.plan.Id
	s.config.Begin(func() {
		var entry *protos.RegistrySubmission
		var number uint64
		ctx, cancel := context.WithTimeout(s.config.Stop, commandPatience)
		defer cancel()
		err := r.Read(ctx, func(state *registry.State) {
			entry, number = proto.CloneOf(state.Submission(id)), state.Cluster()
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.asking = false; err == nil && !h.ended && !h.busy {
			act(entry, number)
		}
	})
}

// reconcileEnded is reconcile for an ended submission; s.mu is held.
func (s *Service) reconcileEnded(h *holding, e *protos.RegistrySubmission, now time.Duration) {
	whole := h.plan.End != nil && h.folder == s.copyName(h.plan.Id) && h.version == versionOf(e.Version)
	switch by := e.Previous.GetName(); {
	case h.duty == nil && whole, h.duty != nil && by == s.config.Process:
		s.end(h, by)
		_ = s.writeNote(h) // it has logged its error
		if h.duty != nil {
			h.duty.over = true
			h.duty.change()
		}
	case by == s.config.Process:
		s.drop(h, by)
	case h.duty != nil || s.hasRecord(h): // the record becomes a copy until the last files arrive
		s.yield(h, by)
	case h.useless == 0:
		h.useless = now
	case now-h.useless > endPatience:
		s.drop(h, by)
	}
}

// reconcileUnknown is reconcile for a holding without an entry. Either the registry has evicted the
// submission after its end, or the submission was refused, or the registry was founded again or
// recovered from an earlier state. In the last two cases the owner, or after a while a holder, claims
// the submission; s.mu is held.
func (s *Service) reconcileUnknown(r Registry, h *holding, number uint64, now time.Duration) {
	if h.absent == 0 {
		h.absent = now
	}
	wait := waitPatience
	switch {
	case h.duty != nil:
		wait = 0
	case h.plan.Registry != number:
		wait = endPatience
	}
	if now-h.absent < wait {
		return
	}
	s.confirm(r, h, func(e *protos.RegistrySubmission, number uint64) {
		switch {
		case e != nil || h.recordless:
		case h.duty == nil && (h.plan.Registry == number || h.version.Number == 0): // ended or refused
			s.drop(h, "")
		default:
			s.claim(r, h)
		}
	})
}

// claimIfDue claims a submission without an owner once it is this holder's turn, if this holder has the
// committed version; s.mu is held.
func (s *Service) claimIfDue(r Registry, h *holding, now time.Duration) {
	switch {
	case h.recordless || h.version.Before(versionOf(h.entry.Version)) ||
		!slices.Contains(h.entry.Replicas, s.config.Process):
		h.claims = 0
		return
	case h.claims == 0:
		if h.claims = now + s.patience(h); h.claims > now {
			return
		}
	case now < h.claims:
		return
	}
	h.claims = now + stagger + s.patience(h)
	if h.noteFault == "" || s.writeNote(h) == nil { // a holder that cannot write leaves the claim to others
		s.claim(r, h)
	}
}

// patience returns the delay of this holder's claim: one stagger for each present holder that precedes
// it. Holders with the previous owner's build come first, then the order of the list decides; s.mu is
// held.
func (s *Service) patience(h *holding) time.Duration {
	owner, before := h.entry.Previous.GetName(), time.Duration(0)
	other := func(name string) bool { return h.plan.Build != "" && s.config.Build(name) != h.plan.Build }
	own := other(s.config.Process)
	earlier := true
	for _, name := range h.entry.Replicas {
		switch {
		case name == s.config.Process:
			earlier = false
		case name == owner || s.departs(name) || s.config.Gone(name, 0):
		case own && !other(name) || earlier && own == other(name):
			before += stagger
		}
	}
	return before
}

// claimCommand returns the command that claims a submission in a term.
func claimCommand(h *holding, term uint64) *protos.RegistryCommand {
	return &protos.RegistryCommand{Kind: &protos.RegistryCommand_ClaimSubmission{
		ClaimSubmission: &protos.ClaimSubmission{
			Id: h.plan.Id, Term: term, Version: h.version.message(), Replicas: h.plan.Holders,
		},
	}}
}

// claim claims a submission in the next term; s.mu is held.
func (s *Service) claim(r Registry, h *holding) {
	h.asking = true
	term := max(h.term, h.entry.GetTerm()) + 1
	command := claimCommand(h, term)
	id := h.plan.Id
	s.config.Begin(func() {
		var entry *protos.RegistrySubmission
		result, err := s.do(r, command)
		if err == nil && result.Code == protos.RegistryResult_DONE {
			entry = s.entryOf(id)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		h.asking = false
		if err != nil || h.ended || h.busy || h.recordless || entry.GetTerm() != term || !s.isOwner(entry) {
			return // poll finds who owns it
		}
		h.entry = entry
		switch d := h.duty; {
		case d == nil:
			s.takeOver(r, h)
		case !d.lost:
			s.continueInTerm(r, h)
		}
	})
}

// continueInTerm continues the ownership of a submission in the term of its entry. If another process
// may have been the owner in between, this process yields; s.mu is held.
func (s *Service) continueInTerm(r Registry, h *holding) {
	d, term := h.duty, h.entry.Term
	if term > d.term+1 && h.entry.Previous.GetName() != s.config.Process {
		s.yield(h, "")
		return
	}
	h.term, d.term, h.version.Term = term, term, term
	h.plan = proto.CloneOf(h.plan)
	h.plan.Registry = r.Status().Cluster
	_ = s.writeNote(h) // it has logged its error
	d.change()
}

// isOwner reports whether an entry names this incarnation of the process as the owner.
func (s *Service) isOwner(e *protos.RegistrySubmission) bool {
	return e.GetOwner().GetName() == s.config.Process && e.Owner.Incarnation == s.config.Incarnation
}

// takeOver starts a submission in this process, which its entry names as the owner; s.mu is held.
func (s *Service) takeOver(r Registry, h *holding) {
	e := h.entry
	if !s.isOwner(e) {
		return
	}
	before := *h
	why := s.prepare(h, e)
	h.plan.Registry = r.Status().Cluster
	h.folder = h.plan.Folder
	err := s.writeNote(h) // before the rename, which load can repeat
	if err == nil {
		if err = s.rename(before.folder, h.folder); err != nil {
			s.config.Log("submission %s: %v", h.plan.Id, err)
		}
	}
	if err != nil {
		h.folder, h.plan, h.version = before.folder, before.plan, before.version
		s.giveUpOwnership(r, h, e.Term, protos.Release_OWNER_WITHOUT_RECORD)
		return
	}
	d, plan := s.newDuty(h, e.Term), h.plan
	d.committed = versionOf(e.Version)
	s.config.Begin(func() {
		if end := s.config.Adopt(plan, d.term, why); end != nil {
			_ = s.End(s.config.Stop, plan.Id, end) // there is nothing else to be done
		}
	})
	s.supply(d)
}

// prepare updates a holding for its new owner, in the term of an entry. It returns a sentence on the
// failure of the previous owner; empty after an orderly handover; s.mu is held.
func (s *Service) prepare(h *holding, e *protos.RegistrySubmission) (why string) {
	previous := e.Previous.GetName()
	if previous != "" {
		s.noteHeard(h, previous)
	}
	h.term, h.version.Term, h.claims = e.Term, e.Term, 0
	h.plan = proto.CloneOf(h.plan)
	h.plan.Holders = e.Replicas
	h.plan.Attempts = slices.DeleteFunc(h.plan.Attempts, func(a *protos.Attempt) bool {
		left := e.Release != protos.Release_OWNER_GONE && a.Process == previous
		return !a.Unrecorded && (left || s.left[a.Process] == a.Incarnation)
	})
	switch e.Release {
	case protos.Release_OWNER_WITHOUT_RECORD:
		h.plan.Attempts = append(h.plan.Attempts, &protos.Attempt{Process: previous,
			Incarnation: e.Previous.GetIncarnation(), Unrecorded: true})
	case protos.Release_OWNER_GONE:
		if previous != s.config.Process && previous != "" {
			why = fmt.Sprintf("process %s was gone from %s on, noticed after %.1f s", previous,
				h.heard.Format(time.TimeOnly), time.Since(h.heard).Seconds())
		}
	}
	h.plan.Build = s.config.Build(s.config.Process)
	h.plan.Folder = s.vacant(h)
	return why
}

// giveUpOwnership ends this process's ownership in a term; s.mu is held.
func (s *Service) giveUpOwnership(r Registry, h *holding, term uint64, why protos.Release) {
	h.asking = true
	command := &protos.RegistryCommand{Kind: &protos.RegistryCommand_GiveUpSubmission{
		GiveUpSubmission: &protos.GiveUpSubmission{Id: h.plan.Id, Term: term, Release: why},
	}}
	s.config.Begin(func() {
		_, _ = s.do(r, command) // poll repeats it
		s.mu.Lock()
		defer s.mu.Unlock()
		h.asking = false
	})
}

// yield stops a submission that another process owns or has ended, and makes its record a copy; s.mu
// is held.
func (s *Service) yield(h *holding, to string) {
	h.busy = true
	if h.duty != nil {
		h.duty.lost = true
		h.duty.change()
	}
	id := h.plan.Id
	s.config.Begin(func() {
		s.config.Drop(id, to)
		s.mu.Lock()
		defer s.mu.Unlock()
		h.busy, h.duty = false, nil
		s.makeCopy(h)
	})
}

// makeCopy renames the folder of a record to the name of a copy. The remains of a lost record keep
// their name, so that no process resumes from them; s.mu is held.
func (s *Service) makeCopy(h *holding) {
	name, from := s.copyName(h.plan.Id), h.folder
	if h.recordless {
		from = ""
	}
	if err := s.rename(from, name); err != nil {
		s.config.Log("submission %s: %v", h.plan.Id, err)
	}
	h.folder = name
	_ = s.writeNote(h) // it has logged its error
}

// proposeDue proposes the due commands of an ownership, until another process is the owner, or the
// registry has recorded the end.
func (s *Service) proposeDue(d *duty) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !d.lost && !d.over && s.config.Stop.Err() == nil {
		command, changed := s.nextCommand(d), d.changed
		if r := s.config.Registry(); command != nil && r != nil {
			s.mu.Unlock()
			result, err := s.do(r, command)
			s.mu.Lock()
			if err == nil && s.applyResult(d, command, result) {
				continue
			}
		}
		if s.await(s.config.Stop, changed) != nil {
			return
		}
	}
}

// nextCommand returns the next command of an ownership for the registry; nil if the registry is up to
// date; s.mu is held.
func (s *Service) nextCommand(d *duty) *protos.RegistryCommand {
	h := d.of
	stored := s.stored(d)
	switch {
	case d.removed, d.ending && (stored && d.committed == h.version || s.alone(d)):
		return &protos.RegistryCommand{Kind: &protos.RegistryCommand_EndSubmission{
			EndSubmission: &protos.EndSubmission{Id: h.plan.Id, Term: d.term},
		}}
	case stored && (d.committed != h.version || !slices.Equal(d.replicas, h.plan.Holders)):
		return &protos.RegistryCommand{Kind: &protos.RegistryCommand_CommitVersion{
			CommitVersion: &protos.CommitVersion{
				Id: h.plan.Id, Term: d.term, Version: h.version.message(), Replicas: h.plan.Holders,
			},
		}}
	}
	return nil
}

// applyResult applies the result of a command, and reports whether the registry accepted the command;
// s.mu is held.
func (s *Service) applyResult(d *duty, c *protos.RegistryCommand, result *protos.RegistryResult) bool {
	h, k := d.of, c.GetCommitVersion()
	switch {
	case d.lost:
		return false
	case result.Code != protos.RegistryResult_DONE:
		d.over = d.removed // otherwise poll finds who owns it
		return false
	case k == nil:
		d.over = true
		if !h.ended {
			s.end(h, s.config.Process)
			_ = s.writeNote(h) // it has logged its error
		}
	default:
		d.committed, d.slow = versionOf(k.Version), false
		if !slices.Equal(d.replicas, k.Replicas) {
			d.replicas = k.Replicas
			s.notifyHolders(h, k.Replicas)
		}
	}
	d.change()
	return true
}

// stored reports whether another holder has the latest version; s.mu is held.
func (s *Service) stored(d *duty) bool {
	return slices.ContainsFunc(s.others(d.of.plan), func(name string) bool {
		return d.copies[name].has == d.of.version
	})
}

// alone reports whether no other holder can store copies: either the present ones are unable, or all
// have been gone for replaceAfter. Then runs go on, although their results do not survive this process;
// s.mu is held.
func (s *Service) alone(d *duty) bool {
	h := d.of
	present, long := 0, true
	for _, name := range s.others(h.plan) {
		if since, away := d.away[name]; !away || s.now()-since < replaceAfter {
			long = false
		}
		if !s.config.Gone(name, 0) && !s.departs(name) {
			present++
		}
	}
	return len(s.storing(h)) == 0 && d.next == "" && (present > 0 || long)
}

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

// waitPatience is how long a process keeps a copy that the registry gives no reason for: the owner
// may be about to make the process a holder, and this process may not know the latest state.
const waitPatience = time.Minute

// endPatience is how long a holder waits for the last files of a submission that has ended.
const endPatience = 10 * time.Second

// Work follows the registry until Config.Stop ends: it claims submissions whose owners are gone, and
// gives up those that other processes have claimed.
func (s *Service) Work() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			s.look()
		case <-s.config.Stop.Done():
			return
		}
	}
}

// look compares the holdings with the registry. The registry's leader also releases submissions whose
// owners are gone.
func (s *Service) look() {
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
	var owned []*protos.RegistrySubmission // by this process; in the leader, by any
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
		case s.isOwner(e) && s.all[e.Id] == nil: // it was refused, and its claim was granted too late
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
		if s.judge(r, h, status.Cluster, now); h.duty != nil && !h.duty.lost {
			s.mend(h, now)
		}
	}
}

// propose proposes a command about a submission, unless another one is under way. look repeats it if
// it has no effect; s.mu is held.
func (s *Service) propose(r Registry, id string, command *protos.RegistryCommand) {
	if s.proposing[id] {
		return
	}
	s.proposing[id] = true
	s.config.Begin(func() {
		_, _ = s.do(r, command) // look repeats it
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

// judge compares a holding with its entry in the registry with a number; s.mu is held.
func (s *Service) judge(r Registry, h *holding, number uint64, now time.Duration) {
	e := h.entry
	if e == nil {
		s.judgeUnknown(r, h, number, now)
		return
	}
	h.absent = 0
	owner := e.Owner.GetName()
	s.hear(h, cmp.Or(owner, e.Previous.GetName()))
	switch {
	case e.Ended:
		s.judgeEnded(h, e, now)
	case owner == s.config.Process:
		s.judgeOwn(r, h, e)
	case owner != "" && e.Term < h.term && h.plan.Registry == number: // the local state lags behind
	case owner != "":
		h.claims = 0
		if h.term = e.Term; h.duty != nil || s.hasRecord(h) {
			s.giveUp(h, owner)
			return
		}
		s.judgeUse(r, h, now)
	case h.duty != nil && e.Term > h.duty.term: // another process was the owner for a while
		s.giveUp(h, "")
	case h.duty != nil:
		s.claim(r, h)
	default:
		s.judgeUse(r, h, now)
		s.candidate(r, h, now)
	}
}

// judgeOwn compares a holding with an entry that names this process as the owner; s.mu is held.
func (s *Service) judgeOwn(r Registry, h *holding, e *protos.RegistrySubmission) {
	switch d := h.duty; {
	case !s.isOwner(e): // an earlier incarnation, which the leader releases
	case h.recordless:
		s.giveBackOwnership(r, h, e.Term, protos.Release_OWNER_WITHOUT_RECORD)
	case d == nil && e.Term < h.term: // the registry was recovered from a state before another process owned it
		s.giveBackOwnership(r, h, e.Term, protos.Release_OWNER_GONE)
	case d == nil:
		s.takeOver(r, h)
	case e.Term != d.term: // the answer to its claim was lost
		s.goOn(r, h)
	case versionOf(e.Version).Before(d.committed): // the registry was recovered from an earlier state
		d.committed, d.replicas = versionOf(e.Version), e.Replicas
		d.change()
	}
}

// hear notes when the latest owner of a submission was last heard; s.mu is held.
func (s *Service) hear(h *holding, owner string) {
	if owner != h.owner {
		h.owner, h.heard = owner, time.Now()
	}
	if heard := s.config.Heard(owner); !heard.IsZero() { // otherwise the connections to it are forgotten
		h.heard = heard
	}
}

// hasRecord reports whether what this process has of a submission is a record, because an earlier
// incarnation carried the submission out, rather than a copy; s.mu is held.
func (s *Service) hasRecord(h *holding) bool {
	return h.folder != "" && h.folder != s.copyName(h.plan.Id)
}

// judgeUse drops a copy that has been of no use for a while, though the registry has answered: this
// process is no holder; s.mu is held.
func (s *Service) judgeUse(r Registry, h *holding, now time.Duration) {
	switch {
	case s.leaderless != 0 || slices.Contains(h.entry.Replicas, s.config.Process):
		h.useless = 0
	case h.useless == 0:
		h.useless = now
	case now-h.useless > waitPatience:
		s.confirm(r, h, func(e *protos.RegistrySubmission, _ uint64) {
			if e != nil && !slices.Contains(e.Replicas, s.config.Process) {
				s.forget(h, "")
			}
		})
	}
}

// confirm reads the registry, and then acts on the latest entry of a holding, which is nil without one,
// and the registry's number, unless the holding has changed; s.mu is held.
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

// judgeEnded gives a submission up that a process has ended; s.mu is held.
func (s *Service) judgeEnded(h *holding, e *protos.RegistrySubmission, now time.Duration) {
	whole := h.plan.End != nil && h.folder == s.copyName(h.plan.Id) && h.version == versionOf(e.Version)
	switch by := e.Previous.GetName(); {
	case h.duty == nil && whole:
		s.end(h, by)
		_ = s.keep(h) // it has logged its error
	case by == s.config.Process && h.duty != nil:
		s.end(h, by)
		_ = s.keep(h) // it has logged its error
		h.duty.over = true
		h.duty.change()
	case by == s.config.Process:
		s.forget(h, by)
	case h.duty != nil || s.hasRecord(h): // the record becomes a copy, until the last files come
		s.giveUp(h, by)
	case h.useless == 0:
		h.useless = now
	case now-h.useless > endPatience:
		s.forget(h, by)
	}
}

// judgeUnknown handles a holding that the registry does not know. The registry has forgotten the
// submission long after its end, or its process was killed before it was accepted, or the registry
// was recovered from an earlier state. In the last case a holder, first of all the owner, claims the
// submission; s.mu is held.
func (s *Service) judgeUnknown(r Registry, h *holding, number uint64, now time.Duration) {
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
		case h.duty == nil && (h.plan.Registry == number || h.version.Number == 0): // it has ended, or was refused
			s.forget(h, "")
		default:
			s.claim(r, h)
		}
	})
}

// candidate claims a submission without an owner, if this holder has the committed version. Holders
// that come first claim first; s.mu is held.
func (s *Service) candidate(r Registry, h *holding, now time.Duration) {
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
	if h.noteFault == "" || s.keep(h) == nil { // a process that cannot write leaves the claim to others
		s.claim(r, h)
	}
}

// patience is how long this holder lets others claim first that are there and come before it: those
// of the owner's build before all others, then in the order of the holders; s.mu is held.
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

// claimCommand claims a submission with the version that a process has.
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
			return // look finds who owns it
		}
		h.entry = entry
		switch d := h.duty; {
		case d == nil:
			s.takeOver(r, h)
		case !d.lost:
			s.goOn(r, h)
		}
	})
}

// goOn makes this process go on with a submission in the term of its entry, or give it up if another
// process may have owned it in between; s.mu is held.
func (s *Service) goOn(r Registry, h *holding) {
	d, term := h.duty, h.entry.Term
	if term > d.term+1 && h.entry.Previous.GetName() != s.config.Process {
		s.giveUp(h, "")
		return
	}
	h.term, d.term, h.version.Term = term, term, term
	h.plan = proto.CloneOf(h.plan)
	h.plan.Registry = r.Status().Cluster
	_ = s.keep(h) // it has logged its error
	d.change()
}

// isOwner reports whether this process owns a submission, by its entry.
func (s *Service) isOwner(e *protos.RegistrySubmission) bool {
	return e.GetOwner().GetName() == s.config.Process && e.Owner.Incarnation == s.config.Incarnation
}

// takeOver makes this process carry out a submission that it owns by its entry; s.mu is held.
func (s *Service) takeOver(r Registry, h *holding) {
	e := h.entry
	if !s.isOwner(e) {
		return
	}
	before := *h
	why := s.prepare(h, e)
	h.plan.Registry = r.Status().Cluster
	h.folder = h.plan.Folder
	err := s.keep(h) // first: an earlier name is found again, see load
	if err == nil {
		if err = s.rename(before.folder, h.folder); err != nil {
			s.config.Log("submission %s: %v", h.plan.Id, err)
		}
	}
	if err != nil {
		h.folder, h.plan, h.version = before.folder, before.plan, before.version
		s.giveBackOwnership(r, h, e.Term, protos.Release_OWNER_WITHOUT_RECORD)
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

// prepare makes the plan of a holding that of its new owner, in the term of an entry. It returns what
// happened to the earlier owner; empty after an orderly handover; s.mu is held.
func (s *Service) prepare(h *holding, e *protos.RegistrySubmission) (why string) {
	previous := e.Previous.GetName()
	if previous != "" {
		s.hear(h, previous)
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

// giveBackOwnership ends the ownership of this process in a term; s.mu is held.
func (s *Service) giveBackOwnership(r Registry, h *holding, term uint64, why protos.Release) {
	h.asking = true
	command := &protos.RegistryCommand{Kind: &protos.RegistryCommand_GiveUpSubmission{
		GiveUpSubmission: &protos.GiveUpSubmission{Id: h.plan.Id, Term: term, Release: why},
	}}
	s.config.Begin(func() {
		_, _ = s.do(r, command) // look repeats it
		s.mu.Lock()
		defer s.mu.Unlock()
		h.asking = false
	})
}

// giveUp makes the record of a submission that another process carries out, or has ended, a copy; s.mu
// is held.
func (s *Service) giveUp(h *holding, to string) {
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

// makeCopy renames the folder of a record to that of a copy. The remains of a record that was handed
// over keep their name, so that no process resumes from them; s.mu is held.
func (s *Service) makeCopy(h *holding) {
	name, from := s.copyName(h.plan.Id), h.folder
	if h.recordless {
		from = ""
	}
	if err := s.rename(from, name); err != nil {
		s.config.Log("submission %s: %v", h.plan.Id, err)
	}
	h.folder = name
	_ = s.keep(h) // it has logged its error
}

// commit proposes what is due to the registry, until another process takes over or the registry knows
// that the submission has ended.
func (s *Service) commit(d *duty) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !d.lost && !d.over && s.config.Stop.Err() == nil {
		command, changed := s.dueCommand(d), d.changed
		if r := s.config.Registry(); command != nil && r != nil {
			s.mu.Unlock()
			result, err := s.do(r, command)
			s.mu.Lock()
			if err == nil && s.committed(d, command, result) {
				continue
			}
		}
		if s.await(s.config.Stop, changed) != nil {
			return
		}
	}
}

// dueCommand returns what the registry is to be told of a submission that this process owns; nil if
// it knows all; s.mu is held.
func (s *Service) dueCommand(d *duty) *protos.RegistryCommand {
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

// committed takes in the registry's answer to a command, and reports whether the registry has
// accepted the command; s.mu is held.
func (s *Service) committed(d *duty, c *protos.RegistryCommand, result *protos.RegistryResult) bool {
	h, k := d.of, c.GetCommitVersion()
	switch {
	case d.lost:
		return false
	case result.Code != protos.RegistryResult_DONE:
		d.over = d.removed // otherwise look finds who owns it
		return false
	case k == nil:
		d.over = true
		if !h.ended {
			s.end(h, s.config.Process)
			_ = s.keep(h) // it has logged its error
		}
	default:
		d.committed, d.slow = versionOf(k.Version), false
		if !slices.Equal(d.replicas, k.Replicas) {
			d.replicas = k.Replicas
			s.tellHolders(h, k.Replicas)
		}
	}
	d.change()
	return true
}

// stored reports whether another holder has the latest version of a submission; s.mu is held.
func (s *Service) stored(d *duty) bool {
	return slices.ContainsFunc(s.others(d.of.plan), func(name string) bool {
		return d.copies[name].has == d.of.version
	})
}

// alone reports whether no other holder can store copies: those that are present cannot, or all have
// been gone for long. Then the runs go on, and what finishes does not survive this process; s.mu is
// held.
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

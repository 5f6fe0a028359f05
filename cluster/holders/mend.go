package holders

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

const (
	// replaceAfter is the absence after which a holder is replaced. A process that restarts is back
	// sooner.
	replaceAfter = 10 * time.Second
	// mostFailures is the number of consecutive failed copies after which a holder is replaced, and
	// unfitFor the time for which it may not become a holder again.
	mostFailures = 5
	unfitFor     = time.Minute
)

// replaceLost replaces a lost holder by another process, once the other process has a copy; s.mu is
// held.
func (s *Service) replaceLost(h *holding, now time.Duration) {
	d := h.duty
	if d.ending {
		return
	}
	lost := s.lost(h, now)
	switch next := d.copies[d.next]; {
	case lost == "":
		d.next = ""
	case d.next == "":
		s.choose(h, now)
	case next.failed >= mostFailures || s.config.Gone(d.next, 0) || s.departs(d.next):
		next.unfit, d.next = now+unfitFor, ""
	case next.has == h.version:
		d.copies[lost].unfit = now + unfitFor
		names := slices.DeleteFunc(slices.Clone(h.plan.Holders), func(name string) bool { return name == lost })
		h.plan = proto.CloneOf(h.plan)
		names = append(names, d.next)
		h.plan.Holders, d.next = names, ""
		d.change()
	}
}

// lost returns a holder that leaves, has been gone for replaceAfter, or refuses copies; empty without
// one; s.mu is held.
func (s *Service) lost(h *holding, now time.Duration) (lost string) {
	for _, name := range s.others(h.plan) {
		since, known := h.duty.away[name]
		c, departs := h.duty.copies[name], s.departs(name)
		gone := s.config.Gone(name, 0)
		switch {
		case !gone && !departs:
			delete(h.duty.away, name)
			if known && c.why == "" {
				s.logCopies(h, "")
			}
		case !known:
			since = now
			h.duty.away[name] = now
			s.logCopies(h, "")
		}
		refuses := !gone && c.failed >= mostFailures && c.refused != 0
		if lost == "" && (departs || refuses || gone && now-since >= replaceAfter) {
			lost = name
		}
	}
	return lost
}

// choose selects the next holder, if there is a suitable process; s.mu is held.
func (s *Service) choose(h *holding, now time.Duration) {
	d := h.duty
	for _, name := range rank(h.plan.Id, s.config.Others()) {
		c := d.copies[name]
		switch {
		case slices.Contains(h.plan.Holders, name) || s.departs(name):
		case c == nil:
			c = &copyState{}
			d.copies[name], d.next = c, name
			s.config.Begin(func() { s.supplyOne(d, name, c) })
			return
		case !c.sending && now >= c.unfit:
			*c = copyState{unfit: c.unfit}
			d.next = name
			return
		}
	}
}

// notifyHolders reports the new holders of a submission; s.mu is held.
func (s *Service) notifyHolders(h *holding, names []string) {
	id := h.plan.Id
	s.config.Log("submission %s is held by %s from now on", id, strings.Join(names, ", "))
	s.config.Begin(func() { s.config.Held(id, names) })
	s.advance(h) // the plan tells the holders
}

// Leave gives up all submissions that this process owns, and announces that it leaves. It returns once
// other processes own the submissions, or when ctx ends.
func (s *Service) Leave(ctx context.Context) {
	r := s.config.Registry()
	var all []*holding
	holds := false
	s.mu.Lock()
	s.leaving = true
	for _, h := range s.all {
		holds = holds || !h.ended
		if h.plan = s.withoutOwnAttempt(h.plan); h.duty == nil || h.ended || h.busy || h.duty.lost || h.duty.ending {
			continue
		}
		if _ = s.writeNote(h); s.hasHeir(h) && r != nil { // keep has logged its error
			s.giveUpOwnership(r, h, h.duty.term, protos.Release_OWNER_LEFT)
			s.yield(h, "")
			all = append(all, h)
		}
	}
	s.mu.Unlock()
	clock := time.NewTicker(pollEvery)
	defer clock.Stop()
	for over := !holds; ; over = s.handedOver(r, all) {
		for _, name := range s.config.Others() { // repeated, because messages can be lost
			s.config.Send(name, &protos.Leaving{Incarnation: s.config.Incarnation})
		}
		if over {
			return
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
			return
		}
	}
}

// HandOver gives a submission up, because this process cannot keep the record. It reports whether
// another holder can go on. This process stays a holder without a copy until the next owner sends one.
func (s *Service) HandOver(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, r := s.all[id], s.config.Registry()
	if h == nil || r == nil || h.busy || h.ended || h.duty == nil || h.duty.lost || !s.hasCopyElsewhere(h) {
		return false
	}
	h.plan = s.withoutOwnAttempt(h.plan)
	h.recordless, h.version = true, Version{}
	s.giveUpOwnership(r, h, h.duty.term, protos.Release_OWNER_WITHOUT_RECORD)
	s.yield(h, "")
	return true
}

// storing returns the other holders that can store copies, as far as this process knows; s.mu is held.
func (s *Service) storing(h *holding) []string {
	return slices.DeleteFunc(s.others(h.plan), func(name string) bool {
		return s.departs(name) || s.config.Gone(name, 0) || h.duty != nil && h.duty.copies[name].unable
	})
}

// hasCopyElsewhere reports whether a holder that can store copies has the committed version; s.mu is
// held.
func (s *Service) hasCopyElsewhere(h *holding) bool {
	return slices.ContainsFunc(s.storing(h), func(name string) bool {
		c := h.duty.copies[name]
		return c.latest != Version{} && !c.latest.Before(h.duty.committed)
	})
}

// hasHeir reports whether another holder is present, does not leave, and can store a copy; s.mu is
// held.
func (s *Service) hasHeir(h *holding) bool { return len(s.storing(h)) > 0 }

// handedOver reports whether other processes own the submissions, or no other process can.
func (s *Service) handedOver(r Registry, all []*holding) bool {
	s.mu.Lock()
	var ids []string
	for _, h := range all {
		ids = append(ids, h.plan.Id)
	}
	s.mu.Unlock()
	owned := true
	if r == nil || r.ReadLocal(s.config.Stop, func(state *registry.State) {
		for _, id := range ids {
			e := state.Submission(id)
			owned = owned && (e == nil || e.Ended || e.Owner != nil && e.Owner.Name != s.config.Process)
		}
	}) != nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return owned || !slices.ContainsFunc(all, s.hasHeir)
}

// Receive records that another process leaves.
func (s *Service) Receive(from string, m *protos.Leaving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[from] = m.Incarnation
}

// departs reports whether another process leaves, or has left and not returned; s.mu is held.
func (s *Service) departs(process string) bool {
	life, left := s.left[process]
	if left && s.config.Gone(process, life) && !s.config.Gone(process, 0) {
		delete(s.left, process)
		return false
	}
	return left
}

// Leaves reports whether another process leaves the cluster, or has left it.
func (s *Service) Leaves(process string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.departs(process)
}

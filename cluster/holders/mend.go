package holders

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/lease"
	"github.com/gradwire/gradwire/protos"
)

const (
	// replaceAfter is how long a process is gone until it is replaced as a holder: one that starts
	// again is back by then.
	replaceAfter = 10 * time.Second
	// mostFailures is after how many failures in a row another process is to become a holder
	// instead, and unfitFor how long the first is not.
	mostFailures = 5
	unfitFor     = time.Minute
	// waitPatience is how long a process that is to become a holder waits to hear of it.
	waitPatience = time.Minute
)

// mend replaces a holder that is lost: another process gets a copy, is a holder from then on, and
// at last the one that is lost is none any longer; s.mu is held.
func (s *Service) mend(h *holding, now time.Duration) {
	d := h.duty
	if d.ending {
		return
	}
	lost, names := s.lost(h, now), h.plan.Holders
	switch next := d.copies[d.next]; {
	case len(names) > Needed:
		if others := s.others(h.plan); lost == "" { // it is back
			lost = others[len(others)-1]
		}
		d.copies[lost].unfit = now + unfitFor
		s.reform(h, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == lost }), now)
	case lost == "":
		d.next = ""
	case d.next == "":
		s.choose(h, now)
	case next.failed >= mostFailures || s.config.Gone(d.next, 0) || s.departs(d.next):
		next.unfit, d.next = now+unfitFor, ""
	case next.has == h.member.Version():
		s.reform(h, append(slices.Clip(names), d.next), now)
	}
}

// lost returns a holder that leaves, has been gone for a while, or takes no copies; s.mu is held.
func (s *Service) lost(h *holding, now time.Duration) string {
	for _, name := range s.others(h.plan) {
		since, known := h.duty.away[name]
		c := h.duty.copies[name]
		switch {
		case s.departs(name):
			return name
		case !s.config.Gone(name, 0):
			delete(h.duty.away, name)
			if known && c.why == "" {
				s.tellCopies(h, "")
			}
			if c.failed >= mostFailures && c.refused != 0 {
				return name
			}
		case !known:
			h.duty.away[name] = now
			s.tellCopies(h, "")
		case now-since >= replaceAfter:
			return name
		}
	}
	return ""
}

// choose has another process become a holder, if there is one; s.mu is held.
func (s *Service) choose(h *holding, now time.Duration) {
	d := h.duty
	for _, name := range rank(h.plan.Id, s.config.Others()) {
		c := d.copies[name]
		switch {
		case slices.Contains(h.plan.Holders, name) || s.departs(name):
		case c == nil:
			c = &held{}
			d.copies[name], d.next = c, name
			s.config.Begin(func() { s.supplyOne(d, name, c) })
			return
		case !c.sending && now >= c.unfit:
			*c = held{unfit: c.unfit}
			d.next = name
			return
		}
	}
}

// reform adds or removes a holder, as soon as that can be; s.mu is held.
func (s *Service) reform(h *holding, names []string, now time.Duration) {
	before := h.plan
	if !h.member.Change(now, names) {
		return
	}
	h.plan = proto.CloneOf(before)
	h.plan.Holders = names
	is := func(name string) bool { return slices.Contains(names, name) }
	h.plan.Former = append(slices.DeleteFunc(h.plan.Former, is), slices.DeleteFunc(slices.Clone(before.Holders), is)...)
	h.duty.next = ""
	if s.keep(h) != nil {
		h.member.Release(now) // nobody has heard of it
		return
	}
	h.duty.change()
	if len(names) > Needed {
		return
	}
	id := h.plan.Id
	s.config.Log("submission %s is held by %s from now on", id, strings.Join(names, ", "))
	s.config.Begin(func() { s.config.Held(id, names) })
}

// Leave has others go on at once with what this process carries out, and replace it where it is a
// holder. It returns when they have the leases, or when ctx ends.
func (s *Service) Leave(ctx context.Context) {
	var all []*holding
	holds := false
	s.mu.Lock()
	s.leaving = true
	asks := &protos.LeaseAsks{Leaves: s.config.Incarnation}
	for _, h := range s.all {
		holds = holds || !h.ended
		if h.plan = s.giveBack(h.plan); h.duty != nil && !h.ended && !h.busy {
			_ = s.keep(h) // it has logged its error
		}
		if h.busy || h.ended || h.duty == nil || !h.member.Leads() || !s.hasHeir(h) {
			continue
		}
		asks.Asks = append(asks.Asks, &protos.LeaseAsk{Id: h.plan.Id, Term: h.member.Release(s.now())})
		s.giveUp(h, "", "")
		all = append(all, h)
	}
	s.mu.Unlock()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for over := !holds; ; over = s.handedOver(all) {
		for _, name := range s.config.Others() { // again, since it may be lost
			s.config.Send(name, asks)
		}
		if over {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// HandOver releases a submission's lease to another holder, because this process cannot keep the
// record, and reports whether a holder can take it. This process stays a holder without a copy until
// the next owner sends one.
func (s *Service) HandOver(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil || h.busy || h.ended || h.duty == nil || !h.member.Leads() || !s.hasHeir(h) {
		return false
	}
	there := h.member.Elsewhere(s.storing(h))
	if there == (lease.Version{}) {
		return false
	}
	h.plan = s.giveBack(h.plan)
	h.member.Set(there, h.member.Members())
	h.member.Release(s.now())
	h.recordless = true
	s.giveUp(h, "", "")
	return true
}

// handOvers returns the leases that this process has released by HandOver and no known process has
// taken yet; s.mu is held.
func (s *Service) handOvers() (all []*protos.LeaseAsk) {
	for _, h := range s.all {
		if p := h.member.Promise(); h.recordless && !h.ended && p.Owner == s.config.Process && !h.member.Claims() {
			all = append(all, &protos.LeaseAsk{Id: h.plan.Id, Term: p.Term})
		}
	}
	return all
}

// hasHeir reports whether another holder is present, does not leave, and can store a copy; s.mu is
// held.
func (s *Service) hasHeir(h *holding) bool {
	return len(s.storing(h)) > 0
}

// handedOver reports whether another process has each lease that was released, if one can have it.
func (s *Service) handedOver(all []*holding) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(all, func(h *holding) bool {
		return h.member.Promise().Owner == s.config.Process && s.hasHeir(h)
	})
}

// releases notes the leases that another process releases because it leaves or cannot keep records.
func (s *Service) releases(from string, m *protos.LeaseAsks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Leaves != 0 {
		s.left[from] = m.Leaves
	}
	for _, a := range m.Asks {
		h := s.all[a.Id]
		if h == nil || h.ended {
			continue
		}
		h.member.Released(s.now(), from, a.Term)
		if h.member.Promise() == (lease.Promise{Term: a.Term, Owner: from}) {
			h.released, h.bereft = from, m.HandsOver
		}
	}
}

// departs reports whether another process leaves, or has left and is not back; s.mu is held.
func (s *Service) departs(process string) bool {
	life, left := s.left[process]
	if left && s.config.Gone(process, life) && !s.config.Gone(process, 0) {
		delete(s.left, process)
		return false
	}
	return left
}

// Leaves reports whether another process is about to leave the cluster, or has left it.
func (s *Service) Leaves(process string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.departs(process)
}

package holders

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/lease"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// Work renews the leases of this process, and takes submissions over from processes that are gone,
// until Config.Stop ends.
func (s *Service) Work() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-s.config.Stop.Done():
			return
		}
		asks, handOvers := s.look()
		for name, asks := range asks {
			s.config.Send(name, &protos.LeaseAsks{Asks: asks})
		}
		if len(handOvers) == 0 {
			continue
		}
		for _, name := range s.config.Others() {
			s.config.Send(name, &protos.LeaseAsks{Asks: handOvers, HandsOver: true})
		}
	}
}

// look acts on expired deadlines. It returns the questions for each other process, and the handovers
// to repeat to all of them, since messages can be lost.
func (s *Service) look() (asks map[string][]*protos.LeaseAsk, handOvers []*protos.LeaseAsk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asks = map[string][]*protos.LeaseAsk{}
	now := s.now()
	for _, h := range s.all {
		if h.ended {
			continue
		}
		if s.judge(h, now); h.duty != nil && h.member.Leads() && !h.busy {
			s.mend(h, now)
		}
		ask, due := h.member.Due(now)
		if !due || !s.keptPromise(h) {
			continue
		}
		m := s.message(h, ask)
		for _, name := range s.others(h.plan) {
			asks[name] = append(asks[name], m)
		}
	}
	return asks, s.handOvers()
}

// judge finds out whether this process is to carry a submission out, or no longer; s.mu is held.
func (s *Service) judge(h *holding, now time.Duration) {
	m := h.member
	switch {
	case h.busy || s.leaving:
	case h.duty != nil && !m.Leads():
		owner := m.Promise().Owner
		if owner == s.config.Process {
			owner = "" // the name of the next one has not come here yet
		}
		s.giveUp(h, owner, "")
	case h.duty == nil && m.Leads():
		s.takeOver(h)
	case m.Claims():
	case !slices.Contains(h.plan.Holders, s.config.Process):
		// The owner that offered a copy is gone, or has chosen another process.
		if !h.abstains && now-m.Until() > waitPatience {
			s.forget(h, "")
		}
	case h.recordless || h.witness || h.abstains || !m.Expired(now) || !s.free(h) || !s.attended(h):
		h.campaign, h.ahead = 0, false
	case h.campaign == 0 && !h.ahead:
		h.campaign = now + s.patience(h)
	case now >= h.campaign || h.ahead:
		if h.noteFault == "" || s.keep(h) == nil { // a holder that cannot write leaves the lease to others
			if owner := m.Promise().Owner; owner != s.config.Process {
				silence := now - m.Until() + spans.Length
				h.lost = fmt.Sprintf("process %s was gone from %s on, noticed after %.1f s", owner,
					time.Now().Add(-silence).Format(time.TimeOnly), silence.Seconds())
			}
			m.Campaign(now)
		}
		h.campaign, h.ahead = now+stagger+s.patience(h), false
	}
}

// free reports whether nobody carries a submission out, as far as is known here; s.mu is held.
func (s *Service) free(h *holding) bool {
	owner := h.member.Promise().Owner
	return h.released != "" || owner == s.config.Process || owner != "" && s.config.Gone(owner, h.life)
}

// attended reports whether a majority of the holders is there. Without one, questions would only
// raise the term; s.mu is held.
func (s *Service) attended(h *holding) bool {
	gone := 0
	for _, name := range s.others(h.plan) {
		if s.config.Gone(name, 0) {
			gone++
		}
	}
	return gone < len(h.plan.Holders)-len(h.plan.Holders)/2
}

// patience is how long this holder lets others ask first that are there and come before it: those
// of the owner's build, which can go on from its checkpoints, before all others; s.mu is held.
func (s *Service) patience(h *holding) time.Duration {
	owner, before := h.member.Promise().Owner, time.Duration(0)
	other := func(name string) bool { return h.plan.Build != "" && s.config.Build(name) != h.plan.Build }
	own := other(s.config.Process)
	earlier := true
	for _, name := range h.plan.Holders {
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

// takeOver has this process carry a submission out; s.mu is held.
func (s *Service) takeOver(h *holding) {
	m := h.member
	m.Set(lease.Version{Term: m.Promise().Term, Number: m.Version().Number}, m.Members())
	before, why := h.folder, h.lost
	if h.released != "" {
		why = ""
	}
	h.plan = proto.CloneOf(h.plan)
	h.plan.Attempts = slices.DeleteFunc(h.plan.Attempts, func(a *protos.Attempt) bool {
		return !a.Unrecorded && (a.Process == h.released || s.left[a.Process] == a.Incarnation)
	})
	if h.bereft {
		h.plan.Attempts = append(h.plan.Attempts,
			&protos.Attempt{Process: h.released, Incarnation: h.life, Unrecorded: true})
	}
	h.released, h.bereft, h.lost = "", false, ""
	h.plan.Build = s.config.Build(s.config.Process)
	h.plan.Folder = s.vacant(h)
	h.folder = h.plan.Folder
	if s.keep(h) != nil { // first: an earlier name is found again, see load
		h.folder = before
		return
	}
	if err := s.rename(before, h.folder); err != nil {
		s.config.Log("submission %s: %v", h.plan.Id, err)
	}
	s.newDuty(h)
	d, plan, term := h.duty, h.plan, m.Promise().Term
	s.config.Begin(func() {
		if end := s.config.Adopt(plan, term, why); end != nil {
			_ = s.End(s.config.Stop, plan.Id, end) // there is nothing else to be done
		}
	})
	s.supply(d)
}

// giveUp makes the record of a submission that another process carries out a copy, and forgets it
// if that one, or yet another, has brought it to its end; s.mu is held.
func (s *Service) giveUp(h *holding, to, ended string) {
	h.busy = true
	if h.duty != nil {
		h.duty.lost = true
		h.duty.change()
	}
	s.config.Begin(func() {
		s.config.Drop(h.plan.Id, to)
		s.mu.Lock()
		defer s.mu.Unlock()
		h.busy, h.duty = false, nil
		s.makeCopy(h)
		if ended != "" {
			s.forget(h, ended)
		}
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

// message is a question as it travels.
func (s *Service) message(h *holding, a lease.Ask) *protos.LeaseAsk {
	return &protos.LeaseAsk{Id: h.plan.Id, Term: a.Term, VersionTerm: a.Version.Term, VersionNumber: a.Version.Number,
		Sent: int64(a.Sent), Incarnation: s.config.Incarnation}
}

// Receive takes what another process sends about leases.
func (s *Service) Receive(from string, m proto.Message) {
	switch m := m.(type) {
	case *protos.LeaseAsks:
		if m.Leaves != 0 || m.HandsOver {
			s.releases(from, m)
			return
		}
		if answers := s.vote(from, m.Asks); len(answers) > 0 {
			s.config.Send(from, &protos.LeaseAnswers{Answers: answers})
		}
	case *protos.LeaseAnswers:
		for _, a := range m.Answers {
			s.hear(from, a)
		}
	}
}

// vote answers questions, once it is known what is held here.
func (s *Service) vote(from string, asks []*protos.LeaseAsk) (answers []*protos.LeaseAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		return nil
	}
	for _, a := range asks {
		answers = append(answers, s.voteOn(s.all[a.Id], from, a))
	}
	return answers
}

// voteOn answers a question about a holding, which is nil if it is not known; s.mu is held.
func (s *Service) voteOn(h *holding, from string, a *protos.LeaseAsk) *protos.LeaseAnswer {
	answer := &protos.LeaseAnswer{Id: a.Id, Sent: a.Sent}
	if h == nil || h.dismissed() || h.abstains {
		return answer
	}
	if !h.ended {
		v := h.member.Vote(s.now(), from, lease.Ask{Term: a.Term, Version: version(a), Sent: time.Duration(a.Sent)})
		if v.Granted {
			h.life, h.released, h.bereft, h.lost = a.Incarnation, "", false, ""
		}
		h.ahead = h.ahead || !v.Granted && version(a).Before(h.member.Version())
		if answer.Granted = v.Granted; v.Granted && !s.storePromise(h) {
			answer.Error = h.noteFault
		}
	}
	p := h.member.Promise()
	answer.Term, answer.Owner = p.Term, p.Owner
	if h.ended {
		answer.Ended, answer.Owner = true, h.by
	}
	return answer
}

// hear takes in the answer of another holder.
func (s *Service) hear(from string, a *protos.LeaseAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.all[a.Id]; h != nil {
		s.hearOf(h, from, a)
	}
}

// hearOf takes in an answer about a holding; s.mu is held.
func (s *Service) hearOf(h *holding, from string, a *protos.LeaseAnswer) {
	s.heardOfDisk(h, from, a)
	switch {
	case h.ended:
	case a.Ended:
		s.heardEnd(h, a)
	case a.Term == 0:
		if h.duty != nil && h.duty.copies[from] != nil && !h.duty.copies[from].sending {
			h.duty.resetHolder(from, h.duty.copies[from])
			h.duty.change()
		}
	default:
		h.member.Hear(s.now(), from, lease.Answer{Granted: a.Granted,
			Promise: lease.Promise{Term: a.Term, Owner: a.Owner}, Sent: time.Duration(a.Sent)})
		if h.duty != nil {
			h.duty.change()
		}
	}
}

// heardOfDisk takes note whether another holder can write its promises, and says once that it
// cannot; s.mu is held.
func (s *Service) heardOfDisk(h *holding, from string, a *protos.LeaseAnswer) {
	if a.Error == h.denied[from] {
		return
	}
	if h.denied == nil {
		h.denied = map[string]string{}
	}
	if h.denied[from] == "" {
		s.config.Log("submission %s: process %s votes from memory, since it cannot write: %s", h.plan.Id, from, a.Error)
	}
	h.denied[from] = request.Text(a.Error, request.MaxListed)
}

// heardEnd takes note that a submission has ended, with another owner or with this process; s.mu is
// held.
func (s *Service) heardEnd(h *holding, a *protos.LeaseAnswer) {
	switch {
	case h.busy || h.duty != nil && a.Owner == s.config.Process && !h.duty.ending:
		return
	case h.duty != nil && a.Owner == s.config.Process:
		s.end(h, a.Owner)
		_ = s.keep(h) // it has logged its error
		return
	case a.Owner == s.config.Process: // an earlier life of it
		s.forget(h, a.Owner)
		return
	}
	s.giveUp(h, a.Owner, a.Owner)
}

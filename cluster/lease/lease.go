// Package lease decides which one of a few members may act for all of them, though messages are
// lost and late, members pause and start again, and their clocks do not run alike. It has no clock,
// sends nothing and starts no goroutine: the time is given, and what is to be sent is returned.
//
// A candidate asks all members for a term that is new to it. A member grants a term to one
// candidate alone, and no term at all to anybody else while a grant that it has given lasts. Who
// has the grants of a majority is the owner, from when it has asked for them, for as long as they
// last less a margin. The terms are those of L. Lamport, "The part-time parliament", ACM
// Transactions on Computer Systems 16 (1998), and the time follows C. Gray and D. Cheriton,
// "Leases: an efficient fault-tolerant mechanism for distributed file cache consistency",
// Symposium on Operating Systems Principles (1989), sections 2 and 5.
//
// Members also have a version of what the owner works at, and grant no term to a candidate whose
// version is before their own. What a majority has is so what every later owner has, as in D.
// Ongaro and J. Ousterhout, "In search of an understandable consensus algorithm", USENIX Annual
// Technical Conference (2014), section 5.4.1.
//
// Who the members are is part of what they have a version of, and the latest that a member has
// heard of holds for it. The owner adds or removes one at a time, so that majorities before and
// after have a member in common, and only once a majority has a version of its own term, without
// which two owners could make changes that know nothing of each other: D. Ongaro, "Consensus:
// bridging theory and practice", dissertation, Stanford University (2014), section 4.1, and his
// message to raft-dev, "bug in single-server membership changes" (2015).
package lease

import (
	"cmp"
	"slices"
	"time"
)

// Config are the spans of time of a lease. All members must have the same.
type Config struct {
	// Length is how long a grant lasts at the member that has given it.
	Length time.Duration
	// Margin is how much earlier the owner takes it to be over. The rates of two clocks may be off
	// by a share s, one fast and one slow, as long as Margin ≥ Length · 2s ÷ (1 + s).
	Margin time.Duration
	// Renew is the time between two questions of an owner, and how long a candidate waits for
	// answers.
	Renew time.Duration
}

// Version says how much a member has of what the owner works at: of which term, and how much of it.
type Version struct{ Term, Number uint64 }

// Before reports whether a version lacks something that the other has.
func (v Version) Before(other Version) bool {
	return cmp.Or(cmp.Compare(v.Term, other.Term), cmp.Compare(v.Number, other.Number)) < 0
}

// Promise is the latest term that a member has granted, and to whom. It must outlive the member's
// process.
type Promise struct {
	Term  uint64
	Owner string
}

// Ask is what a candidate asks all other members, and an owner from time to time. Sent is when, on
// its clock.
type Ask struct {
	Term    uint64
	Version Version
	Sent    time.Duration
}

// Answer is a member's answer, with its latest promise. Sent is that of the question.
type Answer struct {
	Granted bool
	Promise Promise
	Sent    time.Duration
}

// Member is one member's end of a lease, or that of a process that was one or may become one.
// Instants are on the clock of its process; it may not be used by several goroutines at a time.
type Member struct {
	config  Config
	self    string
	members []string // as of the version
	promise Promise
	until   time.Duration // the promise is not given to others before
	version Version
	seen    uint64 // the largest term that was heard of

	claims  bool // it is candidate or owner, of the term that it has promised to itself
	won     bool
	elected uint64 // the term in which it has won
	began   time.Duration
	asked   time.Duration            // the latest question
	granted map[string]time.Duration // when that was asked which each process has granted last
	has     map[string]Version       // what each other process has
}

// New returns a member, with the latest promise and version of its earlier life, if it had one.
// Whoever had the promise may have been granted it just before that life ended.
func New(c Config, self string, members []string, p Promise, v Version, now time.Duration) *Member {
	m := &Member{config: c, self: self, members: members, promise: p, version: v, seen: p.Term}
	if p.Term > 0 {
		m.until = now + c.Length
	}
	return m
}

// Promise returns the latest one, which must be kept before it is told to anybody.
func (m *Member) Promise() Promise { return m.promise }

// Version returns what the member has.
func (m *Member) Version() Version { return m.version }

// Members returns who the members are as of the version.
func (m *Member) Members() []string { return m.members }

// Set takes note of what the member has from now on, and who the members are as of then.
func (m *Member) Set(v Version, members []string) { m.version, m.members = v, members }

// Has takes note that another process has a version.
func (m *Member) Has(name string, v Version) {
	if m.claims {
		m.has[name] = v
	}
}

// Forget takes note that another process has lost what it had and what it had promised.
func (m *Member) Forget(name string) {
	delete(m.has, name)
	delete(m.granted, name)
}

// Granted reports whether another process has granted the member's present term.
func (m *Member) Granted(name string) bool {
	_, granted := m.granted[name]
	return granted
}

// Elsewhere returns the newest version that one of some other members is known to have.
func (m *Member) Elsewhere(others []string) (newest Version) {
	for _, name := range others {
		if v := m.has[name]; newest.Before(v) {
			newest = v
		}
	}
	return newest
}

// Decided reports whether the member is the owner, and whatever comes, every later one has what
// this one has: a majority has it, and the version is of its own term.
func (m *Member) Decided(now time.Duration) bool {
	if !m.Owns(now) || m.version.Term < m.elected {
		return false
	}
	have := 0
	for _, name := range m.members {
		if name == m.self || m.has[name] == m.version {
			have++
		}
	}
	return have >= m.majority()
}

// Change adds or removes one member, with a new version. It refuses while what the owner has is not
// decided, and to remove the owner.
func (m *Member) Change(now time.Duration, members []string) bool {
	common := 0
	for _, name := range members {
		if slices.Contains(m.members, name) {
			common++
		}
	}
	if !m.Decided(now) || len(members)+len(m.members)-2*common != 1 || !slices.Contains(members, m.self) {
		return false
	}
	m.Set(Version{Term: m.promise.Term, Number: m.version.Number + 1}, members)
	return true
}

func (m *Member) majority() int { return len(m.members)/2 + 1 }

// Until returns when the latest grant that this member has given is over, or was.
func (m *Member) Until() time.Duration { return m.until }

// Expired reports whether no grant lasts that this member has given.
func (m *Member) Expired(now time.Duration) bool { return now >= m.until }

// Vote answers the question of another process. Whether it is a member is for that one to know:
// this one may not have heard of it.
func (m *Member) Vote(now time.Duration, from string, a Ask) Answer {
	granted := m.grants(now, from, &a)
	m.seen = max(m.seen, a.Term)
	if granted {
		if a.Term > m.promise.Term {
			m.giveUp(now)
			m.promise = Promise{Term: a.Term, Owner: from}
		}
		m.until = now + m.config.Length
	}
	return Answer{Granted: granted, Promise: m.promise, Sent: a.Sent}
}

func (m *Member) grants(now time.Duration, from string, a *Ask) bool {
	switch {
	case a.Term < m.promise.Term:
		return false
	case a.Term == m.promise.Term:
		return from == m.promise.Owner
	case now < m.until && from != m.promise.Owner && (!m.claims || m.won): // a candidate makes way
		return false
	}
	return !a.Version.Before(m.version)
}

// Campaign makes a member a candidate for a term of which nobody has been heard.
func (m *Member) Campaign(now time.Duration) {
	if !slices.Contains(m.members, m.self) {
		return
	}
	m.claims, m.won = true, false
	m.granted, m.has = map[string]time.Duration{}, map[string]Version{}
	m.raise(now)
}

// raise has the member ask for a larger term than all others.
func (m *Member) raise(now time.Duration) {
	m.seen = max(m.seen, m.promise.Term) + 1
	m.promise = Promise{Term: m.seen, Owner: m.self}
	m.began, m.asked = now, now-m.config.Renew
}

// Due returns the question that is to be sent to all other members now, if there is one. It must be
// called several times within Config.Renew.
func (m *Member) Due(now time.Duration) (a Ask, due bool) {
	if m.claims && !m.won && m.asked >= m.began && now-m.asked >= m.config.Renew {
		m.giveUp(now) // others may have more luck
	}
	if !m.claims || now-m.asked < m.config.Renew {
		return Ask{}, false
	}
	m.asked, m.until = now, now+m.config.Length
	m.granted[m.self] = now
	m.look(now)
	return Ask{Term: m.promise.Term, Version: m.version, Sent: now}, true
}

// look finds out whether a candidate has won.
func (m *Member) look(now time.Duration) {
	if !m.won && m.Owns(now) {
		m.won, m.elected = true, m.promise.Term
	}
}

// Hear takes in the answer of another process. An owner whose lease lasts asks for a larger term
// where another member has promised one: to a candidate that has failed, since there is one owner.
func (m *Member) Hear(now time.Duration, from string, a Answer) {
	m.seen = max(m.seen, a.Promise.Term)
	switch {
	case !m.claims:
	case a.Promise.Term > m.promise.Term && m.Owns(now):
		m.raise(now)
	case a.Promise.Term > m.promise.Term:
		m.giveUp(now)
	case a.Sent < m.began || a.Sent > now: // it is about an earlier term
	case a.Granted && a.Promise == m.promise:
		m.granted[from] = max(m.granted[from], a.Sent)
		m.look(now)
	case !a.Granted && !m.won:
		m.giveUp(now)
	}
}

// giveUp ends a claim. The promise to itself, that nobody else relies on any more, hinders no other
// candidate from then on.
func (m *Member) giveUp(now time.Duration) {
	if m.claims {
		m.claims, m.won, m.granted, m.has, m.until = false, false, nil, nil, now
	}
}

// Release ends the lease of an owner before its time. The others are to hear the term, which it
// never has again.
func (m *Member) Release(now time.Duration) (term uint64) {
	m.giveUp(now)
	return m.promise.Term
}

// Released takes note that another process has released a term.
func (m *Member) Released(now time.Duration, from string, term uint64) {
	if m.promise == (Promise{Term: term, Owner: from}) {
		m.until = min(m.until, now)
	}
}

// Claims reports whether the member is a candidate, or the owner.
func (m *Member) Claims() bool { return m.claims }

// Leads reports whether the member has become the owner, and has not heard of a later one. Its
// lease may have run out nevertheless.
func (m *Member) Leads() bool { return m.won }

// Owns reports whether the member is the owner at this instant: nobody else is.
func (m *Member) Owns(now time.Duration) bool {
	if !m.claims {
		return false
	}
	var sent []time.Duration
	for _, name := range m.members {
		if at, has := m.granted[name]; has {
			sent = append(sent, at)
		}
	}
	if len(sent) < m.majority() {
		return false
	}
	slices.Sort(sent)
	return now < sent[len(sent)-m.majority()]+m.config.Length-m.config.Margin
}

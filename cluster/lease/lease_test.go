package lease_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/lease"
)

var config = lease.Config{Length: 3 * time.Second, Margin: 500 * time.Millisecond, Renew: 700 * time.Millisecond}

// bug is a mistake that the check must find.
type bug int

const (
	none bug = iota
	forgets
	trusts
	unmarked
	hasty
	exchanges
)

// story is what happens to a few processes, of which three or four are members, drawn by chance.
type story struct {
	*rand.Rand
	bug     bug
	config  lease.Config
	now     time.Duration // the true time
	events  events
	members []*member // those that are, were or may become one
	loss    float64
	slowest time.Duration
	restful bool // whose members seldom change
	idle    bool // in which little is decided
	entries int  // drawn so far
	elected int
	changes int
	owner   string // the latest
	decided []int  // what no later owner may lack
}

// member is a process with its own clock.
type member struct {
	*lease.Member
	name   string
	log    []int         // what the versions are of; nil if it holds nothing
	rate   float64       // seconds of its clock to one
	offset time.Duration // what its clock shows at the beginning
	away   time.Duration // it does nothing before
	cut    time.Duration // nothing gets to it or from it before
	try    time.Duration // it does not ask to be owner before, on its clock
}

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func (s *story) after(d time.Duration, do func()) { heap.Push(&s.events, event{s.now + d, do}) }

func (m *member) clock(now time.Duration) time.Duration {
	return m.offset + time.Duration(m.rate*float64(now))
}

// newStory has members whose clocks are off by up to a share.
func newStory(seed uint64, off float64, b bug) *story {
	s := &story{Rand: rand.New(rand.NewPCG(seed, 7)), bug: b, config: config}
	if b == unmarked {
		s.config.Margin = 0
	}
	s.loss = []float64{0, 0.1, 0.5}[s.IntN(3)]
	s.slowest = []time.Duration{10 * time.Millisecond, time.Second, 8 * time.Second}[s.IntN(3)]
	s.restful, s.idle = s.IntN(2) == 0, s.IntN(2) == 0
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		m := &member{name: name, rate: 1 + off*(2*s.Float64()-1), offset: time.Duration(s.Int64N(int64(time.Hour)))}
		if s.IntN(2) == 0 {
			m.rate = 1 + off*float64(2*s.IntN(2)-1)
		}
		var members []string
		if i < 3 {
			members, m.log = []string{"a", "b", "c"}, []int{0}
		}
		m.Member = lease.New(s.config, name, members, lease.Promise{}, lease.Version{}, m.clock(0))
		s.members = append(s.members, m)
	}
	return s
}

// send delivers something to a process at some time, or not; one that is away gets it later.
func (s *story) send(from, to *member, do func(now time.Duration)) {
	if s.Float64() < s.loss || s.now < max(from.cut, to.cut) {
		return
	}
	late := time.Duration(s.Float64() * s.Float64() * float64(s.slowest))
	s.after(late, func() { s.reach(to, do) })
}

func (s *story) reach(to *member, do func(now time.Duration)) {
	if to.away > s.now {
		s.after(to.away-s.now, func() { s.reach(to, do) })
		return
	}
	do(to.clock(s.now))
}

// live is what a member does every now and then.
func (s *story) live(m *member) {
	defer s.after(time.Duration(50+s.IntN(100))*time.Millisecond, func() { s.live(m) })
	switch {
	case m.away > s.now:
		return
	case s.IntN(200) == 0: // it pauses, perhaps for long
		m.away = s.now + time.Duration(s.Int64N(int64(8*time.Second)))
		return
	case s.IntN(400) == 0:
		m.cut = s.now + time.Duration(s.Int64N(int64(20*time.Second)))
	case s.IntN(250) == 0: // its process ends, and begins again
		p := m.Promise()
		now := m.clock(s.now)
		if m.away = s.now + time.Duration(s.Int64N(int64(4*time.Second))); s.bug == forgets {
			p = lease.Promise{}
		}
		m.Member = lease.New(s.config, m.name, m.Members(), p, m.Version(), now)
		return
	}
	now := m.clock(s.now)
	if m.log != nil && !m.Claims() && m.Expired(now) && now >= m.try {
		m.Campaign(now)
		m.try = now + time.Duration(s.Int64N(int64(4*time.Second)))
	}
	if m.Leads() {
		s.lead(m, now)
	}
	if ask, due := m.Due(now); due {
		for _, to := range s.members {
			if to != m && slices.Contains(m.Members(), to.name) {
				s.ask(m, to, ask)
			}
		}
	}
}

// lead is what an owner does every now and then.
func (s *story) lead(m *member, now time.Duration) {
	if v := m.Version(); v.Term < m.Promise().Term {
		m.Set(lease.Version{Term: m.Promise().Term, Number: v.Number}, m.Members())
	}
	if m.Owns(now) && s.IntN(30) == 0 && (!s.idle || s.IntN(20) == 0) {
		m.Set(lease.Version{Term: m.Promise().Term, Number: m.Version().Number + 1}, m.Members())
		s.note(m)
	}
	if s.IntN(10) == 0 && (!s.restful || s.IntN(20) == 0) && s.change(m, now) {
		s.note(m)
		s.changes++
	}
	for _, to := range s.members {
		if to != m && s.IntN(6) == 0 {
			s.copyTo(m, to, now)
		}
	}
	if s.IntN(200) == 0 {
		term := m.Release(now)
		for _, to := range s.members {
			s.send(m, to, func(now time.Duration) { to.Released(now, m.name, term) })
		}
	}
}

// note adds to what an owner has.
func (s *story) note(m *member) {
	s.entries++
	m.log = append(slices.Clip(m.log), s.entries)
}

// change has an owner add a member to three, or remove one of four.
func (s *story) change(m *member, now time.Duration) bool {
	is := m.Members()
	names := slices.DeleteFunc(slices.Clone(is), func(name string) bool {
		return len(is) == 4 && name != m.name && s.IntN(3) == 0
	})
	for _, i := range s.Perm(len(s.members)) {
		if name := s.members[i].name; len(is) == 3 && len(names) == 3 && !slices.Contains(is, name) {
			names = append(names, name)
		}
	}
	next := lease.Version{Term: m.Promise().Term, Number: m.Version().Number + 1}
	switch {
	case len(names) < 3:
		return false
	case s.bug == exchanges && len(is) == 3 && m.Decided(now):
		out := slices.IndexFunc(names, func(name string) bool { return name != m.name })
		m.Set(next, slices.Delete(names, out, out+1))
		return true
	case s.bug == hasty && m.Owns(now) && len(names) != len(is):
		m.Set(next, names)
		return true
	}
	return m.Change(now, names)
}

// copyTo has another process have what the owner has; one that is no member forgets it, or is to
// become one.
func (s *story) copyTo(m, to *member, now time.Duration) {
	ask := lease.Ask{Term: m.Promise().Term, Version: m.Version(), Sent: now}
	members, log := m.Members(), m.log
	dismissed := !slices.Contains(members, to.name) && s.IntN(2) == 0
	if dismissed && !m.Decided(now) {
		return
	}
	s.send(m, to, func(now time.Duration) {
		if ask.Version.Before(to.Version()) {
			return // it was late
		}
		answer := to.Vote(now, m.name, ask)
		switch {
		case answer.Granted && dismissed:
			to.Member = lease.New(s.config, to.name, nil, to.Promise(), lease.Version{}, now)
			to.log = nil
		case answer.Granted:
			to.Set(ask.Version, members)
			to.log = log
		}
		s.send(to, m, func(now time.Duration) {
			if m.Hear(now, to.name, answer); answer.Granted && !dismissed {
				m.Has(to.name, ask.Version)
			}
		})
	})
}

func (s *story) ask(m, to *member, ask lease.Ask) {
	s.send(m, to, func(now time.Duration) {
		if to.log == nil {
			return // it knows nothing of it
		}
		answer := to.Vote(now, m.name, ask)
		s.send(to, m, func(now time.Duration) {
			if s.bug == trusts { // it counts from when the answer has come
				answer.Sent = now
			}
			m.Hear(now, to.name, answer)
		})
	})
}

// owners are those who may act now.
func (s *story) owners() (all []*member) {
	for _, m := range s.members {
		if m.Owns(m.clock(s.now)) {
			all = append(all, m)
		}
	}
	return all
}

// run lets a while pass, and returns an error as soon as there are two owners, or one that lacks
// what was decided.
func (s *story) run(until time.Duration) error {
	for _, m := range s.members {
		s.live(m)
	}
	for s.now < until {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
		now := s.owners()
		switch {
		case len(now) == 0:
			continue
		case len(now) > 1:
			return fmt.Errorf("at %v %s and %s own the lease at a time", s.now, now[0].name, now[1].name)
		}
		m := now[0]
		if len(m.log) < len(s.decided) || !slices.Equal(m.log[:len(s.decided)], s.decided) {
			return fmt.Errorf("at %v %s has %v, and %v was decided", s.now, m.name, m.log, s.decided)
		}
		if m.name != s.owner {
			s.owner = m.name
			s.elected++
		}
		if m.Decided(m.clock(s.now)) {
			s.decided = m.log
		}
	}
	return nil
}

func TestNeverTwoOwnersAndNothingDecidedIsLostWhateverHappens(t *testing.T) {
	seeds := uint64(600)
	if testing.Short() {
		seeds = 100
	}
	elected, changes, decided := 0, 0, 0
	for seed := range seeds {
		s := newStory(seed, 0.09, none)
		if err := s.run(2 * time.Minute); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		elected, changes, decided = elected+s.elected, changes+s.changes, decided+len(s.decided)
	}
	t.Logf("%d owners, %d changes of members, %d decisions in %d stories of two minutes", elected, changes, decided,
		seeds)
	if n := int(seeds); elected < 2*n || changes < 2*n || decided < 5*n {
		t.Error("too few for a check")
	}
}

// What the check would not find it could not exclude.
func TestCheckFindsMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	for name, b := range map[string]bug{
		"a member that forgets its promise when it is started again": forgets,
		"an owner that counts from when the answer has come":         trusts,
		"no margin": unmarked,
		"an owner that changes the members before it has decided anything": hasty,
		"an owner that exchanges a member at once":                         exchanges,
	} {
		found := false
		for seed := uint64(0); seed < 3000 && !found; seed++ {
			found = newStory(seed, 0.09, b).run(2*time.Minute) != nil
		}
		if !found {
			t.Errorf("%s: not found", name)
		}
	}
}

// quiet are three members whose clocks are alike, and whose messages take no time.
func quiet(versions ...lease.Version) map[string]*lease.Member {
	names := []string{"a", "b", "c"}
	all := map[string]*lease.Member{}
	for i, name := range names {
		v := lease.Version{}
		if i < len(versions) {
			v = versions[i]
		}
		all[name] = lease.New(config, name, names, lease.Promise{}, v, 0)
	}
	return all
}

// tell has a question reach some members, whose answers come back at once.
func tell(t *testing.T, all map[string]*lease.Member, now time.Duration, from string, to ...string) {
	t.Helper()
	ask, due := all[from].Due(now)
	if !due {
		t.Fatalf("nothing is due of %s at %v", from, now)
	}
	for _, name := range to {
		all[from].Hear(now, name, all[name].Vote(now, from, ask))
	}
}

func TestOwnerIsReplacedWhenItsLeaseIsOverAndHearsOfIt(t *testing.T) {
	all := quiet()
	a, b := all["a"], all["b"]
	a.Campaign(0)
	tell(t, all, 0, "a", "b")
	if end := config.Length - config.Margin; !a.Owns(end-1) || a.Owns(end) {
		t.Error("the lease does not last from the question on, less the margin")
	}
	b.Campaign(time.Second)
	if b.Vote(time.Second, "c", lease.Ask{Term: b.Promise().Term}).Granted {
		t.Error("a candidate grants another one its own term")
	}
	tell(t, all, config.Length-1, "a", "c")
	if a.Promise() != (lease.Promise{Term: 1, Owner: "a"}) || !a.Leads() || !a.Owns(config.Length) {
		t.Errorf("%+v", a.Promise())
	}
	tell(t, all, config.Length, "b", "c")
	if b.Owns(config.Length) || b.Claims() {
		t.Error("it has not given up though c has promised the term to another one")
	}
	later := 2*config.Length - 1 // when what c has granted a is over
	b.Campaign(later)
	tell(t, all, later, "b", "c")
	if !b.Owns(later) || a.Owns(later) {
		t.Errorf("the owners at %v are not b", later)
	}
	tell(t, all, later, "a", "c")
	if a.Claims() || a.Leads() {
		t.Error("a has not heard that b is the owner")
	}
}

func TestOwnerStaysOneThoughAnotherMemberHasWantedToBe(t *testing.T) {
	all := quiet()
	all["a"].Campaign(0)
	tell(t, all, 0, "a", "b", "c")
	later := config.Length / 2
	tell(t, all, later, "a", "c") // b does not hear it any more
	all["b"].Campaign(config.Length)
	tell(t, all, config.Length, "b", "c") // which refuses
	tell(t, all, config.Length+1, "a", "b", "c")
	tell(t, all, config.Length+1, "a", "b", "c")
	if p := all["b"].Promise(); !all["a"].Owns(config.Length+1) || p != (lease.Promise{Term: 3, Owner: "a"}) {
		t.Errorf("b has promised %+v", p)
	}
}

func TestMemberThatHasMoreIsNotPassedOver(t *testing.T) {
	all := quiet(lease.Version{}, lease.Version{Term: 1, Number: 3}, lease.Version{Term: 1, Number: 4})
	all["b"].Campaign(0)
	tell(t, all, 0, "b", "c")
	if all["b"].Claims() {
		t.Error("b lacks what c has, and goes on")
	}
	all["c"].Campaign(time.Second)
	tell(t, all, time.Second, "c", "b")
	if !all["c"].Leads() {
		t.Error("c has most, and is not the owner")
	}
}

func TestOwnerChangesOneMemberAtATimeOnceItHasDecidedSomething(t *testing.T) {
	all := quiet()
	a := all["a"]
	a.Campaign(0)
	tell(t, all, 0, "a", "b")
	four, version := []string{"a", "b", "c", "d"}, lease.Version{Term: 1, Number: 1}
	if a.Has("b", a.Version()); a.Change(0, four) {
		t.Error("it has a version of an earlier term")
	}
	a.Set(version, a.Members())
	if a.Change(0, four) {
		t.Error("nobody else has its version")
	}
	a.Has("b", version)
	for _, names := range [][]string{{"a", "b", "d"}, {"a", "b", "c"}, {"b", "c"}, {"a", "b", "c", "d", "e"}} {
		if a.Change(0, names) {
			t.Errorf("it has changed the members to %v", names)
		}
	}
	if !a.Change(0, four) || a.Version() != (lease.Version{Term: 1, Number: 2}) {
		t.Errorf("version %v of %v", a.Version(), a.Members())
	}
	if a.Owns(0) {
		t.Error("it owns the lease by two of four")
	}
	a.Hear(0, "d", lease.Answer{Granted: true, Promise: a.Promise()})
	a.Has("b", a.Version())
	if !a.Owns(0) || a.Decided(0) {
		t.Error("two of four have its version")
	}
	if a.Has("d", a.Version()); !a.Decided(0) {
		t.Error("three of four have its version")
	}
}

func TestLeaseThatIsReleasedIsFreeAtOnce(t *testing.T) {
	all := quiet()
	a, b, c := all["a"], all["b"], all["c"]
	a.Campaign(0)
	tell(t, all, 0, "a", "b", "c")
	term := a.Release(time.Second)
	if a.Owns(time.Second) || a.Leads() {
		t.Error("a owns what it has released")
	}
	b.Released(time.Second, "c", term)
	b.Released(time.Second, "a", term+1)
	if b.Expired(time.Second) {
		t.Error("b believes who never had the lease")
	}
	b.Released(time.Second, "a", term)
	c.Released(time.Second, "a", term)
	b.Campaign(time.Second)
	if tell(t, all, time.Second, "b", "c"); !b.Owns(time.Second) {
		t.Error("b is not the owner")
	}
}

func TestCandidateWithoutAnAnswerMakesWay(t *testing.T) {
	all := quiet()
	all["b"].Campaign(0)
	tell(t, all, 0, "b")
	if _, due := all["b"].Due(config.Renew); due || all["b"].Claims() || !all["b"].Expired(config.Renew) {
		t.Error("b is still a candidate")
	}
	all["c"].Campaign(config.Renew)
	tell(t, all, config.Renew, "c", "b") // whose term is the same
	if all["c"].Leads() {
		t.Error("b has granted one term twice")
	}
	all["c"].Campaign(2 * config.Renew)
	tell(t, all, 2*config.Renew, "c", "b")
	if !all["c"].Leads() {
		t.Error("c is not the owner")
	}
}

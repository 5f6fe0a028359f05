package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

const (
	// askEvery is how often the processes of a run are asked how it stands.
	askEvery = 500 * time.Millisecond
	// maxLooks is how many such times pass before a process that does not answer is asked again.
	maxLooks = 20
	// markPatience is how long marks may be under way before others are sent: they come behind all
	// that was sent.
	markPatience = 30 * time.Second
	// calm is how many waves must find everything as it was after all marks have arrived.
	calm = 2
	// cutWaves is how many waves must find a connection missing that the run needs.
	cutWaves = 2
	// cutPause is how long a process stays out that others do not reach.
	cutPause = 3 * time.Second
)

// watchdog watches a run of several processes, in waves: each is asked how its part stands. It
// finds out when nothing more can happen, and which processes cannot hear each other though the
// conductor hears both.
//
// A run stands still if two waves find the same counters, everybody idle, and nothing was under way
// in between. To know the latter, each process sends a mark behind all that it had sent before it
// answered the first of them, and the second comes after all marks have arrived: a variant of the
// four counters of F. Mattern, "Algorithms for distributed termination detection", Distributed
// Computing 2 (1987), section 4, that messages which a broken connection took with it do not
// confuse. Whatever the links are like, a message that is under way is waited for.
type watchdog struct {
	of    *conductor
	wave  uint64
	looks int                         // since the wave
	asked map[string]uint32           // who was, and which life of it
	over  map[string]uint64           // over which of its connections
	own   *protos.RunState            // of this process
	still *stillness                  // nil if something moves
	marks uint64                      // the latest
	why   bool                        // the next wave is the last
	cut   map[[2]string]int           // for how many waves the first one has not heard the second
	lost  map[[2]string]uint64        // messages from the first to the second, as of the latest wave
	lives map[string]uint32           // as of the latest wave
	slept int64                       // pauses of this process that are known
	known map[string]*protos.RunState // of the latest wave
}

// stillness is a state of the run in which everybody is idle.
type stillness struct {
	of    map[string][3]int64 // handled, sent and received, by process
	since time.Time
	mark  uint64 // that was sent; 0 if none was
	wave  uint64 // with which it was sent
	sent  time.Time
	calm  int // waves after the marks have arrived
}

// watchOver watches over the run until it is over.
func (c *conductor) watchOver(over <-chan struct{}) {
	if len(c.parties) == 0 {
		return
	}
	w := &watchdog{of: c, cut: map[[2]string]int{}, lost: map[[2]string]uint64{}}
	every(askEvery, over, func() {
		if c.stop.Err() == nil && !c.final.active.Load() {
			w.look()
		}
	})
}

// look judges what the processes have answered, once all have, and asks again.
func (w *watchdog) look() {
	w.recall()
	if slept := w.of.pauses.Load(); slept != w.slept {
		w.slept, w.still = slept, nil
		clear(w.cut) // the others are heard again before anybody is judged
		w.ask()
		return
	}
	states, all := w.answers()
	if w.looks++; !all && w.looks < maxLooks && !w.cutOff() {
		return
	}
	if !all || states == nil {
		w.still = nil
	} else {
		w.known = states
		w.judgeConnections()
		w.judgeStillness()
	}
	w.ask()
}

// answers are those to the present wave; nil if there is none yet, or who takes part has changed.
// All says that nobody is waited for.
func (w *watchdog) answers() (states map[string]*protos.RunState, all bool) {
	if w.own == nil {
		return nil, true
	}
	states = map[string]*protos.RunState{w.of.process.config.Name: w.own}
	now := w.party()
	if !maps.Equal(now, w.asked) {
		return nil, true
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for name := range now {
		s := w.of.parties[name].state
		if s == nil || s.Wave != w.wave || s.Lives != now[name] {
			return nil, false
		}
		states[name] = s
	}
	return states, true
}

// cutOff reports whether a process has reconnected since it was asked, and so may not have heard
// the question.
func (w *watchdog) cutOff() bool {
	for name, connection := range w.over {
		if peer, _ := w.of.process.node.Peer(name); peer.Connected && peer.Connections > connection {
			return true
		}
	}
	return false
}

// party are the other processes that take part now, and which life of each.
func (w *watchdog) party() map[string]uint32 {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	in := map[string]uint32{}
	for name, q := range w.of.parties {
		if q.in() {
			in[name] = q.lives
		}
	}
	return in
}

// ask begins a wave.
func (w *watchdog) ask() {
	w.wave++
	w.looks = 0
	m := &protos.AskRun{Wave: w.wave, Why: w.why}
	if s := w.still; s != nil && s.mark == 0 {
		w.marks++
		s.mark, s.wave, s.sent = w.marks, w.wave, time.Now()
		m.Mark = s.mark
	}
	w.asked, w.over = w.party(), map[string]uint64{}
	for _, name := range slices.Sorted(maps.Keys(w.asked)) {
		peer, _ := w.of.process.node.Peer(name)
		w.over[name] = peer.Connections
		w.of.process.report(name, w.of.Number(), m)
	}
	w.own = w.of.state(m)
}

// recall has processes that are out, though connected, place their nodes again.
func (w *watchdog) recall() {
	c := w.of
	c.mu.Lock()
	var ready []string
	for name, q := range c.parties {
		if q.err != nil && q.result == nil && time.Now().After(q.again) && c.Up(name) {
			ready = append(ready, name)
			q.again = time.Now().Add(refusePause)
		}
	}
	c.mu.Unlock()
	for _, name := range ready {
		c.process.begin(func() { c.back(name) })
	}
}

// complaint is what is wrong between two processes of the run.
type complaint struct {
	by, about string
	lost      uint64 // messages to the second that were lost; 0 if it is not heard of
}

// judgeConnections takes a process out of the run that another one does not hear, or that has
// missed messages of another one that had given it up for a time: it has to begin again. Who has
// answered has heard the conductor, whatever it still believed then: the conductor may have been
// paused until it asked.
func (w *watchdog) judgeConnections() {
	lives, own := w.party(), w.of.process.config.Name
	lives[own] = 0
	var complaints []complaint
	for _, by := range slices.Sorted(maps.Keys(w.known)) {
		for _, peer := range w.known[by].Peers {
			pair := [2]string{by, peer.Name}
			before := w.lost[pair]
			w.lost[pair] = peer.Lost
			if !w.same(lives, by) || !w.same(lives, peer.Name) || peer.Up || by == own || peer.Name == own {
				w.cut[pair] = 0
			} else {
				w.cut[pair]++
			}
			switch {
			case !w.same(lives, by) || !w.same(lives, peer.Name):
			case w.cut[pair] >= cutWaves:
				complaints = append(complaints, complaint{by: by, about: peer.Name})
			case peer.Lost > before:
				complaints = append(complaints, complaint{by, peer.Name, peer.Lost - before})
			}
		}
	}
	w.lives = lives
	w.settle(complaints)
}

// same reports whether a process takes part, and did so in the wave before in the same life.
func (w *watchdog) same(lives map[string]uint32, name string) bool {
	before, was := w.lives[name]
	now, is := lives[name]
	return was && is && before == now
}

// settle takes out the process that made or drew the most complaints; among equals, the last by
// name. It never takes out the conductor or a process that the run needs. The next wave shows who
// is left.
func (w *watchdog) settle(complaints []complaint) {
	count := map[string]int{}
	for _, c := range complaints {
		for _, name := range []string{c.by, c.about} {
			if name != w.of.process.config.Name && w.of.needed(name) == "" {
				count[name]++
			}
		}
	}
	goes := ""
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if goes == "" || count[name] >= count[goes] {
			goes = name
		}
	}
	for _, c := range complaints {
		switch {
		case goes == "" && c.lost > 0:
			what := fmt.Sprintf("saw %d messages from %s to %s lost with their connection, and the run can do without "+
				"neither: nodes that wait for them wait for good", c.lost, c.by, c.about)
			w.of.history.Add(w.of.now(), actors.Coordinator, what, record.ToAll)
		case c.by != goes && c.about != goes:
		case c.lost > 0:
			w.of.gone(goes, fmt.Sprintf("%d messages from %s to %s were lost when their connection broke", c.lost, c.by,
				c.about), 0)
			return
		default:
			w.of.gone(goes, fmt.Sprintf("%s does not hear %s", c.by, c.about), cutPause)
			return
		}
	}
}

// judgeStillness ends the run if it stands still. Between two waves that find everybody idle and
// the counters as they were nothing has moved, whatever was computed to look at models in between.
func (w *watchdog) judgeStillness() {
	c := w.of
	if c.some(func(q *party) bool { return q.result != nil }) { // its part has ended
		return
	}
	counters := map[string][3]int64{}
	idle := true
	for name, s := range w.known {
		idle = idle && s.Idle
		counters[name] = [3]int64{s.Handled, s.Sent, s.Received}
	}
	switch s := w.still; {
	case s == nil || !maps.Equal(s.of, counters):
		w.still, w.why, c.stalled = nil, false, 0
		if idle {
			w.still = &stillness{of: counters, since: time.Now()}
		}
	case !idle:
		if w.why = false; s.wave == w.wave {
			s.mark = 0 // they must come behind what an idle process has sent
		}
	case w.why:
		w.why = false
		c.end(w.standstill())
	case s.mark == 0:
	case !w.arrived(s.mark):
		if time.Since(s.sent) > markPatience {
			s.mark = 0 // they were lost
		}
	case s.calm < calm:
		s.calm++
	case c.stage.Deployment.Bounded:
		c.stalled = cmp.Or(c.stalled, c.now())
	default:
		mayReturn := c.some(func(q *party) bool { return !q.in() }) // and set the run going again
		w.why = !mayReturn || time.Since(s.since) > c.process.config.Absence
	}
}

// arrived reports whether the marks of all processes have arrived at all others.
func (w *watchdog) arrived(mark uint64) bool {
	for _, s := range w.known {
		for _, peer := range s.Peers {
			if _, in := w.known[peer.Name]; in && peer.Mark != mark {
				return false
			}
		}
	}
	return true
}

// standstill is the error of a run in which nothing is left to happen.
func (w *watchdog) standstill() error {
	c := w.of
	waits := map[int]string{}
	losses := ""
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		s := w.known[name]
		losses += s.Losses
		for node, cause := range s.Waits {
			waits[int(node)] = cause
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names {
		if err := c.parties[name].err; err != nil {
			losses += fmt.Sprintf("; without process %s: %v", name, err)
		}
	}
	return c.stage.Deployment.Standstill(c.now(), waits, losses)
}

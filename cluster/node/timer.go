package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/journal"
	"github.com/gradwire/gradwire/cluster/record"
)

const (
	// pulseEvery is how often a conductor looks whether it runs.
	pulseEvery = 250 * time.Millisecond
	// pausedAfter is how long this process has not run before that counts as a pause: longer than a
	// busy machine takes to let it go on, and than others take to notice that nothing is heard of
	// it.
	pausedAfter = 2 * time.Second
	// silence is after which a process counts as silent.
	silence = 1500 * time.Millisecond
	// endPatience is how long a run may take to end that its time bounds: for as long its last
	// models are waited for.
	endPatience = 20 * time.Second
	// endForced is how long it may take from then on, with the models that are there.
	endForced = 2 * time.Second
)

// errUnended is why a run has failed that did not end at its time.
var errUnended = errors.New("the run did not end when its time was over")

// timer notices when the process that conducts a run was paused, and ends a run that does not end
// when its time is over.
type timer struct {
	of        *conductor
	last      time.Time
	overdue   time.Duration // since the run's time is over, without pauses
	concluded bool
}

func newTimer(c *conductor) *timer { return &timer{of: c, last: time.Now()} }

// every calls do at intervals until over is closed.
func every(pause time.Duration, over <-chan struct{}, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			do()
		}
	}
}

// look notices a pause, and returns how long this process has run since the look before.
func (t *timer) look() time.Duration {
	now := time.Now()
	ran, day := now.Sub(t.last), now.Round(0).Sub(t.last.Round(0))
	t.last = now
	return t.of.judgePause(ran, day)
}

// judgePause gets how far two clocks have gone since the last look: the run's clock, and the clock
// of the day, which goes on while the system sleeps. It returns the time in which this process ran.
func (c *conductor) judgePause(ran, day time.Duration) time.Duration {
	switch {
	case ran >= pausedAfter:
		c.paused(c.now()-ran, "was paused for "+journal.Seconds(ran))
	case day-ran >= pausedAfter:
		c.paused(c.now()-ran, "slept for "+journal.Seconds(day-ran)+", or its clock was set forward")
	default:
		return ran
	}
	return 0
}

// hurry ends a run that has not ended by itself: first with the models that are there, then
// without. Once the coordinator has all models that it has asked for, and has halted the nodes,
// only verdicts are left, which take as long as they take.
func (t *timer) hurry(ran time.Duration) {
	c := t.of
	if c.bound == 0 || c.now() < c.bound || len(c.parties) == 0 || c.halted.Err() != nil {
		return
	}
	t.overdue += ran
	switch {
	case t.overdue >= endPatience+endForced:
		c.end(fmt.Errorf("%w, at %s: %s", errUnended, journal.Seconds(c.bound), c.missing()))
	case t.overdue >= endPatience && !t.concluded:
		t.concluded = true
		c.conclude()
	}
}

// paused takes note that this process did not run for a while.
func (c *conductor) paused(from time.Duration, how string) {
	to := c.now()
	from = max(from, 0)
	what := fmt.Sprintf("evaluated nothing from %s to %s, because process %s, which conducts the run, %s",
		journal.Seconds(from), journal.Seconds(to), c.process.config.Name, how)
	if c.bound > 0 && to > c.bound {
		what += fmt.Sprintf("; the run was to end at %s", journal.Seconds(c.bound))
	}
	c.pauses.Add(1)
	if c.interrupted(to); c.halted.Err() != nil {
		c.slept = append(c.slept, from)
	}
	c.history.Add(from, actors.Coordinator, what, record.ToTimes)
}

// interrupted takes note that nodes, or all without any, make no steps now for a reason that is
// known, while they are to make any: who stood still is judged by what was when they were halted.
func (c *conductor) interrupted(at time.Duration, nodes ...int) {
	if c.halted.Err() == nil {
		c.stage.Collector.Interrupted(at, nodes...)
	}
}

// excuse takes note that nodes made no steps before they were halted while this process was paused,
// which it noticed only afterwards.
func (c *conductor) excuse(halted time.Duration) {
	if slices.ContainsFunc(c.slept, func(from time.Duration) bool { return from < halted }) {
		c.stage.Collector.Interrupted(halted)
	}
}

// conclude takes all nodes of other processes out of the view: the coordinator stops waiting for
// their models, and ends the run with the verdicts that it has. Processes that are not heard of are
// given up.
func (c *conductor) conclude() {
	what := fmt.Sprintf("waited %s for the models with which the run was to end at %s: %s",
		journal.Seconds(endPatience), journal.Seconds(c.bound), c.missing())
	c.history.Add(c.now(), actors.Coordinator, what, record.ToAll)
	for _, name := range c.remaining() {
		if c.Up(name) {
			c.change(name, false)
		} else {
			c.gone(name, "nothing was heard of it when the run was to end", leavePause)
		}
	}
}

// missing says which processes of the run are not heard of.
func (c *conductor) missing() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range c.names {
		q := c.parties[name]
		nodes := strings.Join(c.namesOf(name), ", ")
		switch {
		case q.err != nil:
			all = append(all, fmt.Sprintf("without process %s, where %s lived: %v", name, nodes, q.err))
		case q.result == nil && !c.Up(name):
			all = append(all, fmt.Sprintf("nothing is heard of process %s, where %s lives", name, nodes))
		}
	}
	if all == nil {
		return "all processes are there"
	}
	return strings.Join(all, "; ")
}

// namesOf are the names of the nodes that live in a process.
func (c *conductor) namesOf(name string) (names []string) {
	for _, node := range c.NodesOf(name) {
		names = append(names, c.stage.Names[node])
	}
	return names
}

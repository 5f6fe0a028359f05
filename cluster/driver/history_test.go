package driver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

var (
	server = train.Role{Name: "server", Holds: true}
	worker = train.Role{Name: "worker", Trains: true}
	site   = train.Role{Name: "site"}
	peer   = train.Role{Name: "peer", Trains: true, Holds: true}
)

func incident(at float64, node, what string) record.Incident {
	return record.Incident{At: at, Node: node, What: what}
}

// historyOf is that of a run of nodes with these roles, named a, b, ….
func historyOf(roles ...train.Role) *history {
	d := &world.Deployment{}
	for i, r := range roles {
		d.Nodes = append(d.Nodes, world.Node{Name: string(rune('a' + i)), Role: r.Name})
	}
	return newHistory(d, roles, func(string, ...any) {})
}

// What a node's absence costs follows from its role and from who else has a model.
func TestLossOfAProcessCostsWhatNobodyElseHas(t *testing.T) {
	const (
		s       = time.Second
		pKilled = "its process P was gone from 2.0 s on (killed)"
		pLeft   = "its process P was gone from 2.0 s on (left)"
		qKilled = "its process Q was gone from 3.0 s on (killed)"
	)
	for name, x := range map[string]struct {
		roles    []train.Role
		happens  func(h *history)
		degraded bool
		fails    bool
		told     []record.Incident
	}{
		"worker is back": {
			roles:   []train.Role{server, worker},
			happens: func(h *history) { h.gone(2*s, "P", "killed", []int{1}); h.back(3*s, []int{1}) },
			told:    []record.Incident{incident(2, "b", "began again at 3.0 s: "+pKilled)},
		},
		"worker stays away": {
			roles:   []train.Role{server, worker},
			happens: func(h *history) { h.gone(2*s, "P", "killed", []int{1}) },
			told:    []record.Incident{incident(2, "b", "was gone from 2.0 s on with its process P (killed)")},
		},
		"server is back": {
			roles:    []train.Role{server, worker},
			happens:  func(h *history) { h.gone(2*s, "P", "left", []int{0}); h.back(3*s, []int{0}) },
			degraded: true,
			told: []record.Incident{
				incident(2, "a", "lost its model: "+pLeft+"; it began again from the initial model at 3.0 s"),
			},
		},
		"server stays away": {
			roles:    []train.Role{server, worker},
			happens:  func(h *history) { h.gone(2*s, "P", "left", []int{0}) },
			degraded: true, fails: true,
			told: []record.Incident{incident(2, "a", "was gone from 2.0 s on with its process P (left)")},
		},
		"one of two servers stays away": {
			roles:    []train.Role{server, server, worker},
			happens:  func(h *history) { h.gone(2*s, "P", "left", []int{0}) },
			degraded: true,
			told:     []record.Incident{incident(2, "a", "was gone from 2.0 s on with its process P (left)")},
		},
		"site without a model is back": {
			roles:    []train.Role{server, site, worker},
			happens:  func(h *history) { h.gone(2*s, "P", "left", []int{1}); h.back(3*s, []int{1}) },
			degraded: true,
			told: []record.Incident{
				incident(2, "b", "lost what it alone knew: "+pLeft+"; it began again at 3.0 s"),
			},
		},
		"peer joins from another": {
			roles:   []train.Role{peer, peer},
			happens: func(h *history) { h.gone(2*s, "P", "killed", []int{1}); h.back(3*s, []int{1}) },
			told: []record.Incident{
				incident(2, "b", "began again at 3.0 s from another node's model: "+pKilled),
			},
		},
		"both peers of the only process are back": {
			roles:    []train.Role{peer, peer},
			happens:  func(h *history) { h.gone(2*s, "P", "killed", []int{0, 1}); h.back(3*s, []int{0, 1}) },
			degraded: true,
			told: []record.Incident{
				incident(2, "a", "lost its model: "+pKilled+"; it began again from the initial model at 3.0 s"),
				incident(2, "b", "lost its model: "+pKilled+"; it began again from the initial model at 3.0 s"),
			},
		},
		"first peer is back when the second has gone": {
			roles: []train.Role{peer, peer},
			happens: func(h *history) {
				h.gone(2*s, "P", "killed", []int{0})
				h.gone(3*s, "Q", "killed", []int{1})
				h.back(4*s, []int{0})
				h.back(5*s, []int{1})
			},
			degraded: true,
			told: []record.Incident{
				incident(2, "a", "lost its model: "+pKilled+"; it began again from the initial model at 4.0 s"),
				incident(3, "b", "lost its model: "+qKilled+"; it began again from another node's model at 5.0 s"),
			},
		},
		"all peers stay away": {
			roles: []train.Role{peer, peer},
			happens: func(h *history) {
				h.gone(2*s, "P", "killed", []int{0})
				h.gone(3*s, "Q", "killed", []int{1})
			},
			degraded: true, fails: true,
			told: []record.Incident{
				incident(2, "a", "was gone from 2.0 s on with its process P (killed)"),
				incident(3, "b", "was gone from 3.0 s on with its process Q (killed)"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(x.roles...)
			x.happens(h)
			told, degraded, err := h.close(10 * s)
			fails := errors.Is(err, errNoModel)
			if diff := cmp.Diff(x.told, told); diff != "" || degraded != x.degraded || fails != x.fails {
				t.Errorf("degraded: %v, error: %v\n%s", degraded, err, diff)
			}
		})
	}
}

func TestNodeThatTheScheduleHasTakenOutLosesNothingWithItsProcess(t *testing.T) {
	h := historyOf(peer, peer)
	h.deployment.Schedule = []world.NodeChange{{At: time.Second, Node: 1, Do: world.Leave}}
	if !h.alone(2*time.Second, []int{0}) || h.alone(0, []int{0}) || h.alone(2*time.Second, []int{1}) {
		t.Error("from the second's departure on the first alone has a model")
	}
	h.gone(2*time.Second, "P", "killed", []int{1})
	if told, degraded, err := h.close(3 * time.Second); len(told) > 0 || degraded || err != nil {
		t.Errorf("%v, %v, %v", told, degraded, err)
	}
}

func TestNodeStandsStillThatWaitsTenTimesLongerThanItEverDid(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, x := range []struct {
		p       pace
		at      time.Duration
		longest time.Duration // of any node
		lost    bool
		want    bool
	}{
		{p: pace{last: 5 * s, longest: 100 * ms, count: 9, waited: true}, at: 6001 * ms, want: true},
		{p: pace{last: 5 * s, longest: 100 * ms, count: 9}, at: 6001 * ms, want: false}, // it has shown no exchange
		{p: pace{last: 5 * s, longest: 100 * ms, count: 9}, at: 6001 * ms, lost: true, want: true},
		{p: pace{last: 5 * s, longest: 100 * ms, count: 9, waited: true}, at: 6 * s, longest: s, want: false},
		{p: pace{last: 5 * s, longest: ms, count: 9, waited: true}, at: 5900 * ms, lost: true, want: false},
		{p: pace{last: 5 * s, longest: s, count: 9, waited: true}, at: 14 * s, lost: true, want: false},
		{p: pace{last: 5 * s, count: 1}, at: 8 * s, longest: 200 * ms, lost: true, want: true},
		{p: pace{last: 5 * s, count: 1}, at: 8 * s, longest: s, lost: true, want: false},
		{p: pace{}, at: 2 * s, lost: true, want: true},
		{p: pace{}, at: 2 * s, want: false},
	} {
		if got := x.p.still(x.at, x.longest, x.lost); got != x.want {
			t.Errorf("%+v at %v, longest of any %v, lost %v: %v", x.p, x.at, x.longest, x.lost, got)
		}
	}
}

func TestTimeInWhichANodeIsAwayIsNoneBetweenItsSteps(t *testing.T) {
	all := steps{}
	step := func(at time.Duration) { all.take(&gathered{at, 3, actors.Event{Kind: actors.StepDone}}) }
	step(time.Second)
	step(2 * time.Second)
	all.interrupt(4*time.Second, 3)
	all.interrupt(9*time.Second, 3)
	all.interrupt(90*time.Second, 2)
	step(10 * time.Second)
	step(12 * time.Second)
	if p := all[3]; p.longest != 2*time.Second || p.last != 12*time.Second || p.count != 2 {
		t.Errorf("%+v", p)
	}
}

// timed is a conductor that knows no time but 0, of a run that has not begun.
func timed(t *testing.T) *conductor {
	t.Helper()
	p := &process{config: NodeConfig{Name: "a"}}
	p.stop, p.halt = context.WithCancelCause(t.Context())
	t.Cleanup(func() { p.halt(nil) })
	c := p.newConductor(&submission{process: p}, &protos.PlaceRun{})
	c.history = historyOf(peer)
	c.deployment = c.history.deployment
	c.events = newGatherer(&observed{}, c.now, nil)
	return c
}

func TestPauseIsNoticedByBothClocks(t *testing.T) {
	const s = time.Second
	for name, x := range map[string]struct {
		ran, day time.Duration
		want     string
	}{
		"none":          {ran: s, day: s},
		"day set back":  {ran: s, day: -time.Hour},
		"stopped":       {ran: 20 * s, day: 20 * s, want: ", was paused for 20.0 s"},
		"asleep":        {ran: s, day: 21 * s, want: ", slept for 20.0 s, or its clock was set forward"},
		"stopped since": {ran: 20 * s, day: 50 * s, want: ", was paused for 20.0 s"},
	} {
		t.Run(name, func(t *testing.T) {
			c := timed(t)
			ran := c.judgePause(x.ran, x.day)
			told, degraded, _ := c.history.close(0)
			if x.want == "" {
				if len(told) > 0 || degraded || ran != x.ran || c.pauses.Load() != 0 {
					t.Errorf("ran %v, %v", ran, told)
				}
				return
			}
			if ran != 0 || !degraded || c.pauses.Load() != 1 {
				t.Errorf("ran %v, degraded: %v, %d pauses", ran, degraded, c.pauses.Load())
			}
			if len(told) != 1 || told[0].Node != actors.Coordinator || !strings.Contains(told[0].What, x.want) {
				t.Errorf("told: %v", told)
			}
		})
	}
}

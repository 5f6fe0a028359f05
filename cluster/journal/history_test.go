package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/record"
)

var (
	server = train.Role{Name: "server", Holds: true}
	copied = train.Role{Name: "server", Holds: true, Copied: true}
	worker = train.Role{Name: "worker", Trains: true}
	site   = train.Role{Name: "site"}
	peer   = train.Role{Name: "peer", Trains: true, Holds: true}
)

func incident(at float64, node, what string) record.Incident {
	return record.Incident{At: at, Node: node, What: what}
}

// harm is an incident by which something was lost.
func harm(at float64, node, what string) record.Incident {
	return record.Incident{At: at, Node: node, What: what, Harm: record.ToAll}
}

// historyOf returns the history of a run of nodes with these roles, named a, b, ….
func historyOf(roles ...train.Role) *History {
	d := &world.Deployment{}
	for i, r := range roles {
		d.Nodes = append(d.Nodes, world.Node{Name: string(rune('a' + i)), Role: r.Name})
	}
	return NewHistory(d, roles, func(string, ...any) {})
}

const (
	pKilled = "its process P was gone from 2.0 s on (killed)"
	pLeft   = "its process P was gone from 2.0 s on (left)"
	qKilled = "its process Q was gone from 3.0 s on (killed)"
)

// losses are what a node's absence costs, which follows from its role and from who else has a
// model.
var losses = map[string]struct {
	roles    []train.Role
	happens  func(h *History)
	degraded bool
	fails    bool
	told     []record.Incident
}{
	"silent worker is back": {
		roles: []train.Role{server, worker},
		happens: func(h *History) {
			h.Gone(4*time.Second, "P", "silent", []int{1}, 1800*time.Millisecond)
			h.Back(5*time.Second, []int{1})
		},
		told: []record.Incident{incident(2.2, "b",
			"began again at 5.0 s: its process P was gone from 2.2 s on, noticed after 1.8 s (silent)")},
	},
	"worker is back": {
		roles:   []train.Role{server, worker},
		happens: func(h *History) { h.Gone(2*time.Second, "P", "killed", []int{1}, 0); h.Back(3*time.Second, []int{1}) },
		told:    []record.Incident{incident(2, "b", "began again at 3.0 s: "+pKilled)},
	},
	"worker stays away": {
		roles:   []train.Role{server, worker},
		happens: func(h *History) { h.Gone(2*time.Second, "P", "killed", []int{1}, 0) },
		told:    []record.Incident{incident(2, "b", "was gone from 2.0 s on with its process P (killed)")},
	},
	"server is back": {
		roles:    []train.Role{server, worker},
		happens:  func(h *History) { h.Gone(2*time.Second, "P", "left", []int{0}, 0); h.Back(3*time.Second, []int{0}) },
		degraded: true,
		told: []record.Incident{
			harm(2, "a", "lost its model: "+pLeft+"; it began again from the initial model at 3.0 s"),
		},
	},
	"server stays away": {
		roles:    []train.Role{server, worker},
		happens:  func(h *History) { h.Gone(2*time.Second, "P", "left", []int{0}, 0) },
		degraded: true, fails: true,
		told: []record.Incident{harm(2, "a", "was gone from 2.0 s on with its process P (left)")},
	},
	"one of two servers stays away": {
		roles:    []train.Role{server, server, worker},
		happens:  func(h *History) { h.Gone(2*time.Second, "P", "left", []int{0}, 0) },
		degraded: true,
		told:     []record.Incident{harm(2, "a", "was gone from 2.0 s on with its process P (left)")},
	},
	"one of two servers with copies is back, and crashes for good": {
		roles: []train.Role{copied, copied, worker},
		happens: func(h *History) {
			h.Gone(2*time.Second, "P", "killed", []int{0}, 0)
			h.Back(3*time.Second, []int{0})
			h.Gone(4*time.Second, "P", "killed", []int{0}, 0)
		},
		told: []record.Incident{
			incident(2, "a", "others had copies of what it held: "+pKilled+"; it is back at 3.0 s"),
			incident(4, "a", "was gone from 4.0 s on with its process P (killed)"),
		},
	},
	"the last server with copies is gone": {
		roles: []train.Role{copied, copied, worker},
		happens: func(h *History) {
			h.Gone(2*time.Second, "P", "killed", []int{0}, 0)
			h.Gone(3*time.Second, "Q", "killed", []int{1}, 0)
		},
		degraded: true, fails: true,
		told: []record.Incident{
			incident(2, "a", "was gone from 2.0 s on with its process P (killed)"),
			harm(3, "b", "was gone from 3.0 s on with its process Q (killed)"),
		},
	},
	"site without a model is back": {
		roles:    []train.Role{server, site, worker},
		happens:  func(h *History) { h.Gone(2*time.Second, "P", "left", []int{1}, 0); h.Back(3*time.Second, []int{1}) },
		degraded: true,
		told: []record.Incident{
			harm(2, "b", "lost what it alone knew: "+pLeft+"; it began again at 3.0 s"),
		},
	},
	"peer joins from another": {
		roles:   []train.Role{peer, peer},
		happens: func(h *History) { h.Gone(2*time.Second, "P", "killed", []int{1}, 0); h.Back(3*time.Second, []int{1}) },
		told: []record.Incident{
			incident(2, "b", "began again at 3.0 s from another node's model: "+pKilled),
		},
	},
	"both peers of the only process are back": {
		roles: []train.Role{peer, peer},
		happens: func(h *History) {
			h.Gone(2*time.Second, "P", "killed", []int{0, 1}, 0)
			h.Back(3*time.Second, []int{0, 1})
		},
		degraded: true,
		told: []record.Incident{
			harm(2, "a", "lost its model: "+pKilled+"; it began again from the initial model at 3.0 s"),
			harm(2, "b", "lost its model: "+pKilled+"; it began again from the initial model at 3.0 s"),
		},
	},
	"first peer is back when the second has gone": {
		roles: []train.Role{peer, peer},
		happens: func(h *History) {
			h.Gone(2*time.Second, "P", "killed", []int{0}, 0)
			h.Gone(3*time.Second, "Q", "killed", []int{1}, 0)
			h.Back(4*time.Second, []int{0})
			h.Back(5*time.Second, []int{1})
		},
		degraded: true,
		told: []record.Incident{
			harm(2, "a", "lost its model: "+pKilled+"; it began again from the initial model at 4.0 s"),
			harm(3, "b", "lost its model: "+qKilled+"; it began again from another node's model at 5.0 s"),
		},
	},
	"all peers stay away": {
		roles: []train.Role{peer, peer},
		happens: func(h *History) {
			h.Gone(2*time.Second, "P", "killed", []int{0}, 0)
			h.Gone(3*time.Second, "Q", "killed", []int{1}, 0)
		},
		degraded: true, fails: true,
		told: []record.Incident{
			incident(2, "a", "was gone from 2.0 s on with its process P (killed)"),
			harm(3, "b", "was gone from 3.0 s on with its process Q (killed)"),
		},
	},
}

func TestLossOfAProcessCostsWhatNobodyElseHas(t *testing.T) {
	for name, x := range losses {
		t.Run(name, func(t *testing.T) {
			h := historyOf(x.roles...)
			x.happens(h)
			told, degraded, err := h.Close(10 * time.Second)
			fails := errors.Is(err, ErrNoModel)
			if diff := cmp.Diff(x.told, told); diff != "" || degraded != x.degraded || fails != x.fails {
				t.Errorf("degraded: %v, error: %v\n%s", degraded, err, diff)
			}
		})
	}
}

func TestNodeThatTheScheduleHasTakenOutLosesNothingWithItsProcess(t *testing.T) {
	h := historyOf(peer, peer)
	h.deployment.Schedule = []world.NodeChange{{At: time.Second, Node: 1, Do: world.Leave}}
	if !h.HoldLastModel(2*time.Second, []int{0}) || h.HoldLastModel(0, []int{0}) || h.HoldLastModel(2*time.Second,
		[]int{1}) {
		t.Error("from the second's departure on the first alone has a model")
	}
	h.Gone(2*time.Second, "P", "killed", []int{1}, 0)
	if told, degraded, err := h.Close(3 * time.Second); len(told) > 0 || degraded || err != nil {
		t.Errorf("%v, %v, %v", told, degraded, err)
	}
}

func TestNodeThatWasPausedLosesItsModelWithItsProcess(t *testing.T) {
	h := historyOf(server, worker)
	h.deployment.Schedule = []world.NodeChange{{At: time.Second, Node: 0, Do: world.Pause, For: time.Second}}
	h.Gone(3*time.Second, "P", "killed", []int{0}, 0)
	if told, degraded, err := h.Close(4 * time.Second); len(told) == 0 || !degraded && err == nil {
		t.Errorf("%v, %v, %v", told, degraded, err)
	}
}

// Package journal records what happens to a run on several processes: it merges their events in
// order of time, and collects the incidents that degrade the run's figures.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/record"
)

// History keeps what happens to a run that makes its figures worth less: which nodes went with
// their processes, what was lost with them, and when nobody looked. Instants are on the run's
// clock.
//
// What a node's return costs follows from its role. A node that holds a model and trains joins with
// the model of another one: all that is lost are its optimiser's state and its progress. A worker
// without a model loses as little. A node that does not train, such as a server, begins again with
// what it was given at first: nobody can stand in for it, and its run is degraded. So it is if the
// last node that had a model is gone, whatever its role: there is nobody left to join from. Where
// others have copies of what a server holds, only the last one's end is a loss.
type History struct {
	deployment *world.Deployment
	roles      []train.Role // by node
	log        func(format string, args ...any)

	mu        sync.Mutex
	incidents []record.Incident
	degraded  bool
	away      map[int]absence // by node
	handed    map[int]bool    // nodes that left in order, and handed over what they held
}

// absence describes a node whose process is not in the run.
type absence struct {
	process, why string
	at           time.Duration // when the absence was noticed
	from         time.Duration // when the process was last heard of
	lost         bool          // with it what nobody else has
}

// cause says why the process is missed, and how long after its last sign of life that was noticed.
func (a absence) cause() string {
	if late := a.at - a.from; late >= noticedAtOnce {
		return fmt.Sprintf(", noticed after %s (%s)", Seconds(late), a.why)
	}
	return fmt.Sprintf(" (%s)", a.why)
}

// noticedAtOnce is how long it takes at most to notice a broken connection. Longer delays are told.
const noticedAtOnce = 500 * time.Millisecond

// NewHistory returns the empty history of a run. It logs each incident in a line.
func NewHistory(d *world.Deployment, roles []train.Role, log func(format string, args ...any)) *History {
	return &History{deployment: d, roles: roles, log: log, away: map[int]absence{}, handed: map[int]bool{}}
}

// Add takes down an incident. The run is degraded if it did any harm.
func (h *History) Add(at time.Duration, node, what string, harm record.Harm) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addLocked(at, node, what, harm)
}

// addLocked is Add with the lock held.
func (h *History) addLocked(at time.Duration, node, what string, harm record.Harm) {
	h.incidents = append(h.incidents, record.Incident{At: at.Seconds(), Node: node, What: what, Harm: harm})
	h.degraded = h.degraded || harm != record.NoHarm
	h.log("at %s, %s %s", Seconds(at), node, what)
}

// Incidents are those until now.
func (h *History) Incidents() []record.Incident {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.incidents)
}

// Seconds writes an instant, or a time, as incidents do.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// HandsOver notes that a node leaves in order, and that others get what it holds.
func (h *History) HandsOver(node int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handed[node] = true
}

// Gone notes that the nodes of a process are gone. unheard is how long the process had been silent.
func (h *History) Gone(at time.Duration, process, why string, nodes []int, unheard time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var news []int
	for _, node := range nodes {
		if _, known := h.away[node]; !known && h.deployment.Present(node, at) {
			h.away[node] = absence{process: process, why: why, at: at, from: max(at-unheard, 0)}
			news = append(news, node)
		}
	}
	last := !h.modelsAt(at)
	for _, node := range news {
		a := h.away[node]
		role := h.roles[node]
		a.lost = !h.handed[node] && (!role.Trains && !role.Copied || role.Holds && last)
		h.away[node] = a
	}
}

// Back takes note that the nodes of a process are there again, with actors that know nothing.
func (h *History) Back(at time.Duration, nodes []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	others := h.modelsAt(at) // those who are back do not count yet
	for _, node := range nodes {
		a, was := h.away[node]
		if !was {
			continue
		}
		delete(h.away, node)
		delete(h.handed, node)
		role := h.roles[node]
		went := fmt.Sprintf("its process %s was gone from %s on%s", a.process, Seconds(a.from), a.cause())
		what, harm := "", record.ToAll
		switch {
		case role.Holds && (a.lost || !others):
			source := "the initial model"
			if role.Trains && others {
				source = "another node's model"
			}
			what = fmt.Sprintf("lost its model: %s; it began again from %s at %s", went, source, Seconds(at))
		case role.Copied:
			what = fmt.Sprintf("others had copies of what it held: %s; it is back at %s", went, Seconds(at))
			harm = record.NoHarm
		case a.lost:
			what = fmt.Sprintf("lost what it alone knew: %s; it began again at %s", went, Seconds(at))
		case role.Holds:
			what = fmt.Sprintf("began again at %s from another node's model: %s", Seconds(at), went)
			harm = record.NoHarm
		default:
			what, harm = fmt.Sprintf("began again at %s: %s", Seconds(at), went), record.NoHarm
		}
		h.addLocked(a.from, h.deployment.Nodes[node].Name, what, harm)
	}
}

// Present reports whether a node takes part at an instant.
func (h *History) Present(at time.Duration, node int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, away := h.away[node]
	return !away && h.deployment.Present(node, at)
}

// HoldLastModel reports whether no model is left without these nodes, one of which has one.
func (h *History) HoldLastModel(at time.Duration, nodes []int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.modelsAt(at) && !h.modelsAt(at, nodes...)
}

// modelsAt reports whether a node has a model that is neither away nor one of those. The lock is
// held.
func (h *History) modelsAt(at time.Duration, without ...int) bool {
	for node, role := range h.roles {
		_, away := h.away[node]
		if role.Holds && !away && !slices.Contains(without, node) && h.deployment.Present(node, at) {
			return true
		}
	}
	return false
}

// ErrNoModel is why a run has failed at whose end nobody had a model.
var ErrNoModel = errors.New("no model was there to be evaluated")

// Close takes down who is still away when the run ends, and returns all incidents in the order of
// time. It returns an error if no model was left: the latest evaluation is then older than the
// loss.
func (h *History) Close(at time.Duration) (incidents []record.Incident, degraded bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var last absence // the one with which the last model went
	name := ""
	for node := range h.roles {
		a, is := h.away[node]
		if !is {
			continue
		}
		went := fmt.Sprintf("was gone from %s on with its process %s%s", Seconds(a.from), a.process, a.cause())
		if h.roles[node].Holds && a.lost && a.from >= last.from {
			last, name = a, h.deployment.Nodes[node].Name
		}
		harm := record.NoHarm
		if a.lost {
			harm = record.ToAll
		}
		h.addLocked(a.from, h.deployment.Nodes[node].Name, went, harm)
	}
	if name != "" && !h.modelsAt(at) {
		err = fmt.Errorf("%w from %s on: %s was gone with its process %s (%s) when the run ended at %s",
			ErrNoModel, Seconds(last.from), name, last.process, last.why, Seconds(at))
	}
	slices.SortStableFunc(h.incidents, func(a, b record.Incident) int { return cmp.Compare(a.At, b.At) })
	return h.incidents, h.degraded, err
}

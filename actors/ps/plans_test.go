package ps_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// free is the bound of a consistency without one.
const free = 1 << 30

// churned is a plan of a server and workers of random speeds over links with heavy tails, where all
// workers but the first crash, leave and join at random.
type churned struct {
	text string
	// bound is how many rounds a worker may be ahead of another when it begins one, ahead how many
	// of its own may be unanswered then.
	bound, ahead  int
	every, backup int
	steps         []float64 // of the workers, in seconds
	absent        []bool    // workers at first
	changes       []comeOrGo
}

// comeOrGo is a worker that comes or goes, and when the server hears of it.
type comeOrGo struct {
	worker    int
	do        string
	at, heard float64
}

// consistency draws the bounds of a consistency of a kind, and writes it as plans do.
func (p *churned) consistency(r *rand.Rand, kind string) string {
	n := r.IntN(5)
	switch kind {
	case "bsp":
	case "ssp":
		p.bound = n
		return fmt.Sprintf("{kind: ssp, bound: %d}", n)
	case "dssp":
		p.bound = n + r.IntN(6)
		return fmt.Sprintf("{kind: dssp, low: %d, high: %d}", n, p.bound)
	case "bounded-delay":
		p.bound, p.ahead = n, n
		return fmt.Sprintf("{kind: bounded-delay, bound: %d}", n)
	default:
		p.bound = free
	}
	return "{kind: " + kind + "}"
}

// newChurned draws a plan.
func newChurned(seed uint64, kind string) *churned {
	r := rand.New(rand.NewPCG(seed, 23))
	p := &churned{every: 1 + r.IntN(2)*r.IntN(3)}
	settings := fmt.Sprintf("consistency: %s, scale: mean, every: %d", p.consistency(r, kind), p.every)
	workers, detect := 2+r.IntN(4), float64(r.IntN(60))/1000
	var nodes, links, schedule strings.Builder
	for w := range workers {
		p.steps, p.absent = append(p.steps, float64(1+r.IntN(20))/1000), append(p.absent, false)
		fmt.Fprintf(&nodes, "\n  - {name: w%d, role: worker, compute: {step: %gms}}", w, 1000*p.steps[w])
		delay := fmt.Sprintf("{kind: pareto, min: %dms, alpha: %.2f, max: %gms}", 1+r.IntN(6), 1+r.Float64(),
			1000*longest)
		fmt.Fprintf(&links, "\n    - {between: [server, w%d], delay: %s}", w, delay)
		if w > 0 {
			p.comeAndGo(r, w, detect)
		}
	}
	if kind == "bsp" && !p.absent[1] && r.IntN(2) == 0 {
		p.backup = 1
		settings += ", backup: 1"
	}
	slices.SortFunc(p.changes, func(a, b comeOrGo) int { return cmp.Compare(a.at, b.at) })
	for _, c := range p.changes {
		fmt.Fprintf(&schedule, "\n  - {at: %.4fms, node: w%d, do: %s}", 1000*c.at, c.worker, c.do)
	}
	p.text = fmt.Sprintf(`seed: %d
data: {set: synthetic-traffic, samples: 100}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 2, optimizer: {kind: sgd, rate: 0.05}}
architecture: {kind: parameter-server, %s}
nodes:
  - {name: server, role: server, compute: {speed: 1000000 TFLOP/s}}%s
network:
  links:%s
schedule:%s
detect: %gms
evaluate: {every: 2s}
record: events
stop: {time: 1.2s}
`, seed, settings, nodes.String(), links.String(), schedule.String(), 1000*detect)
	return p
}

// comeAndGo has a worker come and go at random instants.
func (p *churned) comeAndGo(r *rand.Rand, worker int, detect float64) {
	there := r.IntN(4) > 0
	p.absent[worker] = !there
	for at := 0.05 + 0.3*r.Float64(); at < 1.1; at += 0.03 + 0.4*r.Float64() {
		at = float64(int(1e7*at)) / 1e7 // as the plan has it
		c := comeOrGo{worker, "join", at, at}
		if n := len(p.changes); !there && n > 0 && p.changes[n-1].worker == worker {
			p.changes[n-1].heard = min(p.changes[n-1].heard, at) // who joins has gone
		}
		if there {
			if c.do = "leave"; r.IntN(2) == 0 {
				c.do, c.heard = "crash", at+detect
			}
		}
		p.changes = append(p.changes, c)
		there = !there
	}
}

// happening is what the dumb model goes by: an event of the record, or that the server hears of a
// worker that comes or goes.
type happening struct {
	Time      float64 `json:"time_s"`
	Event     string  `json:"event"` // step, update, begin, join or gone
	Node      string  `json:"node"`
	Origin    string  `json:"origin"`
	Version   int     `json:"version"`
	Staleness int     `json:"staleness"`
	worker    int
	round     int // of the worker's life
}

// run runs the plan and lists what happened in the order of time.
func (p *churned) run(t *testing.T) (list []happening) {
	t.Helper()
	plan, err := driver.Parse("churned.yaml", []byte(p.text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, p.text)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := driver.Run(context.Background(), plan, driver.Options{Out: dir, Jobs: 1}); err != nil {
		t.Fatalf("%v in\n%s", err, p.text)
	}
	f, err := os.Open(filepath.Join(dir, "runs", "0000", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var h happening
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		switch h.Event {
		case "step":
			h.worker = number(t, h.Node)
		case "update":
			h.worker = number(t, h.Origin)
		default:
			continue
		}
		list = append(list, h)
	}
	return p.tell(list)
}

// number is the number of a worker.
func number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(name, "w"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tell adds who comes and goes, and makes of steps the beginnings of rounds.
func (p *churned) tell(list []happening) []happening {
	steps := make([]int, len(p.steps)) // of the present lives
	changes := p.changes
	for i := range list {
		h := &list[i]
		for ; len(changes) > 0 && changes[0].at <= h.Time; changes = changes[1:] {
			steps[changes[0].worker] = 0
		}
		if h.Event == "step" {
			if steps[h.worker]%p.every == 0 {
				h.Event, h.round = "begin", steps[h.worker]/p.every
				h.Time -= p.steps[h.worker]
			}
			steps[h.worker]++
		}
	}
	for _, c := range p.changes {
		h := happening{Time: c.heard, Event: "join", worker: c.worker}
		if c.do != "join" {
			h.Event = "gone"
		}
		list = append(list, h)
	}
	// Whoever goes may end a round at the same instant; whoever comes then is in the next.
	order := map[string]int{"gone": -1, "join": 1}
	for i := range list {
		list[i].Time = math.Round(1e9*list[i].Time) / 1e9
	}
	slices.SortStableFunc(list, func(a, b happening) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), order[a.Event]-order[b.Event])
	})
	return list
}

// member is a worker as the dumb model has it.
type member struct {
	there       bool
	life        int
	base, clock int
	gone        float64 // when the server heard that its life before was over
	// hasty says that answers to the life before may still arrive. A round that is begun on one is
	// void, and not told from others by the record.
	hasty bool
}

// longest is how long a message is under way at most, in seconds.
const longest = 0.3

// model judges a run by the definitions of consistency.
type model struct {
	*churned
	members []member
	last    int      // the slowest clock when somebody was there last
	origins [][2]int // of the updates so far: worker and life
	most    int      // rounds that a worker was ahead of another
	begun   int
}

func (m *model) slowest() int {
	least := free
	for _, w := range m.members {
		if w.there {
			least = min(least, w.clock)
		}
	}
	if least < free {
		m.last = least
	}
	return m.last
}

// begins checks that nobody is too far behind who begins a round, and that as many rounds before it
// are answered as have to be.
func (m *model) begins(h happening) string {
	w := m.members[h.worker]
	own := w.base + h.round
	m.begun++
	if w.hasty {
		own = w.clock
	}
	if m.bound > 0 && (own < w.clock || own > w.clock+m.ahead) {
		return fmt.Sprintf("begins round %d at clock %d", own, w.clock)
	}
	for i, o := range m.members {
		if i == h.worker || !o.there {
			continue
		}
		m.most = max(m.most, own-o.clock)
		if own-o.clock > m.bound {
			return fmt.Sprintf("begins round %d while worker %d is at %d", own, i, o.clock)
		}
	}
	return ""
}

// updates checks the staleness of an update: as many updates as it says came before it since the
// model that it was computed on. Of each life of another worker they can be those of 2·bound + 1
// rounds: of as many as it may be behind and ahead of this one, and one more.
func (m *model) updates(h happening) string {
	if m.bound > 0 {
		w := &m.members[h.worker]
		own := [2]int{h.worker, w.life}
		if h.Staleness > len(m.origins) {
			return fmt.Sprintf("has staleness %d after %d updates", h.Staleness, len(m.origins))
		}
		since := map[[2]int]int{}
		for _, o := range m.origins[len(m.origins)-h.Staleness:] {
			most := min(2*m.bound+1, free)
			if since[o]++; o == own {
				most = m.ahead
			}
			if since[o] > most && w.there { // who has gone holds nobody back
				return fmt.Sprintf("has staleness %d, with %d updates of worker %d", h.Staleness, since[o], o[0])
			}
		}
		m.origins = append(m.origins, own)
		w.clock++
	} else if h.Staleness != 0 {
		return fmt.Sprintf("has staleness %d in a round", h.Staleness)
	}
	return ""
}

// ends checks that a round has the gradients of all workers that are there, but for the backup.
func (m *model) ends(round []happening) string {
	missing := 0
	for i := range m.members {
		w := &m.members[i]
		if !w.there {
			continue
		}
		w.clock++
		if !slices.ContainsFunc(round, func(h happening) bool { return h.worker == i }) {
			missing++
		}
	}
	if missing > m.backup {
		return fmt.Sprintf("is in a round that misses %d workers", missing)
	}
	return ""
}

// judge goes through what happened. It returns what contradicts the definitions, or "".
func (m *model) judge(list []happening) string {
	for i := range m.absent {
		m.members = append(m.members, member{there: !m.absent[i], gone: -longest})
	}
	for i, h := range list {
		w, wrong := &m.members[h.worker], ""
		switch h.Event {
		case "join":
			at := m.slowest()
			*w = member{there: true, life: w.life + 1, base: at, clock: at, hasty: h.Time < w.gone+longest}
		case "gone":
			m.slowest()
			w.there, w.gone = false, h.Time
		case "begin":
			wrong = m.begins(h)
		case "update":
			wrong = m.updates(h)
			first := i
			for first > 0 && list[first-1].Event == "update" && list[first-1].Version == h.Version {
				first--
			}
			if last := i+1 == len(list) || list[i+1].Event != "update" || list[i+1].Version != h.Version; wrong == "" &&
				m.bound == 0 && last {
				wrong = m.ends(list[first : i+1])
			}
		}
		if wrong != "" {
			return fmt.Sprintf("at %v s worker %d %s", h.Time, h.worker, wrong)
		}
		m.slowest()
	}
	return ""
}

// In runs of random plans no worker begins a round further ahead than its consistency allows, and
// no update is staler, as a dumb model says that knows nothing but the record.
func TestRandomPlansStayWithinTheBoundsOfTheirConsistency(t *testing.T) {
	plans := 1000
	if simtest.Brief() {
		plans = 250
	}
	kinds := []string{"bsp", "ssp", "dssp", "asp", "bounded-delay"}
	for k, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tight, begun := 0, 0
			for seed := k; seed < plans; seed += len(kinds) {
				m := &model{churned: newChurned(uint64(seed), kind)}
				if wrong := m.judge(m.run(t)); wrong != "" {
					t.Fatalf("%s in\n%s", wrong, m.text)
				}
				if begun += m.begun; m.most == m.bound {
					tight++
				}
			}
			if kind != "asp" && tight < plans/len(kinds)/4 || begun < 30*plans/len(kinds) {
				t.Errorf("%d rounds were begun, and in %d plans one at the bound", begun, tight)
			}
			t.Logf("%d rounds were begun, and in %d plans one at the bound", begun, tight)
		})
	}
}

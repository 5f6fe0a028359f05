package registry_test

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// tick is the duration of a member's tick, in units of a world's time.
const tick = 10

// world is a cluster in virtual time. All of its randomness comes from its seed.
type world struct {
	random    *rand.Rand
	now       int
	events    events
	number    int
	processes []*process
	cut       map[[2]int]bool // pairs without a connection, lower index first
	loss      float64
	twice     float64
	loseNext  int  // number of next messages to drop
	mute      bool // drops raft's messages, but no requests to join
	lifetimes uint64
	histories map[uint64]*history // by the number of the registry
	latest    *history            // history for processes that have not joined a registry
	trace     *xxhash.Digest
	wrong     []string // violated invariants
	plant     plant
	harmed    bool // true once a log may be damaged
	left      bool // true once a process has left
	volatile  int  // members that continued with a log in memory
	undecided int  // number of keys whose check timed out
	tally     tally
}

// plant is a planted defect that the checks must find.
type plant struct {
	forgetsVotes bool
	lies         int
	early        bool // puts are acknowledged before they are committed
}

// process is a process of a world.
type process struct {
	index   int
	name    string
	founds  bool
	disk    *disk
	memory  bool             // the member is volatile
	member  *registry.Member // nil while the process is down
	life    uint64
	paused  bool
	held    []func() // deliveries to a paused process
	calls   map[uint64]*call
	reads   map[uint64]*call
	tokens  map[string]uint64 // tokens of the claims that may have succeeded, by key
	applied uint64
	history *history // history of the registry that the member is in or joins
}

// event is a function that is called at a time.
type event struct {
	at, number int
	do         func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(v any)   { *e = append(*e, v.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(seed uint64, processes int, p plant) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 2)), cut: map[[2]int]bool{}, trace: xxhash.New(), plant: p,
		histories: map[uint64]*history{}, latest: newHistory(),
	}
	for i := range processes {
		v := &process{index: i, name: string(rune('a' + i)), founds: i == 0,
			disk: &disk{forgetsVotes: p.forgetsVotes, lies: p.lies, log: map[uint64]*raftpb.Entry{}}}
		w.processes = append(w.processes, v)
		w.after(w.random.IntN(tick), func() { w.tick(v) })
	}
	return w
}

func (w *world) after(units int, do func()) {
	w.number++
	heap.Push(&w.events, event{w.now + units, w.number, do})
}

// run advances time by some units.
func (w *world) run(units int) {
	until := w.now + units
	for len(w.events) > 0 && w.events[0].at <= until && len(w.wrong) == 0 {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

func (w *world) fail(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf("at %d: ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) tick(p *process) {
	w.after(tick, func() { w.tick(p) })
	if p.member != nil && !p.paused {
		p.member.Tick()
		w.deliverReady(p)
	}
}

// start starts a new incarnation of a process.
func (w *world) start(p *process) {
	if p.member != nil {
		return
	}
	w.lifetimes++
	p.life = w.lifetimes
	p.calls, p.reads, p.tokens = map[uint64]*call{}, map[uint64]*call{}, map[string]uint64{}
	p.applied, p.paused, p.held, p.disk.fault = 0, false, nil, noFault
	w.open(p, p.disk)
	if p.member != nil {
		p.founds = false
		p.history = w.historyOf(p)
		p.history.opens[p.life] = p.history.lost(w, p, p.name, p.life-1)
		w.deliverReady(p)
	}
}

// useMemory replaces a member whose disk has failed with a volatile one, in the same incarnation.
func (w *world) useMemory(p *process) {
	p.memory = true
	w.volatile++
	p.calls, p.reads, p.applied, p.disk.fault = map[uint64]*call{}, map[uint64]*call{}, 0, noFault
	w.open(p, &disk{log: p.disk.log})
	p.member.SkipTickets(uint64(w.volatile) << 32)
	w.deliverReady(p)
}

// open makes a process's member, with its log on a disk.
func (w *world) open(p *process, d *disk) {
	m, err := registry.New(registry.Config{
		Name: p.name, Incarnation: p.life, MayFound: p.founds, Seed: w.random.Uint64(), Storage: d, Volatile: p.memory,
		HeartbeatTicks: 2, ElectionTicks: 10, RetryTicks: 15, ReplaceTicks: 60, SnapshotEntries: 12,
	})
	if err != nil {
		w.fail("%s does not start: %v", p.name, err)
		return
	}
	p.member = m
}

// crash ends an incarnation. Its pending commands may still have their effect.
func (w *world) crash(p *process) {
	if p.member != nil {
		p.member, p.paused, p.held, p.memory = nil, false, nil, false
		p.calls, p.reads = nil, nil
	}
}

// deliverReady records, delivers and checks the effects of a member's input.
func (w *world) deliverReady(p *process) {
	r := p.member.Ready()
	w.follow(p)
	for applied := p.member.Status().Applied; p.history.done < applied; {
		e := p.disk.log[p.history.done+1]
		if e == nil {
			w.fail("%s has applied entry %d, which it has not stored", p.name, p.history.done+1)
			break
		}
		p.history.committed(w, e)
	}
	for _, m := range r.Messages {
		for _, to := range w.processes {
			if to != p && (m.To == "" || m.To == to.name) {
				w.transmit(p, to, m.Frame)
			}
		}
	}
	for _, o := range r.Results {
		w.returned(p, o)
	}
	for _, ticket := range r.Reads {
		p.history.read(w, p, ticket)
	}
	w.check(p)
}

// transmit sends a frame, and may delay, duplicate or drop it.
func (w *world) transmit(from, to *process, f *protos.RegistryFrame) {
	w.note(uint64(from.index), uint64(to.index), xxhash.Sum64(f.GetMessage()))
	copies := 1
	switch {
	case w.loseNext > 0:
		w.loseNext--
		return
	case w.random.Float64() < w.loss:
		return
	case w.random.Float64() < w.twice:
		copies = 2
	}
	for range copies {
		delay := 1 + w.random.IntN(12)
		if w.random.IntN(40) == 0 {
			delay += w.random.IntN(400)
		}
		w.after(delay, func() { w.deliver(from, to, f) })
	}
}

func (w *world) deliver(from, to *process, f *protos.RegistryFrame) {
	switch {
	case to.member == nil || w.cut[pair(from, to)] || w.mute && len(f.GetMessage()) > 0:
	case to.paused:
		to.held = append(to.held, func() { w.deliver(from, to, f) })
	default:
		to.member.Step(proto.Clone(f).(*protos.RegistryFrame))
		w.deliverReady(to)
	}
}

func pair(a, b *process) [2]int { return [2]int{min(a.index, b.index), max(a.index, b.index)} }

func (w *world) resume(p *process) {
	p.paused = false
	held := p.held
	p.held = nil
	for _, do := range held {
		do()
	}
}

// note adds numbers to the trace, which is equal for equal seeds.
func (w *world) note(numbers ...uint64) {
	var b []byte
	for _, n := range append(numbers, uint64(w.now)) {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	w.trace.Write(b) //nolint:errcheck // it cannot fail
}

// check asserts the invariants: one leader per term, an odd number of voters, and one state after
// each entry.
func (w *world) check(p *process) {
	s := p.member.Status()
	if s.Leads {
		if other, known := p.history.leaders[s.Term]; known && other != p.member.ID() {
			w.fail("%s leads term %d, which %x leads", p.name, s.Term, other)
		}
		p.history.leaders[s.Term] = p.member.ID()
	}
	if s.Err == nil && s.Applied > 0 && len(s.Voters)%2 == 0 {
		w.fail("%s: %d voters: %v", p.name, len(s.Voters), s.Voters)
	}
	if s.Applied < p.applied {
		w.fail("%s goes back from entry %d to %d", p.name, p.applied, s.Applied)
	}
	if s.Applied == p.applied {
		return
	}
	p.applied = s.Applied
	digest := p.member.State().Digest()
	if other, known := p.history.states[s.Applied]; known && other != digest {
		w.fail("%s has another state after entry %d", p.name, s.Applied)
	}
	p.history.states[s.Applied] = digest
	p.history.contents[s.Applied] = p.member.State().Contents()
}

// up returns the running processes.
func (w *world) up() []*process {
	return slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool {
		return p.member == nil || p.paused || p.member.Err() != nil
	})
}

// view returns the status of the process that has applied the most entries.
func (w *world) view() (latest registry.Status) {
	for _, p := range w.up() {
		if s := p.member.Status(); s.Applied >= latest.Applied {
			latest = s
		}
	}
	return latest
}

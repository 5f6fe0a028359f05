package registry_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/protos"
)

var (
	seeds = flag.Int("registry.seeds", 150, "how many seeds of faults TestFaults tries")
	first = flag.Uint64("registry.seed", 1, "the first seed of TestFaults")
)

// fault is an injected fault.
type fault struct {
	at     int // in units of the world's time
	kind   string
	target int // index of a process; for a cut, the bits of one side's processes
}

func (f fault) String() string { return fmt.Sprintf("%d:%s(%d)", f.at, f.kind, f.target) }

const (
	faultSpan    = 6000 // units during which there are faults
	faultCount   = 50
	healTicks    = 600
	healPatience = 20 // spans of healTicks/20 ticks
)

var faultKinds = []string{"crash", "crash", "crash", "restart", "restart", "restart", "restart", "cut", "cut", "heal",
	"heal", "pause", "resume", "resume", "loss", "calm", "old", "new", "torn", "lose", "leave"}

// schedule draws the faults of a seed.
func schedule(seed uint64, processes int) []fault {
	return draw(seed, processes, faultCount, faultKinds)
}

func draw(seed uint64, processes, count int, kinds []string) []fault {
	random := rand.New(rand.NewPCG(seed, 3))
	var all []fault
	for range count {
		f := fault{at: 100 + random.IntN(faultSpan), kind: kinds[random.IntN(len(kinds))]}
		f.target = random.IntN(processes)
		if f.kind == "cut" {
			f.target = random.IntN(1 << processes)
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b fault) int { return a.at - b.at })
	return all
}

// strike injects a fault.
func (w *world) strike(f fault) {
	p := w.processes[f.target%len(w.processes)]
	switch f.kind {
	case "crash":
		w.crash(p)
	case "restart":
		w.crash(p)
		w.start(p)
	case "cut":
		for _, a := range w.processes {
			for _, b := range w.processes[:a.index] {
				if f.target>>a.index&1 != f.target>>b.index&1 {
					w.cut[pair(a, b)] = true
				}
			}
		}
	case "heal":
		clear(w.cut)
	case "pause":
		p.paused = p.member != nil
	case "resume":
		w.resume(p)
	case "loss":
		w.loss, w.twice = 0.3, 0.2
	case "calm":
		w.loss, w.twice = 0, 0.05
	case "memory":
		if p.member != nil && p.member.Err() != nil && !w.harmed {
			w.useMemory(p)
		}
	case "lose":
		w.loseNext = 1 + f.target
	case "leave":
		if p.member != nil && !p.paused && !w.harmed {
			w.left = true
			p.member.Leave()
		}
	case "ruin":
		w.ruin(p)
	case "isolate":
		w.isolate(p)
	default:
		w.harm(p, f.kind)
	}
}

// harm makes a process's disk fail at the next write. At most one log of a seed becomes damaged,
// because the registry does not survive the loss of a majority of logs.
func (w *world) harm(p *process, kind string) {
	switch kind {
	case "old":
		p.disk.fault = failedOld
	case "new":
		p.disk.fault = failedNew
	case "torn":
		p.disk.fault, p.disk.tear = failedTorn, w.tear
	}
}

// tear reports whether a log may become damaged: all processes must agree on the voters, and the
// others must be a majority. If processes leave, a voter may become the only one. A log in memory is
// lost with its process, so it counts as damaged.
func (w *world) tear() bool {
	want := w.view().Voters
	may := !w.harmed && !w.left && len(want) >= 3 && len(w.up()) == len(w.processes)
	for _, p := range w.up() {
		s := p.member.Status()
		may = may && !s.Changing && slices.Equal(s.Voters, want) && len(s.InMemory) == 0
	}
	w.harmed = w.harmed || may
	return may
}

// play runs a seed with faults, and returns the violations.
func play(seed uint64, faults []fault, p plant) (wrong string, w *world) {
	defer func() {
		if cause := recover(); cause != nil {
			wrong = fmt.Sprintf("panic: %v", cause)
		}
	}()
	w = newWorld(seed, processesOf(seed), p)
	w.start(w.processes[0])
	for _, p := range w.processes[1:] {
		w.after(w.random.IntN(800), func() { w.start(p) })
	}
	w.twice = 0.05
	for _, f := range faults {
		w.after(f.at, func() { w.strike(f) })
	}
	w.callers(faultSpan + 200)
	w.run(faultSpan + 200)
	w.recover()
	if len(w.wrong) > 0 {
		return strings.Join(w.wrong, "\n"), w
	}
	wrong, w.undecided = w.linearizable()
	return wrong, w
}

func processesOf(seed uint64) int { return []int{3, 5, 4, 6, 3, 2, 1, 7}[seed%8] }

// callers makes random processes issue calls at random intervals.
func (w *world) callers(until int) {
	if w.now > until {
		return
	}
	w.after(1+w.random.IntN(90), func() { w.callers(until) })
	if up := w.up(); len(up) > 0 {
		w.issue(up[w.random.IntN(len(up))])
	}
}

// recover ends all faults. Then every process must reach the same state and answer.
func (w *world) recover() {
	clear(w.cut)
	w.loss, w.twice, w.loseNext = 0, 0, 0
	for _, p := range w.processes {
		p.disk.fault = noFault
		w.resume(p)
		if p.member == nil || p.member.Err() != nil || p.member.Leaving() || p.memory {
			w.crash(p)
			w.start(p)
		}
	}
	w.await()
	for _, p := range w.processes {
		p.reads[p.member.Read()] = &call{called: w.now}
		w.submit(p, &call{kind: remove, key: "actor:p"}, &protos.RegistryCommand{
			Kind: &protos.RegistryCommand_DeleteActor{DeleteActor: &protos.DeleteActor{Name: "p"}}})
	}
	w.run(40 * tick)
	w.await() // until a process whose earlier incarnation left has joined again
	if len(w.wrong) > 0 {
		return
	}
	if !w.agree() {
		w.fail("no agreement after the last fault: %s", w.describe())
	}
	for _, p := range w.processes {
		if len(p.reads) > 0 || len(p.calls) > 0 {
			w.fail("%s has no answer to %d reads and %d commands: %s", p.name, len(p.reads), len(p.calls), w.describe())
		}
	}
}

// await advances time until all processes agree, at most healTicks.
func (w *world) await() {
	for range healPatience {
		if w.run(healTicks / healPatience * tick); w.agree() {
			return
		}
	}
}

// agree reports whether all processes have the same leader, the same state and the desired number
// of voters.
func (w *world) agree() bool {
	first := w.processes[0].member.Status()
	want := map[int]int{1: 1, 2: 1, 3: 3, 4: 3}[len(w.processes)]
	if want == 0 {
		want = 5
	}
	return !slices.ContainsFunc(w.processes, func(p *process) bool {
		s := p.member.Status()
		return s.Leader == "" || s.Cluster != first.Cluster || s.Leader != first.Leader ||
			s.Applied != first.Applied || len(s.Voters) != want || len(s.Voters)+len(s.Learners) != len(w.processes)
	})
}

func (w *world) describe() string {
	var b strings.Builder
	for _, p := range w.processes {
		if p.member != nil {
			fmt.Fprintf(&b, "\n  %s %x: %+v", p.name, p.member.ID(), p.member.Status())
		}
	}
	return b.String()
}

// shrink removes the faults that are not needed for a seed to fail.
func shrink(seed uint64, faults []fault, p plant) []fault {
	for size := len(faults) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(faults); {
			less := slices.Concat(faults[:i], faults[i+size:])
			if wrong, _ := play(seed, less, p); wrong != "" {
				faults = less
			} else {
				i += size
			}
		}
	}
	return faults
}

func TestFaults(t *testing.T) { tryFaults(t, "TestFaults", faultKinds) }

// TestFaultsInMemory adds processes whose disks fail and that go on with their logs in memory.
func TestFaultsInMemory(t *testing.T) {
	more := []string{"old", "old", "new", "memory", "memory", "memory", "memory", "memory", "memory"}
	tryFaults(t, "TestFaultsInMemory", append(more, faultKinds...))
}

func tryFaults(t *testing.T, test string, kinds []string) {
	undecided, volatile := 0, 0
	for i := range *seeds {
		seed := *first + uint64(i)
		faults := draw(seed, processesOf(seed), faultCount, kinds)
		wrong, w := play(seed, faults, plant{})
		if wrong != "" {
			fewer := shrink(seed, faults, plant{})
			wrong, _ = play(seed, fewer, plant{})
			t.Fatalf("seed %d, with %d processes and the faults %v: %s\n"+
				"repeat: go test ./cluster/registry -run '^%s$' -registry.seed %d -registry.seeds 1", seed,
				processesOf(seed), fewer, wrong, test, seed)
		}
		undecided, volatile = undecided+w.undecided, volatile+w.volatile
	}
	t.Logf("%d seeds of %d faults, %d logs in memory; Porcupine did not decide on %d histories in time", *seeds,
		faultCount, volatile, undecided)
}

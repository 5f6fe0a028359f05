package processes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// workload is a plan that the programme submits.
type workload struct {
	Name         string
	At           time.Duration // time after the cluster's start
	To           string        // first process that the client submits to
	Architecture string
	Nodes        string
	Optimizer    string
	Steps, Runs  int
	Saved        bool // writes checkpoints
	Stop         bool // an operator stops the plan after it has aborted a process
}

// poisonous reports whether the plan aborts the process of its node.
func (w *workload) poisonous() bool { return w.Optimizer == "fatal" }

// yaml returns the plan's text.
func (w *workload) yaml() string {
	text := fmt.Sprintf(`name: %s
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: %s}}
architecture: %s
nodes: %s
evaluate: {every: 250ms}
stop: {steps: %d}
`, w.Name, w.Optimizer, w.Architecture, w.Nodes, w.Steps)
	if w.Optimizer != "fatal" {
		text = strings.Replace(text, w.Optimizer+"}", w.Optimizer+", rate: 0.1}", 1)
	}
	if w.Saved {
		text += "checkpoint: {every: 400ms}\n"
	}
	return text
}

func (w *workload) String() string {
	text := fmt.Sprintf("%5.1fs  submit %s to %s: %s, %d runs of %d steps", w.At.Seconds(), w.Name, w.To,
		w.Architecture, w.Runs, w.Steps)
	switch {
	case w.poisonous():
		text += ", kills its process"
	case w.Saved:
		text += ", with checkpoints"
	}
	if w.Stop {
		text += ", stopped after the first death"
	}
	return text
}

// kind describes the effect of a fault.
type kind string

const (
	kill    kind = "kill -9, start again"
	term    kind = "SIGTERM, start again"
	pause   kind = "SIGSTOP, SIGCONT"
	upgrade kind = "SIGTERM, start as another build"
	empty   kind = "kill -9, start with an empty disk"
	cutOne  kind = "drop all packets to the other process"
	cutBoth kind = "drop all packets to and from the other process"
	isolate kind = "drop all packets to and from all others"
	full    kind = "fill the disk"
	frozen  kind = "make the disk read-only"
	vanish  kind = "delete the folder of records"
	killAll kind = "kill -9 all processes at once, start them again"
	newAll  kind = "kill -9 all processes at once, start them as another build"
	flip    kind = "kill -9 all processes at once, change a bit in each checkpoint, start them again"
)

// privileged are the kinds of faults that require root.
var privileged = []kind{cutOne, cutBoth, isolate, full, frozen}

// Symbolic processes of a fault, which the programme resolves when the fault happens.
const (
	owner  = "owner"  // the process that carries out the first plan
	holder = "holder" // another process, which has a copy of the first plan's record
)

// anchor is the event of the first plan from which a fault's time counts.
type anchor string

const (
	start anchor = "start"
	ran   anchor = "first finished run"
	saved anchor = "checkpoint at each holder"
	over  anchor = "end of the first plan"
)

// fault is one fault of a programme.
type fault struct {
	Kind   kind
	On, To string // the process, and the other one of a dropped connection
	After  anchor
	At     time.Duration // time after the anchor
	For    time.Duration // duration of the fault
}

func (f *fault) String() string {
	on := f.On
	if f.To != "" {
		on += " → " + f.To
	}
	if on == "" {
		on = "all"
	}
	return fmt.Sprintf("%s + %.1fs  %s: %s, for %.1fs", f.After, f.At.Seconds(), on, f.Kind, f.For.Seconds())
}

// programme is a cluster, plans and faults.
type programme struct {
	Seed   uint64
	Theme  string
	Names  []string
	Plans  []workload
	Faults []fault
}

func (p *programme) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s: processes %s\n", p.Seed, p.Theme, strings.Join(p.Names, ", "))
	for i := range p.Plans {
		fmt.Fprintf(&b, "  %s\n", &p.Plans[i])
	}
	for i := range p.Faults {
		fmt.Fprintf(&b, "  fault %d: %s\n", i, &p.Faults[i])
	}
	return b.String()
}

// without returns the programme without one fault.
func (p *programme) without(i int) *programme {
	less := *p
	less.Faults = slices.Delete(slices.Clone(p.Faults), i, i+1)
	return &less
}

// themes determine the main faults of a programme. The seed selects a theme; random draws add
// other faults.
var themes = []struct {
	name string
	draw func(d *draw)
}{
	{"a plan that kills its processes", (*draw).deadly},
	{"a holder's disk", (*draw).holdersDisk},
	{"a record's disk is lost", (*draw).lostDisk},
	{"all processes become another build", (*draw).rebuilt},
	{"damaged checkpoints", (*draw).damaged},
	{"partitions", (*draw).partitions},
	{"successions", (*draw).successions},
	{"all processes die at once", (*draw).blackout},
	{"anything", (*draw).anything},
}

// draw builds a programme from a seed.
type draw struct {
	*rand.Rand
	programme
}

func newProgramme(seed uint64) *programme {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 11))}
	theme := themes[(seed+uint64(len(themes))-1)%uint64(len(themes))]
	d.Seed, d.Theme = seed, theme.name
	d.Names = []string{"a", "b", "c", "d", "e", "f"}[:3+min(d.IntN(5), d.IntN(4))]
	theme.draw(d)
	if d.IntN(3) == 0 {
		d.plan(d.healthy(1 + d.IntN(2)))
	}
	return &d.programme
}

func pick[T any](d *draw, all ...T) T { return all[d.IntN(len(all))] }

// seconds returns a random duration.
func (d *draw) seconds(from, to float64) time.Duration {
	return time.Duration((from + d.Float64()*(to-from)) * float64(time.Second)).Round(100 * time.Millisecond)
}

func (d *draw) plan(w workload) *workload {
	w.Name = fmt.Sprintf("p%d", len(d.Plans)+1)
	w.To = pick(d, d.Names...)
	if len(d.Plans) > 0 {
		w.At = d.seconds(0, 4)
	}
	d.Plans = append(d.Plans, w)
	return &d.Plans[len(d.Plans)-1]
}

// healthy returns a plan that survives the loss of any process.
func (d *draw) healthy(runs int) workload {
	w := workload{Runs: runs, Steps: 60 + 10*d.IntN(5), Optimizer: "sgd"}
	switch d.IntN(4) {
	case 0:
		w.Architecture = "{kind: all-reduce, algorithm: ring}"
		w.Nodes = fmt.Sprintf("[{name: peer, count: %d, compute: {step: 10ms}}]", 2+d.IntN(3))
	case 1:
		w.Architecture = "{kind: parameter-server, consistency: asp, servers: {replicas: 1}}"
		w.Nodes = "[{name: s, count: 2, role: server}, {name: w, count: 2, role: worker, compute: {step: 10ms}}]"
	default:
		w.Architecture = "{kind: gossip}"
		w.Nodes = fmt.Sprintf("[{name: peer, count: %d, compute: {step: 10ms}}]", 2+d.IntN(2))
	}
	w.Saved = d.IntN(3) == 0
	return w
}

// savedRun returns a plan with runs of several seconds and frequent checkpoints.
func (d *draw) savedRun() workload {
	return workload{Runs: 1 + d.IntN(2), Steps: 350, Optimizer: "momentum", Saved: true,
		Architecture: "{kind: parameter-server, consistency: bsp, servers: {shard: 1 kB}}",
		Nodes: "[{name: server, count: 2, role: server}, " +
			"{name: worker, count: 3, role: worker, compute: {step: 15ms}}]"}
}

func (d *draw) fault(what kind, on string, after anchor, at, lasts time.Duration) *fault {
	d.Faults = append(d.Faults, fault{Kind: what, On: on, After: after, At: at, For: lasts})
	return &d.Faults[len(d.Faults)-1]
}

// disturb adds faults of single processes that affect no disk.
func (d *draw) disturb(n int, after anchor, kinds ...kind) {
	for range n {
		on := pick(d, append([]string{owner}, d.Names...)...)
		f := d.fault(pick(d, kinds...), on, after, d.seconds(0, 5), d.seconds(0.2, 4))
		if f.Kind == cutOne || f.Kind == cutBoth {
			f.To, f.For = pick(d, d.Names...), d.seconds(1, 9)
		}
	}
}

func (d *draw) deadly() {
	w := d.plan(workload{Runs: 2, Steps: 40, Optimizer: "fatal", Architecture: "{kind: local}",
		Nodes: "[{name: peer, compute: {step: 10ms}}]"})
	w.Stop = d.IntN(3) == 0
	w.To = pick(d, w.To, "a") // a hosts the node
	d.plan(d.healthy(2))
	d.disturb(d.IntN(2), start, pause, cutBoth)
}

func (d *draw) holdersDisk() {
	d.plan(d.healthy(12)).Saved = false
	d.fault(pick(d, full, full, frozen), pick(d, holder, holder, holder, owner), ran, d.seconds(0, 1), d.seconds(1, 3))
	d.disturb(d.IntN(2), ran, pause, kill)
}

func (d *draw) lostDisk() {
	d.plan(d.healthy(2 + d.IntN(3)))
	whose, after := pick(d, owner, owner, owner, holder), pick(d, over, over, over, ran)
	d.fault(pick(d, empty, empty, empty, vanish), whose, after, d.seconds(0.5, 3), d.seconds(0.2, 2))
	d.disturb(d.IntN(2), over, kill, pause)
}

func (d *draw) rebuilt() {
	d.plan(d.savedRun())
	if d.IntN(3) == 0 {
		d.fault(upgrade, owner, saved, d.seconds(0, 2), d.seconds(0.2, 1))
	}
	d.fault(newAll, "", saved, d.seconds(0.3, 1.5), d.seconds(0.2, 1))
}

func (d *draw) damaged() {
	d.plan(d.savedRun())
	d.fault(flip, "", saved, d.seconds(0.3, 1.5), d.seconds(0.2, 1))
	d.disturb(d.IntN(2), saved, pause)
}

func (d *draw) partitions() {
	d.plan(d.healthy(6 + d.IntN(5)))
	d.plan(d.healthy(2))
	d.disturb(1+d.IntN(3), ran, cutOne, cutBoth)
	if d.IntN(2) == 0 {
		d.fault(isolate, pick(d, owner, holder), ran, d.seconds(0, 3), d.seconds(2, 15))
	}
	d.disturb(d.IntN(2), ran, kill, term, pause)
}

func (d *draw) successions() {
	w := d.healthy(8 + d.IntN(5))
	if d.IntN(2) == 0 {
		w = d.savedRun()
	}
	d.plan(w)
	d.plan(d.healthy(2))
	d.disturb(2+d.IntN(3), start, kill, term, pause, upgrade)
	d.fault(pick(d, pause, kill, term), owner, ran, d.seconds(0, 2), d.seconds(2, 12))
}

func (d *draw) blackout() {
	w := d.healthy(4 + d.IntN(3))
	after := ran
	if d.IntN(2) == 0 {
		w, after = d.savedRun(), saved
	}
	d.plan(w)
	d.plan(d.healthy(2))
	d.fault(killAll, "", after, d.seconds(0, 2), d.seconds(0, 2))
	d.disturb(d.IntN(3), after, kill, term, pause)
}

// anything draws many faults. At most one disk loses its records, and at most one other disk
// rejects writes for a while, because a submission has only three holders.
func (d *draw) anything() {
	for range 2 + d.IntN(2) {
		w := d.healthy(3 + d.IntN(6))
		if d.IntN(3) == 0 {
			w = d.savedRun()
		}
		d.plan(w)
	}
	d.disturb(3+d.IntN(5), pick(d, start, ran), kill, term, pause, upgrade, cutOne, cutBoth, isolate)
	names := d.Perm(len(d.Names))
	if d.IntN(2) == 0 {
		d.fault(pick(d, empty, vanish), d.Names[names[0]], ran, d.seconds(0, 4), d.seconds(0.2, 3))
	}
	if d.IntN(2) == 0 {
		d.fault(pick(d, full, frozen), d.Names[names[1]], ran, d.seconds(0, 4), d.seconds(0.2, 3))
	}
	if d.IntN(3) == 0 {
		d.fault(pick(d, killAll, newAll), "", ran, d.seconds(0, 4), d.seconds(0.2, 2))
	}
}

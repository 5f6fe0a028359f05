package registry_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/protos"
)

// tally counts the events of a world that a test of recoveries must have seen.
type tally struct {
	recoveries, unproven, proven, fenced int
}

// historyOf returns the history of the registry that a process is in or joins.
func (w *world) historyOf(p *process) *history {
	number := p.member.Lineage()
	if number == 0 {
		return w.latest
	}
	switch h := w.histories[number]; {
	case h != nil:
		return h
	case len(w.histories) == 0:
		w.histories[number] = w.latest
	case p.member.Status().Applied > 1: // the process stored a recovery, but stopped before it returned
		w.histories[number] = historyFrom(p)
		w.latest = w.histories[number]
	default:
		w.histories[number] = newHistory() // the registry of a second founder
	}
	return w.histories[number]
}

// historyFrom returns a history that starts with the state of a recovered process.
func historyFrom(p *process) *history {
	s, h := p.member.State(), newHistory()
	h.done = p.member.Status().Applied
	for _, v := range s.Sessions() {
		by := ticket{process: v.Process.Name, life: v.Process.Incarnation}
		h.sessions[v.Id] = by
		for n := range v.Below {
			h.seen[ticket{by.process, by.life, n}] = true
		}
		for n := range v.Results {
			h.seen[ticket{by.process, by.life, n}] = true
		}
	}
	for _, key := range keys {
		c := &call{key: key}
		c.see(s)
		o := object{owner: c.owner, token: c.foundToken, ended: c.ended, version: c.version}
		if name, life, owned := strings.Cut(c.owner, "/"); owned {
			o.name = name
			fmt.Sscan(life, &o.life) //nolint:errcheck // it is a number
		}
		h.initial[key] = o
	}
	return h
}

// follow moves the pending calls of a process to the history of the registry that its member has
// changed to. In the former registry their results stay unknown.
func (w *world) follow(p *process) {
	h, former := w.historyOf(p), p.history
	if h == former {
		return
	}
	if p.member.Status().Applied == 0 {
		w.tally.fenced++
	}
	p.history, p.applied = h, 0
	again := func(calls []*call) (copies []*call) {
		for _, c := range calls {
			same := &call{kind: c.kind, key: c.key, process: c.process, life: c.life, token: c.token,
				version: c.version}
			copies = append(copies, h.add(w, p, same))
		}
		return copies
	}
	h.opens[p.life] = again(former.opens[p.life])
	for _, number := range slices.Sorted(maps.Keys(p.calls)) {
		t := ticket{p.name, p.life, number}
		h.commands[t] = again(former.commands[t])
		p.calls[number] = h.commands[t][0]
	}
}

// recoverFrom recovers from a process, and starts a history with the recovered state.
func (w *world) recoverFrom(p *process) (*protos.RegistryRecovery, bool, error) {
	term := p.storedTerm(p.lastStored())
	r, already, err := p.member.Recover()
	if err != nil || already {
		return r, already, err
	}
	w.tally.recoveries++
	former := p.history
	w.compareContents(p, r, term)
	h := historyFrom(p)
	w.histories[r.Cluster], w.latest = h, h
	ready := p.member.Ready()
	for _, o := range ready.Results { // results of unproven entries, whose effects the initial state has
		delete(p.calls, o.Ticket)
	}
	for _, m := range ready.Messages {
		for _, to := range w.processes {
			if to != p && (m.To == "" || m.To == to.name) {
				w.transmit(p, to, m.Frame)
			}
		}
	}
	if p.history != former {
		w.fail("%s has changed its history before the recovery is complete", p.name)
	}
	w.deliverReady(p)
	return r, false, nil
}

// lastStored returns the index of the last entry that a process has stored.
func (p *process) lastStored() uint64 {
	if n := len(p.disk.saved.Entries); n > 0 {
		return p.disk.saved.Entries[n-1].GetIndex()
	}
	return p.disk.saved.Snapshot.GetMetadata().GetIndex()
}

// compareContents checks that a recovery kept the state after the last stored entry, if the old
// registry committed that entry. The entry has the given term, or 0 if a snapshot contains it.
func (w *world) compareContents(p *process, r *protos.RegistryRecovery, term uint64) {
	contents, known := p.history.contents[r.Last]
	if !known || term != 0 && term != p.history.terms[r.Last] {
		return
	}
	w.tally.proven++
	if len(r.Unproven) > 0 {
		w.tally.unproven++
	}
	if got := p.member.State().Contents(); got != contents {
		w.fail("the recovery from %s has changed the state after entry %d", p.name, r.Last)
	}
}

// linearizable checks the histories of all registries.
func (w *world) linearizable() (wrong string, undecided int) {
	for _, number := range slices.Sorted(maps.Keys(w.histories)) {
		text, n := w.histories[number].linearizable()
		if undecided += n; text != "" {
			return fmt.Sprintf("registry %x: %s", number, text), undecided
		}
	}
	return "", undecided
}

// ruin crashes all processes but one and lets it recover later, if it may.
func (w *world) ruin(survivor *process) {
	for _, p := range w.processes {
		if p != survivor {
			w.crash(p)
		}
	}
	w.recoverLater(survivor)
}

// isolate cuts a process off from all others, which may have a quorum, and lets it recover later.
func (w *world) isolate(p *process) {
	for _, other := range w.processes {
		if other != p {
			w.cut[pair(p, other)] = true
		}
	}
	w.recoverLater(p)
}

func (w *world) recoverLater(p *process) {
	w.after((30+w.random.IntN(60))*tick, func() {
		if p.member != nil && !p.paused {
			w.recoverFrom(p) //nolint:errcheck // Recover may refuse
		}
	})
}

var recoveryKinds = []string{"crash", "restart", "restart", "restart", "cut", "heal", "heal", "resume", "loss", "calm",
	"old", "new", "lose", "ruin", "ruin", "isolate"}

// TestRecoveries tries seeds whose faults include the loss of quorums and recoveries, also several
// at a time. In the end one registry is left, and the histories of all of them are linearizable, each
// from the state that its recovery started with.
func TestRecoveries(t *testing.T) {
	var all tally
	for i := range *seeds {
		seed := *first + uint64(i)
		faults := draw(seed, processesOf(seed), faultCount/2, recoveryKinds)
		wrong, w := play(seed, faults, plant{})
		if wrong != "" {
			fewer := shrink(seed, faults, plant{})
			wrong, _ = play(seed, fewer, plant{})
			t.Fatalf("seed %d, with %d processes and the faults %v: %s\n"+
				"repeat: go test ./cluster/registry -run '^TestRecoveries$' -registry.seed %d -registry.seeds 1",
				seed, processesOf(seed), fewer, wrong, seed)
		}
		all.recoveries += w.tally.recoveries
		all.unproven += w.tally.unproven
		all.proven += w.tally.proven
		all.fenced += w.tally.fenced
	}
	t.Logf("%d seeds: %+v", *seeds, all)
	if *seeds >= 50 && (all.recoveries < *seeds/4 || all.proven == 0 || all.fenced == 0) {
		t.Errorf("too few recoveries: %+v", all)
	}
}

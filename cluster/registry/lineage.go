package registry

import (
	"cmp"
	"slices"

	"github.com/gradwire/gradwire/protos"
)

// lineage identifies a registry, and the earlier registries from which recoveries led to it.
type lineage struct {
	cluster    uint64   // number of the registry; 0 if it is unknown
	superseded []uint64 // numbers of the registries that it supersedes, oldest first
	standing   uint32   // as in RegistryFrame
}

// established is the standing of a registry that never gives way to a registry of another origin.
const established = 2

func lineageOf(f *protos.RegistryFrame) lineage {
	return lineage{cluster: f.GetCluster(), superseded: f.GetSuperseded(), standing: min(f.GetStanding(), established)}
}

// origin returns the number of the first registry, which a process founded.
func (l *lineage) origin() uint64 {
	if len(l.superseded) > 0 {
		return l.superseded[0]
	}
	return l.cluster
}

// supersedes reports whether members of another registry must join this one. Registries of one
// origin have a total order: more recoveries supersede fewer, then the larger number supersedes
// the smaller. So two recoveries of one registry leave one winner. A registry of another origin
// gives way only until it is established: until then its founder owns all its names, and can claim
// them again.
func (l *lineage) supersedes(other *lineage) bool {
	switch {
	case l.cluster == 0 || other.cluster == 0 || l.cluster == other.cluster:
		return false
	case l.origin() == other.origin():
		return cmp.Or(cmp.Compare(len(l.superseded), len(other.superseded)), cmp.Compare(l.cluster, other.cluster)) > 0
	}
	return other.standing < established &&
		cmp.Or(cmp.Compare(l.standing, other.standing), cmp.Compare(l.cluster, other.cluster)) > 0
}

// lineage returns the lineage of the registry that this member is in, or joins.
func (m *Member) lineage() lineage {
	if m.state.cluster == 0 {
		return m.target
	}
	l := lineage{cluster: m.state.cluster}
	for _, r := range m.state.recoveries {
		l.superseded = append(l.superseded, r.Superseded)
	}
	l.standing = m.state.standing()
	return l
}

// standing returns the standing of the registry, as in RegistryFrame.
func (s *State) standing() uint32 {
	founder, standing := "", uint32(0)
	for _, v := range s.members {
		if v.Joined == 1 {
			founder = v.Name
		} else {
			standing = 1
		}
	}
	if founder == "" || len(s.recoveries) > 0 {
		return established
	}
	for process := range s.processes {
		if process != founder {
			return established
		}
	}
	return standing
}

// checkLineage reports whether a frame may come from a member of this member's registry. If the
// sender's registry supersedes this member's, this member leaves its registry. In the reverse case
// this member answers, so that the sender leaves.
func (m *Member) checkLineage(f *protos.RegistryFrame) bool {
	own, theirs := m.lineage(), lineageOf(f)
	switch {
	case own.cluster == 0 || theirs.cluster == 0:
		return true
	case own.cluster == theirs.cluster:
		m.target.standing = theirs.standing // a standing grows
		return true
	case theirs.supersedes(&own):
		m.giveUp(&own, &theirs, f.GetName())
	case m.state.cluster == 0: // this member waits for another registry
	case own.supersedes(&theirs):
		m.ready.Messages = append(m.ready.Messages, Message{To: f.GetName(), Frame: m.hello()})
	case own.origin() != theirs.origin():
		if m.other != f.GetName() {
			m.logf("process %s is in another registry (%x, not %x): both may grant the same name; stop the processes "+
				"of one registry, delete their logs and start them with --join", f.GetName(), theirs.cluster, own.cluster)
		}
		m.other, m.otherHeard = f.GetName(), m.now
	}
	return false
}

// giveUp leaves this member's registry. The member becomes a new member, without a state, of the
// registry that supersedes it.
func (m *Member) giveUp(own, to *lineage, process string) {
	m.logf("registry %x of process %s supersedes registry %x: this process joins the new registry as a new member. "+
		"It copies its log file, if it has one, and drops its log, which ends at entry %d and has %s",
		to.cluster, process, own.cluster, m.lastIndex(), m.state.holdings())
	saved := &Saved{Identity: &protos.RegistryIdentity{Name: m.config.Name, Id: m.newID(), Joins: to.cluster,
		Superseded: to.superseded}}
	if err := m.replaceLog(saved, own.cluster); err != nil {
		m.stop(err)
		return
	}
	m.target.standing = to.standing
	m.session.restart(m)
}

// replaceLog replaces the stored log, which belongs to the registry with the given number, and
// continues from the new log.
func (m *Member) replaceLog(saved *Saved, number uint64) error {
	if err := m.config.Storage.Replace(saved, number); err != nil {
		return err
	}
	for _, r := range m.reads {
		r.index, r.due = 0, m.now
	}
	m.timer.restart()
	return m.adopt(saved)
}

// lastIndex returns the index of the last entry in the log; 0 in an empty log.
func (m *Member) lastIndex() uint64 {
	last, err := m.log.LastIndex()
	if err != nil {
		return 0
	}
	return last
}

// announce sends the leader's lineage to all processes. Members of a superseded registry then join
// this registry. Members of a registry that supersedes this one answer.
func (m *Member) announce() {
	interval := m.config.ReplaceTicks
	if m.state.standing() < established {
		interval = m.config.ElectionTicks
	}
	if m.now-m.announced < interval {
		return
	}
	m.announced = m.now
	m.ready.Messages = append(m.ready.Messages, Message{Frame: m.hello()})
}

// validLineage reports whether the numbers of a registry and of those that it supersedes are
// distinct, and none is 0. Only a member without a registry has number 0, and supersedes none.
func validLineage(superseded []uint64, cluster uint64) bool {
	for i, number := range superseded {
		if number == 0 || number == cluster || slices.Contains(superseded[:i], number) {
			return false
		}
	}
	return len(superseded) == 0 || cluster != 0
}

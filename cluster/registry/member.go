package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// Config configures a member. Durations are in ticks.
type Config struct {
	// Name and Incarnation identify the process.
	Name        string
	Incarnation uint64
	// MayFound makes a member without a log found a registry; otherwise it asks to join one. A member
	// whose log is damaged never founds a registry.
	MayFound bool
	// Volatile says that the storage ends with the process. Such a member never founds a registry, and
	// fewer than half of the voters are volatile.
	Volatile bool
	// Seed decides the election timer, and the id of a member without a log. Seeds of different
	// members and incarnations must differ.
	Seed uint64
	// Storage stores the log.
	Storage Storage
	// HeartbeatTicks is the interval between heartbeats of a leader.
	HeartbeatTicks int
	// ElectionTicks is the election timeout: followers of a leader that is silent for as long elect
	// another, and a leader that hears from no quorum for as long steps down.
	ElectionTicks int
	// RetryTicks is the interval at which commands and reads without an answer are repeated.
	RetryTicks int
	// ReplaceTicks is the silence after which a leader replaces a voter by another member.
	ReplaceTicks int
	// SnapshotEntries is the number of entries after which a snapshot replaces them.
	SnapshotEntries uint64
	// Log, if not nil, writes a line about an event that an operator should know.
	Log func(format string, args ...any)
}

// Message is a frame for the process To, or for all other processes if To is empty.
type Message struct {
	To    string
	Frame *protos.RegistryFrame
}

// Outcome is the result of the command with a ticket. After code NO_SESSION the command may have
// had its effect or not: the member's session has ended, and its results with it.
type Outcome struct {
	Ticket uint64
	Result *protos.RegistryResult
}

// Ready holds the effects of a member's inputs.
type Ready struct {
	// Messages are for the caller to send. Any of them may be lost.
	Messages []Message
	// Results are the results of commands.
	Results []Outcome
	// Reads are the tickets of completed reads: until the next input, State answers them.
	Reads []uint64
}

// Member is one process's replica of the registry. It is not safe for concurrent use. After each
// input (Tick, Step, Submit, Read, Leave) the caller must call Ready.
type Member struct {
	config Config
	id     uint64
	random *rand.Rand
	node   *raft.RawNode
	log    view
	timer  *timer
	failed error // why the member has stopped

	state        *State
	applied      uint64
	conf         *raftpb.ConfState
	stored       uint64                            // index of the stored snapshot
	hard         *raftpb.HardState                 // hard state that is not stored yet; nil if all is
	names        map[uint64]string                 // process names of the senders of messages, by member id
	lastHeard    map[uint64]int                    // ticks of the latest messages, by member; nil unless leader
	heard        map[uint64]heardFrame             // latest frames, by member
	joins        map[uint64]*protos.RegistryMember // members that ask to join, by id
	snapshotSent map[uint64]int                    // ticks at which unconfirmed snapshots were sent, by receiver

	target          lineage // registry to join; number 0 for any registry
	other           string  // process that sent the latest frame of an unrelated registry
	otherHeard      int     // tick of that frame
	announcedCommit uint64  // largest commit index that a leader of this registry has announced

	now        int // ticks since the start
	led        int // latest tick with a leader
	announced  int // tick of the latest announcement
	leader     bool
	lastJoin   int // tick of the latest request to join
	lastChange int // tick of the pending membership change; 0 without one
	leaving    bool
	leavingDue int

	session  session
	lastRead uint64
	reads    []*read
	ready    Ready
}

// read is a pending linearizable read.
type read struct {
	ticket uint64
	due    int    // tick at which the read index is requested again
	index  uint64 // read index: the last entry that State must contain; 0 if unknown
}

// New returns a member that continues the log in its storage.
func New(c Config) (*Member, error) {
	m := &Member{
		config: c, random: rand.New(rand.NewPCG(c.Seed, 1)), timer: newTimer(c.ElectionTicks, c.Seed),
	}
	saved, err := m.load()
	if err != nil {
		return nil, err
	}
	return m, m.adopt(saved)
}

// adopt turns this member into the one that a stored log belongs to.
func (m *Member) adopt(saved *Saved) (err error) {
	c := &m.config
	m.id, m.state, m.applied, m.stored, m.conf, m.hard = saved.Identity.Id, newState(), 0, 0, &raftpb.ConfState{}, nil
	m.names, m.joins, m.snapshotSent = map[uint64]string{}, map[uint64]*protos.RegistryMember{}, map[uint64]int{}
	m.lastHeard, m.heard, m.announcedCommit = nil, map[uint64]heardFrame{}, 0
	m.leader, m.lastChange, m.lastJoin = false, 0, m.now-c.ElectionTicks
	m.target = lineage{cluster: saved.Identity.GetJoins(), superseded: saved.Identity.GetSuperseded()}
	m.log = view{raft.NewMemoryStorage(), m.snapshot}
	if err := m.log.load(saved); err != nil {
		return err
	}
	if saved.Snapshot != nil {
		if err := m.restore(saved.Snapshot); err != nil {
			return err
		}
		m.stored = m.applied
	}
	m.node, err = raft.NewRawNode(&raft.Config{
		ID: m.id, ElectionTick: c.ElectionTicks, HeartbeatTick: c.HeartbeatTicks, Storage: m.log,
		Applied: m.applied, MaxSizePerMsg: 1 << 18, MaxUncommittedEntriesSize: 1 << 22, MaxInflightMsgs: 64,
		CheckQuorum: true, PreVote: true, StepDownOnRemoval: true, Logger: quiet{},
	})
	return err
}

// load loads the log, or creates another if there is none or it is unusable.
func (m *Member) load() (*Saved, error) {
	c := &m.config
	saved, err := c.Storage.Load()
	damaged := errors.Is(err, ErrDamaged)
	switch {
	case damaged:
		m.logf("%v; this process joins the registry as a new member", err)
	case err != nil:
		return nil, err
	case saved != nil && saved.Identity.GetName() == c.Name:
		if !c.MayFound || c.Volatile || saved.Hard != nil || saved.Snapshot != nil || saved.Identity.GetJoins() != 0 {
			return saved, nil
		}
		return m.found(saved) // the member has never joined a registry
	case saved != nil:
		m.logf("the log belongs to process %s; this process joins as a new member", saved.Identity.GetName())
		damaged = true
	}
	saved = &Saved{Identity: &protos.RegistryIdentity{Name: c.Name, Id: m.newID()}}
	if err := c.Storage.Create(saved.Identity); err != nil {
		return nil, err
	}
	if !c.MayFound || c.Volatile || damaged {
		return saved, nil
	}
	return m.found(saved)
}

// found starts a registry with this member in an empty log.
func (m *Member) found(saved *Saved) (_ *Saved, err error) {
	saved.Hard = &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}
	saved.Snapshot, err = m.foundingSnapshot(saved.Identity)
	if err == nil {
		err = m.config.Storage.Save(&Update{Hard: saved.Hard, Snapshot: saved.Snapshot, Reset: true})
	}
	return saved, err
}

// newID returns a random id. It avoids 0 and the large ids that raft reserves.
func (m *Member) newID() uint64 { return 1 + m.random.Uint64()>>1 }

// foundingSnapshot returns the first snapshot of a new registry, whose only member is this one.
func (m *Member) foundingSnapshot(id *protos.RegistryIdentity) (*raftpb.Snapshot, error) {
	s := newState()
	s.cluster = m.newID()
	s.members[id.Id] = &protos.RegistryMember{Id: id.Id, Name: id.Name, Joined: 1}
	data, err := s.snapshot()
	return &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{Voters: []uint64{id.Id}},
	}}, err
}

// ID returns the member's id.
func (m *Member) ID() uint64 { return m.id }

// Err returns why the member has stopped; nil if it has not.
func (m *Member) Err() error { return m.failed }

// State returns the state after the entries that the member has applied.
func (m *Member) State() *State { return m.state }

func (m *Member) logf(format string, args ...any) {
	if m.config.Log != nil {
		m.config.Log(format, args...)
	}
}

// stop ends the member's part in the registry for this incarnation, because the stored log may lack
// its votes and acknowledgements.
func (m *Member) stop(err error) {
	if m.failed == nil {
		m.failed = err
		m.logf("the registry's member stops: %v", err)
	}
}

// Tick advances the member's time by one tick.
func (m *Member) Tick() {
	if m.failed != nil {
		return
	}
	m.now++
	status := m.node.BasicStatus()
	m.leader = status.RaftState == raft.StateLeader
	if status.Lead != raft.None {
		m.led = m.now
	}
	if m.leader {
		m.node.Tick()
		m.manage()
	} else {
		m.lastHeard, m.lastChange = nil, 0
		clear(m.joins)
		if status.Lead == raft.None && m.onlyVoter() {
			m.timer.silent = m.timer.due // campaign at once: no other member can lead
		}
		if err := m.timer.tick(m.node); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
			m.stop(err)
		}
		m.join(&status)
	}
	m.retry()
}

// onlyVoter reports whether this member is the only voter.
func (m *Member) onlyVoter() bool {
	return len(m.conf.GetVoters()) == 1 && m.conf.GetVoters()[0] == m.id && len(m.conf.GetVotersOutgoing()) == 0
}

// join asks all processes for membership while no leader is known. The member may be new, or the
// leader may have removed it during its absence.
func (m *Member) join(status *raft.BasicStatus) {
	if status.Lead != raft.None || m.now-m.lastJoin < m.config.ElectionTicks || m.leaving {
		return
	}
	m.lastJoin = m.now
	m.ready.Messages = append(m.ready.Messages, Message{Frame: m.hello()})
}

// frame returns a frame without a receiver or a message. Only a member with a state names its
// registry: other members must not leave theirs for a registry whose last copy may be lost.
func (m *Member) frame() *protos.RegistryFrame {
	own := m.lineage()
	if m.state.cluster == 0 {
		own = lineage{}
	}
	return &protos.RegistryFrame{Cluster: own.cluster, From: m.id, Name: m.config.Name, Superseded: own.superseded,
		Standing: own.standing}
}

// hello returns a frame that describes this member: a request to join, an announcement or an answer.
func (m *Member) hello() *protos.RegistryFrame {
	f := m.frame()
	f.LastTerm, f.LastIndex = m.lastEntry()
	f.Volatile = m.config.Volatile
	return f
}

// Step handles a frame from another process. It ignores frames for other members.
func (m *Member) Step(f *protos.RegistryFrame) {
	if m.failed != nil || !m.fromOther(f) || !m.checkLineage(f) {
		return
	}
	m.noteHeard(f)
	if f.GetTo() == 0 {
		if m.leader && len(m.joins) < maxJoins {
			m.joins[f.GetFrom()] = &protos.RegistryMember{Id: f.GetFrom(), Name: f.GetName(), Volatile: f.GetVolatile()}
		}
		return
	}
	message := &raftpb.Message{}
	if f.GetTo() != m.id || proto.Unmarshal(f.GetMessage(), message) != nil || !acceptable(f, message) {
		return
	}
	if _, known := m.names[f.GetFrom()]; known || len(m.names) < maxNames {
		m.names[f.GetFrom()] = f.GetName()
	}
	if m.lastHeard != nil && m.state.members[f.GetFrom()] != nil {
		m.lastHeard[f.GetFrom()] = m.now
	}
	before := m.node.BasicStatus()
	err := m.node.Step(message)
	if err != nil && !errors.Is(err, raft.ErrProposalDropped) && !errors.Is(err, raft.ErrStepPeerNotFound) {
		m.logf("raft rejects a message from %s: %v", f.GetName(), err)
	}
	after := m.node.BasicStatus()
	m.timer.observe(message, before, after)
	if message.GetType() == raftpb.MsgApp && message.GetFrom() == after.Lead && message.GetTerm() == after.GetTerm() {
		m.announcedCommit = max(m.announcedCommit, message.GetCommit())
	}
}

const (
	// maxNames bounds Member.names, maxJoins the pending requests to join.
	maxNames = 1024
	maxJoins = 64
)

// Read starts a linearizable read. Ready returns the ticket once State contains all entries that
// were committed when the read started.
func (m *Member) Read() (ticket uint64) {
	m.lastRead++
	r := &read{ticket: m.lastRead, due: m.now}
	m.reads = append(m.reads, r)
	m.askRead(r)
	return r.ticket
}

// CancelRead cancels a pending read.
func (m *Member) CancelRead(ticket uint64) {
	m.reads = slices.DeleteFunc(m.reads, func(r *read) bool { return r.ticket == ticket })
}

// askRead asks the leader for the read index of a read: the last entry that State must contain. The
// context names the incarnation, because an answer to an earlier incarnation is stale.
func (m *Member) askRead(r *read) {
	r.due = m.now + m.config.RetryTicks
	if m.failed == nil {
		context := binary.BigEndian.AppendUint64(nil, m.config.Incarnation)
		m.node.ReadIndex(binary.BigEndian.AppendUint64(context, r.ticket))
	}
}

// recordReadIndex records the leader's answer to askRead.
func (m *Member) recordReadIndex(s raft.ReadState) {
	if len(s.RequestCtx) != 16 || binary.BigEndian.Uint64(s.RequestCtx) != m.config.Incarnation {
		return
	}
	ticket := binary.BigEndian.Uint64(s.RequestCtx[8:])
	for _, r := range m.reads {
		if r.ticket == ticket && r.index == 0 {
			r.index = s.Index
		}
	}
}

// retry repeats requests without an answer.
func (m *Member) retry() {
	for _, r := range m.reads {
		if r.index == 0 && m.now >= r.due {
			m.askRead(r)
		}
	}
	m.session.retry(m)
	m.proposeDeparture()
}

// proposeDeparture proposes to record whether this member leaves, unless the state says so already.
func (m *Member) proposeDeparture() {
	self := m.state.members[m.id]
	if self == nil || self.Left == m.leaving || m.now < m.leavingDue {
		return
	}
	m.leavingDue = m.now + m.config.RetryTicks
	c := &protos.RegistryCommand{Kind: &protos.RegistryCommand_Returned{Returned: m.id}}
	if m.leaving {
		c.Kind = &protos.RegistryCommand_Left{Left: m.id}
	}
	m.propose(c)
}

// propose proposes a command to the leader. The proposal may be lost.
func (m *Member) propose(c *protos.RegistryCommand) {
	data, err := proto.Marshal(c)
	if err == nil && m.failed == nil {
		err = m.node.Propose(data)
	}
	if err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		m.logf("a command cannot be proposed: %v", err)
	}
}

// Leave asks the leader to give this member's vote to another member and then to remove this
// member. Status shows the progress. The member does not ask to join again.
func (m *Member) Leave() { m.leaving, m.leavingDue = true, m.now }

// Ready stores raft's updates, applies the committed entries, and returns the effects of the inputs
// since the last call.
func (m *Member) Ready() Ready {
	for m.failed == nil && m.node.HasReady() {
		rd := m.node.Ready()
		if err := m.handle(&rd); err != nil {
			m.stop(err)
			m.ready = Ready{}
			break
		}
		m.node.Advance(rd)
	}
	if m.failed == nil {
		if err := m.compact(); err != nil {
			m.stop(err)
		}
		m.reads = slices.DeleteFunc(m.reads, func(r *read) bool {
			readable := r.index > 0 && m.applied >= r.index
			if readable {
				m.ready.Reads = append(m.ready.Reads, r.ticket)
			}
			return readable
		})
	}
	rest := m.ready
	m.ready = Ready{}
	return rest
}

// handle executes one Ready of raft: it stores, then sends, then applies.
func (m *Member) handle(rd *raft.Ready) error {
	if err := m.save(rd); err != nil {
		return err
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		if err := m.restore(rd.Snapshot); err != nil {
			return err
		}
		m.stored = m.applied
		m.session.finishRestored(m)
	}
	for _, message := range rd.Messages {
		m.send(message)
	}
	for _, e := range rd.CommittedEntries {
		m.apply(e)
	}
	for _, s := range rd.ReadStates {
		m.recordReadIndex(s)
	}
	return nil
}

// save stores votes, terms, entries and snapshots before the other members rely on them. A new
// commit index alone waits for the next update, because the member learns it again after a restart.
// The commit index of a membership change is stored at once. If a restart undid the change, the
// members that completed it could be gone, and no leader could complete it again.
func (m *Member) save(rd *raft.Ready) error {
	u := &Update{Entries: rd.Entries}
	if !raft.IsEmptyHardState(rd.HardState) {
		m.hard = rd.HardState
		if err := m.log.SetHardState(rd.HardState); err != nil {
			return err
		}
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		u.Snapshot, u.Reset = rd.Snapshot, true
		if err := m.log.ApplySnapshot(rd.Snapshot); err != nil {
			return err
		}
	}
	changes := slices.ContainsFunc(rd.CommittedEntries, func(e *raftpb.Entry) bool {
		return e.GetType() == raftpb.EntryConfChangeV2
	})
	if rd.MustSync || u.Reset || changes {
		if err := m.write(u); err != nil {
			return err
		}
	}
	return m.log.Append(rd.Entries)
}

// write stores an update with the latest hard state.
func (m *Member) write(u *Update) error {
	u.Hard = m.hard
	if err := m.config.Storage.Save(u); err != nil {
		return fmt.Errorf("the registry's log cannot be written: %w", err)
	}
	m.hard = nil
	return nil
}

// restore replaces the state by the state of a snapshot.
func (m *Member) restore(s *raftpb.Snapshot) error {
	state, err := restoreState(s.GetData())
	if err != nil {
		return fmt.Errorf("a snapshot of the registry cannot be read: %w", err)
	}
	m.state, m.applied, m.conf = state, s.GetMetadata().GetIndex(), s.GetMetadata().GetConfState()
	return nil
}

// snapshot returns a snapshot of the present state.
func (m *Member) snapshot() (*raftpb.Snapshot, error) {
	data, err := m.state.snapshot()
	if err != nil {
		return nil, err
	}
	term, err := m.log.Term(m.applied)
	if err != nil {
		return nil, err
	}
	conf := proto.Clone(m.conf).(*raftpb.ConfState)
	return &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{
		Index: new(m.applied), Term: &term, ConfState: conf,
	}}, nil
}

// compact replaces the entries by a snapshot once there are SnapshotEntries of them. The view keeps
// the entries since the previous snapshot, so that members that lag a little need no snapshot.
func (m *Member) compact() error {
	if m.applied-m.stored < m.config.SnapshotEntries {
		return nil
	}
	s, err := m.snapshot()
	if err != nil {
		return err
	}
	if err := m.write(&Update{Snapshot: s}); err != nil {
		return err
	}
	if err := m.log.Compact(m.stored); err != nil && !errors.Is(err, raft.ErrCompacted) {
		return err
	}
	m.stored = m.applied
	return nil
}

// send adds a message to Ready. It drops the message if the receiver's process is unknown.
func (m *Member) send(message *raftpb.Message) {
	to := message.GetTo()
	name := m.state.members[to].GetName()
	if name == "" {
		name = m.names[to]
	}
	data, err := proto.Marshal(message)
	if name == "" || err != nil {
		return
	}
	if message.GetType() == raftpb.MsgSnap {
		m.snapshotSent[to] = m.now
	}
	f := m.frame()
	f.To, f.Message = to, data
	m.ready.Messages = append(m.ready.Messages, Message{To: name, Frame: f})
}

// apply applies a committed entry. Every member skips an unreadable entry; otherwise that entry
// would stop all members.
func (m *Member) apply(e *raftpb.Entry) {
	m.applied = e.GetIndex()
	switch {
	case e.GetType() == raftpb.EntryConfChangeV2:
		if err := m.applyChange(e.GetData()); err != nil {
			m.logf("entry %d is skipped, because it is not a membership change: %v", m.applied, err)
		}
		return
	case e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0:
		return
	}
	var c protos.RegistryCommand
	if err := proto.Unmarshal(e.GetData(), &c); err != nil {
		m.logf("entry %d is skipped, because it is not a command: %v", m.applied, err)
		return
	}
	m.session.finishEntry(m, &c, m.state.apply(m.applied, &c))
}

// quiet is raft's logger. It discards messages, because Member logs the events that matter to an
// operator, and panics where raft reports a violated invariant.
type quiet struct{}

func (quiet) Debug(...any)            {}
func (quiet) Debugf(string, ...any)   {}
func (quiet) Error(...any)            {}
func (quiet) Errorf(string, ...any)   {}
func (quiet) Info(...any)             {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warning(...any)          {}
func (quiet) Warningf(string, ...any) {}
func (quiet) Fatal(v ...any)          { panic(fmt.Sprint(v...)) }
func (quiet) Fatalf(f string, v ...any) {
	panic(fmt.Sprintf(f, v...))
}
func (quiet) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (quiet) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

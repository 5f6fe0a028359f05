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

// Config is a member. Spans are in ticks.
type Config struct {
	// Name and Incarnation are the process's.
	Name        string
	Incarnation uint64
	// MayFound has a member without a log found a registry, rather than ask to join one. A member whose
	// log is damaged never founds one.
	MayFound bool
	// Seed decides the election timer, and the id of a member without a log. Seeds of different
	// members and incarnations must differ.
	Seed uint64
	// Storage has the log.
	Storage Storage
	// HeartbeatTicks is the time between two heartbeats of a leader.
	HeartbeatTicks int
	// ElectionTicks is the silence after which a leader counts as lost, and the time within which a
	// leader must hear from a quorum.
	ElectionTicks int
	// RetryTicks is the time after which a command or read is sent again.
	RetryTicks int
	// ReplaceTicks is the silence after which another member gets a voter's vote.
	ReplaceTicks int
	// SnapshotEntries is how many entries a log has at most before a snapshot replaces them.
	SnapshotEntries uint64
	// Log, if not nil, gets a line for each thing that an operator should know.
	Log func(format string, args ...any)
}

// Message is a frame for a process; for all other processes if To is empty.
type Message struct {
	To    string
	Frame *protos.RegistryFrame
}

// Outcome is the result of a command. With code NO_SESSION the result is unknown for good: the
// member lost its session while it was cut off.
type Outcome struct {
	Ticket uint64
	Result *protos.RegistryResult
}

// Ready is what a member's inputs have led to.
type Ready struct {
	// Messages are to be sent. Each may be lost.
	Messages []Message
	// Results are those of commands.
	Results []Outcome
	// Reads are the tickets of reads for which State is recent enough until the next input.
	Reads []uint64
}

// Member is one process's replica of the registry. It may not be used by several goroutines at a
// time. After each input the caller must take Ready.
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
	stored       uint64            // index of the stored snapshot
	hard         *raftpb.HardState // not stored yet: it differs in the commit index alone
	names        map[uint64]string // processes of members that this one has heard of, by id
	lastHeard    map[uint64]int    // when a leader has last heard of each member
	joins        map[uint64]string // processes that ask a leader to let them join, by id
	snapshotSent map[uint64]int    // ticks at which unconfirmed snapshots were sent, by receiver

	now        int // in ticks
	leader     bool
	lastJoin   int // when the member last asked to join
	lastChange int // when the leader last proposed a change of the members
	leaving    bool
	leavingDue int

	session  session
	lastRead uint64
	reads    []*read
	ready    Ready
}

// read is a linearizable read.
type read struct {
	ticket uint64
	due    int    // when the leader is asked again
	index  uint64 // the read needs the entries up to here; 0 if not known yet
}

// New returns a member with the log in its storage.
func New(c Config) (*Member, error) {
	m := &Member{
		config: c, random: rand.New(rand.NewPCG(c.Seed, 1)), timer: newTimer(c.ElectionTicks, c.Seed),
		names: map[uint64]string{}, joins: map[uint64]string{}, snapshotSent: map[uint64]int{}, state: newState(),
		lastJoin: -c.ElectionTicks, conf: &raftpb.ConfState{},
	}
	saved, err := m.load()
	if err != nil {
		return nil, err
	}
	m.id = saved.Identity.Id
	m.log = view{raft.NewMemoryStorage(), m.snapshot}
	if err := m.log.load(saved); err != nil {
		return nil, err
	}
	if saved.Snapshot != nil {
		if err := m.restore(saved.Snapshot); err != nil {
			return nil, err
		}
		m.stored = m.applied
	}
	m.node, err = raft.NewRawNode(&raft.Config{
		ID: m.id, ElectionTick: c.ElectionTicks, HeartbeatTick: c.HeartbeatTicks, Storage: m.log,
		Applied: m.applied, MaxSizePerMsg: 1 << 18, MaxUncommittedEntriesSize: 1 << 22, MaxInflightMsgs: 64,
		CheckQuorum: true, PreVote: true, StepDownOnRemoval: true, Logger: quiet{},
	})
	return m, err
}

// load reads the log, and starts a new one if there is none that can be used.
func (m *Member) load() (*Saved, error) {
	c := &m.config
	saved, err := c.Storage.Load()
	damaged := errors.Is(err, ErrDamaged)
	switch {
	case damaged:
		m.logf("%v: this process joins the registry as a new member", err)
	case err != nil:
		return nil, err
	case saved != nil && saved.Identity.GetName() == c.Name:
		return saved, nil
	case saved != nil:
		m.logf("the log is that of process %s: this process joins as a new member", saved.Identity.GetName())
		damaged = true
	}
	saved = &Saved{Identity: &protos.RegistryIdentity{Name: c.Name, Id: m.newID()}}
	if err := c.Storage.Create(saved.Identity); err != nil {
		return nil, err
	}
	if !c.MayFound || damaged {
		return saved, nil
	}
	saved.Hard = &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}
	saved.Snapshot, err = m.foundingSnapshot(saved.Identity)
	if err == nil {
		err = c.Storage.Save(&Update{Hard: saved.Hard, Snapshot: saved.Snapshot, Reset: true})
	}
	return saved, err
}

// newID returns a random number other than 0 and those that raft gives a meaning.
func (m *Member) newID() uint64 { return 1 + m.random.Uint64()>>1 }

// foundingSnapshot returns the first snapshot of a registry with one member.
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

// State returns the state as of the entries that the member has applied.
func (m *Member) State() *State { return m.state }

func (m *Member) logf(format string, args ...any) {
	if m.config.Log != nil {
		m.config.Log(format, args...)
	}
}

// stop ends the member's part in the registry for this incarnation: what it has promised may not be
// stored.
func (m *Member) stop(err error) {
	if m.failed == nil {
		m.failed = err
		m.logf("this process takes no part in the registry until it is restarted: %v", err)
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
	if m.leader {
		m.node.Tick()
		m.manage()
	} else {
		m.lastHeard, m.lastChange = nil, 0
		clear(m.joins)
		if status.Lead == raft.None && m.onlyVoter() {
			m.timer.silent = m.timer.due // there is nobody to wait for
		}
		if err := m.timer.tick(m.node); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
			m.stop(err)
		}
		m.join(&status)
	}
	m.retry()
}

// onlyVoter reports whether this member has the only vote.
func (m *Member) onlyVoter() bool {
	return len(m.conf.GetVoters()) == 1 && m.conf.GetVoters()[0] == m.id && len(m.conf.GetVotersOutgoing()) == 0
}

// join asks all processes for membership while no leader is known: this member may never have had
// it, or may have lost it while it was away.
func (m *Member) join(status *raft.BasicStatus) {
	if status.Lead != raft.None || m.now-m.lastJoin < m.config.ElectionTicks || m.leaving {
		return
	}
	m.lastJoin = m.now
	m.ready.Messages = append(m.ready.Messages, Message{Frame: m.frame()})
}

func (m *Member) frame() *protos.RegistryFrame {
	return &protos.RegistryFrame{Cluster: m.state.cluster, From: m.id, Name: m.config.Name}
}

// Step handles a frame from another process. It ignores frames that are not for this member.
func (m *Member) Step(f *protos.RegistryFrame) {
	if m.failed != nil || !m.fromOther(f) {
		return
	}
	if f.GetTo() == 0 {
		if m.leader && len(m.joins) < maxJoins {
			m.joins[f.GetFrom()] = f.GetName()
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
		m.logf("a message of %s: %v", f.GetName(), err)
	}
	m.timer.observe(message, before, m.node.BasicStatus())
}

const (
	// maxNames bounds how many members' processes are remembered, maxJoins how many ask to join.
	maxNames = 1024
	maxJoins = 64
)

// Read begins a linearizable read, whose ticket Ready returns once State is recent enough.
func (m *Member) Read() (ticket uint64) {
	m.lastRead++
	r := &read{ticket: m.lastRead, due: m.now}
	m.reads = append(m.reads, r)
	m.askRead(r)
	return r.ticket
}

// CancelRead ends a read that the caller does not wait for any longer.
func (m *Member) CancelRead(ticket uint64) {
	m.reads = slices.DeleteFunc(m.reads, func(r *read) bool { return r.ticket == ticket })
}

// askRead asks the leader which entries a read needs. The context names the incarnation: an answer
// to an earlier one says nothing about this read.
func (m *Member) askRead(r *read) {
	r.due = m.now + m.config.RetryTicks
	if m.failed == nil {
		context := binary.BigEndian.AppendUint64(nil, m.config.Incarnation)
		m.node.ReadIndex(binary.BigEndian.AppendUint64(context, r.ticket))
	}
}

// recordReadIndex takes the leader's answer to askRead.
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

// retry repeats what has got no answer.
func (m *Member) retry() {
	for _, r := range m.reads {
		if r.index == 0 && m.now >= r.due {
			m.askRead(r)
		}
	}
	m.session.retry(m)
	m.proposeDeparture()
}

// proposeDeparture has the registry know whether this member leaves.
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

// propose asks the leader to append a command. The proposal may be lost.
func (m *Member) propose(c *protos.RegistryCommand) {
	data, err := proto.Marshal(c)
	if err == nil && m.failed == nil {
		err = m.node.Propose(data)
	}
	if err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		m.logf("a command cannot be proposed: %v", err)
	}
}

// Leave asks that another member get this one's vote, and that the group do without this one. See
// Status for when that is so. The member neither campaigns for membership nor joins again.
func (m *Member) Leave() { m.leaving, m.leavingDue = true, m.now }

// Ready saves what must be durable, applies what is committed, and returns what has come of the
// inputs since the last call.
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

// handle carries out what raft asks for: first save, then send, then apply.
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

// save stores what the other members will rely on. A commit index alone waits for the next update:
// after a restart the member learns it again. But a change of the group that was applied must not be
// forgotten: those who ended it may be gone by then, and nobody could end it again.
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

func (m *Member) write(u *Update) error {
	u.Hard = m.hard
	if err := m.config.Storage.Save(u); err != nil {
		return fmt.Errorf("the registry's log cannot be written: %w", err)
	}
	m.hard = nil
	return nil
}

// restore takes over the state of a snapshot.
func (m *Member) restore(s *raftpb.Snapshot) error {
	state, err := restoreState(s.GetData())
	if err != nil {
		return fmt.Errorf("a snapshot of the registry: %w", err)
	}
	m.state, m.applied, m.conf = state, s.GetMetadata().GetIndex(), s.GetMetadata().GetConfState()
	return nil
}

// snapshot returns the state as of the entries applied.
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

// compact replaces entries by a snapshot once there are many. The view keeps those since the
// snapshot before, for members that lag a little.
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

// send addresses a message. It is lost if the receiver's process is not known.
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

// apply carries out a committed entry. All members skip one that cannot be read: it must not stop them
// all.
func (m *Member) apply(e *raftpb.Entry) {
	m.applied = e.GetIndex()
	switch {
	case e.GetType() == raftpb.EntryConfChangeV2:
		if err := m.applyChange(e.GetData()); err != nil {
			m.logf("skips entry %d, which is no change of the members: %v", m.applied, err)
		}
		return
	case e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0:
		return
	}
	var c protos.RegistryCommand
	if err := proto.Unmarshal(e.GetData(), &c); err != nil {
		m.logf("skips entry %d, which is no command: %v", m.applied, err)
		return
	}
	m.session.finishEntry(m, &c, m.state.apply(m.applied, &c))
}

// quiet is raft's logger: a Member tells of what an operator should know itself. What raft takes for
// impossible panics.
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

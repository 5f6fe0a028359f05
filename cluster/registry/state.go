package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

const (
	// maxSessions bounds the sessions. The session that has been idle longest is evicted; its process
	// opens another session.
	maxSessions = 1024
	// maxEnded bounds the ended submissions. The registry evicts the one that ended first.
	maxEnded = 1000
)

// State is the replicated state. It depends on nothing but the applied entries.
type State struct {
	cluster     uint64
	members     map[uint64]*protos.RegistryMember
	names       map[string]*protos.RegistryName
	submissions map[string]*protos.RegistrySubmission
	actors      map[string]*protos.RegistryActor
	sessions    map[uint64]*protos.RegistrySession
	processes   map[string]uint64 // latest incarnation by process
	recoveries  []*protos.RegistryRecovery
}

func newState() *State {
	return &State{
		members:     map[uint64]*protos.RegistryMember{},
		names:       map[string]*protos.RegistryName{},
		submissions: map[string]*protos.RegistrySubmission{},
		actors:      map[string]*protos.RegistryActor{},
		sessions:    map[uint64]*protos.RegistrySession{},
		processes:   map[string]uint64{},
	}
}

// restoreState decodes a snapshot.
func restoreState(data []byte) (*State, error) {
	var m protos.RegistryState
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	s := newState()
	s.cluster = m.Cluster
	for _, v := range m.Members {
		s.members[v.Id] = v
	}
	for _, v := range m.Names {
		s.names[v.Name] = v
	}
	for _, v := range m.Submissions {
		s.submissions[v.Id] = v
	}
	for _, v := range m.Actors {
		s.actors[v.Name] = v
	}
	for _, v := range m.Sessions {
		if v.Results == nil {
			v.Results = map[uint64]*protos.RegistryResult{}
		}
		s.sessions[v.Id] = v
	}
	for _, v := range m.Processes {
		s.processes[v.Name] = v.Incarnation
	}
	s.recoveries = m.Recoveries
	return s, nil
}

// clone returns an independent copy.
func (s *State) clone() (*State, error) {
	data, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	return restoreState(data)
}

// snapshot encodes the state. Equal states have equal encodings.
func (s *State) snapshot() ([]byte, error) {
	m := &protos.RegistryState{
		Cluster:     s.cluster,
		Members:     sortedValues(s.members),
		Names:       sortedValues(s.names),
		Submissions: sortedValues(s.submissions),
		Actors:      sortedValues(s.actors),
		Sessions:    sortedValues(s.sessions),
		Recoveries:  s.recoveries,
	}
	for _, name := range slices.Sorted(maps.Keys(s.processes)) {
		m.Processes = append(m.Processes, &protos.RegistryProcess{Name: name, Incarnation: s.processes[name]})
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// maxHoldings bounds both the names and the submissions that holdings lists.
const maxHoldings = 20

// holdings lists names and submissions, for a log line.
func (s *State) holdings() string {
	list := func(kind string, all []string) string {
		slices.Sort(all)
		text := fmt.Sprintf("%d %s", len(all), kind)
		if len(all) > 0 {
			text += " (" + strings.Join(all[:min(len(all), maxHoldings)], ", ")
			if len(all) > maxHoldings {
				text += ", …"
			}
			text += ")"
		}
		return text
	}
	return list("names", slices.Collect(maps.Keys(s.names))) + " and " +
		list("submissions", slices.Collect(maps.Keys(s.submissions)))
}

// sortedValues returns the values of a map in the order of their keys.
func sortedValues[K cmp.Ordered, V any](all map[K]V) []V {
	values := make([]V, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		values = append(values, all[key])
	}
	return values
}

// Name returns the claim of a name; nil if the name is free. The caller must not change it.
func (s *State) Name(name string) *protos.RegistryName { return s.names[name] }

// Names returns all claims, sorted by name. The caller must not change them.
func (s *State) Names() []*protos.RegistryName { return sortedValues(s.names) }

// Submission returns a submission that a process has claimed, or nil. The caller must not change
// it.
func (s *State) Submission(id string) *protos.RegistrySubmission { return s.submissions[id] }

// Submissions returns all submissions, sorted by id. The caller must not change them.
func (s *State) Submissions() []*protos.RegistrySubmission { return sortedValues(s.submissions) }

// Actor returns the spec of a durable actor, or nil. The caller must not change it.
func (s *State) Actor(name string) *protos.RegistryActor { return s.actors[name] }

// Actors returns all specs of durable actors, sorted by name. The caller must not change them.
func (s *State) Actors() []*protos.RegistryActor { return sortedValues(s.actors) }

// Members returns all members, sorted by id. The caller must not change them.
func (s *State) Members() []*protos.RegistryMember { return sortedValues(s.members) }

// Cluster returns the random number of the registry; 0 before the member has joined.
func (s *State) Cluster() uint64 { return s.cluster }

// apply executes a command once per session and sequence number, and returns its result.
func (s *State) apply(index uint64, c *protos.RegistryCommand) *protos.RegistryResult {
	switch k := c.Kind.(type) {
	case *protos.RegistryCommand_Open:
		return s.openSession(index, k.Open.GetProcess())
	case *protos.RegistryCommand_Left:
		return s.setLeft(k.Left, true)
	case *protos.RegistryCommand_Returned:
		return s.setLeft(k.Returned, false)
	}
	session := s.sessions[c.Session]
	if session == nil || c.Sequence < session.Below {
		return result(protos.RegistryResult_NO_SESSION)
	}
	if known := session.Results[c.Sequence]; known != nil {
		return known
	}
	session.Used, session.Below = index, max(session.Below, c.Below)
	maps.DeleteFunc(session.Results, func(n uint64, _ *protos.RegistryResult) bool { return n < session.Below })
	r := s.execute(index, session.Process, c)
	session.Results[c.Sequence] = r
	return r
}

// execute executes a command of a session, for the session's process.
func (s *State) execute(index uint64, by *protos.RegistryProcess, c *protos.RegistryCommand) *protos.RegistryResult {
	switch k := c.Kind.(type) {
	case *protos.RegistryCommand_ClaimName:
		return s.claimName(index, by, k.ClaimName)
	case *protos.RegistryCommand_ReleaseName:
		n := s.names[k.ReleaseName.GetName()]
		if n == nil || n.Token != k.ReleaseName.GetToken() || !proto.Equal(n.Owner, by) {
			return result(protos.RegistryResult_ABSENT)
		}
		delete(s.names, n.Name)
		return result(protos.RegistryResult_DONE)
	case *protos.RegistryCommand_ReleaseProcess:
		p := k.ReleaseProcess.GetProcess()
		why := protos.Release_OWNER_GONE
		if proto.Equal(p, by) {
			why = protos.Release_OWNER_LEFT
		}
		s.releaseProcess(p.GetName(), p.GetIncarnation(), why)
		return result(protos.RegistryResult_DONE)
	case *protos.RegistryCommand_ClaimSubmission:
		return s.claimSubmission(index, by, k.ClaimSubmission)
	case *protos.RegistryCommand_CommitVersion:
		return s.commitVersion(by, k.CommitVersion)
	case *protos.RegistryCommand_GiveUpSubmission:
		return s.giveUpSubmission(by, k.GiveUpSubmission)
	case *protos.RegistryCommand_ReleaseSubmission:
		return s.releaseSubmission(k.ReleaseSubmission)
	case *protos.RegistryCommand_EndSubmission:
		return s.endSubmission(index, by, k.EndSubmission)
	case *protos.RegistryCommand_PutActor:
		name := k.PutActor.GetName()
		s.actors[name] = &protos.RegistryActor{Name: name, Spec: k.PutActor.GetSpec(), Index: index}
		return &protos.RegistryResult{Code: protos.RegistryResult_DONE, Index: index}
	case *protos.RegistryCommand_DeleteActor:
		if s.actors[k.DeleteActor.GetName()] == nil {
			return result(protos.RegistryResult_ABSENT)
		}
		delete(s.actors, k.DeleteActor.GetName())
		return result(protos.RegistryResult_DONE)
	}
	return result(protos.RegistryResult_UNKNOWN) // a command of a later version
}

func result(c protos.RegistryResult_Code) *protos.RegistryResult {
	return &protos.RegistryResult{Code: c}
}

// openSession opens a session, whose id is the index of the entry. If the command is repeated, it
// opens a further session that stays unused.
func (s *State) openSession(index uint64, p *protos.RegistryProcess) *protos.RegistryResult {
	if p.GetName() == "" {
		return result(protos.RegistryResult_UNKNOWN)
	}
	latest := s.processes[p.GetName()]
	if p.GetIncarnation() < latest {
		return result(protos.RegistryResult_NO_SESSION)
	}
	if p.GetIncarnation() > latest {
		s.releaseProcess(p.GetName(), latest, protos.Release_OWNER_GONE)
		s.processes[p.GetName()] = p.GetIncarnation()
	}
	if len(s.sessions) == maxSessions {
		delete(s.sessions, leastRecent(s.sessions, func(v *protos.RegistrySession) uint64 { return v.Used }))
	}
	s.sessions[index] = &protos.RegistrySession{Id: index, Process: p, Used: index,
		Results: map[uint64]*protos.RegistryResult{}}
	return &protos.RegistryResult{Code: protos.RegistryResult_DONE, Index: index}
}

// leastRecent returns the key of the value that was used longest ago.
func leastRecent[K comparable, V any](all map[K]V, used func(V) uint64) (key K) {
	least := ^uint64(0)
	for k, v := range all {
		if u := used(v); u < least {
			key, least = k, u
		}
	}
	return key
}

// releaseProcess ends the sessions and claims of a process's incarnations, up to the one given.
func (s *State) releaseProcess(name string, incarnation uint64, why protos.Release) {
	covered := func(p *protos.RegistryProcess) bool {
		return p.GetName() == name && p.GetIncarnation() <= incarnation
	}
	maps.DeleteFunc(s.sessions, func(_ uint64, v *protos.RegistrySession) bool { return covered(v.Process) })
	maps.DeleteFunc(s.names, func(_ string, v *protos.RegistryName) bool { return covered(v.Owner) })
	for _, v := range s.submissions {
		if v.Owner != nil && covered(v.Owner) {
			release(v, why)
		}
	}
}

func (s *State) claimName(index uint64, by *protos.RegistryProcess, k *protos.ClaimName) *protos.RegistryResult {
	n := s.names[k.GetName()]
	if n == nil {
		n = &protos.RegistryName{Name: k.GetName(), Owner: by, Token: k.GetToken(), Index: index}
		s.names[k.GetName()] = n
	}
	r := &protos.RegistryResult{Code: protos.RegistryResult_DONE, Owner: n.Owner, Index: n.Index}
	if n.Token != k.GetToken() || !proto.Equal(n.Owner, by) {
		r.Code = protos.RegistryResult_TAKEN
	}
	return r
}

func (s *State) setLeft(id uint64, left bool) *protos.RegistryResult {
	m := s.members[id]
	if m == nil {
		return result(protos.RegistryResult_ABSENT)
	}
	m.Left = left
	return result(protos.RegistryResult_DONE)
}

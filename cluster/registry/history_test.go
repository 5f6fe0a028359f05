package registry_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// call is an operation on one key, with the result that its caller received.
type call struct {
	kind             kind
	key              string
	process          string
	life             uint64
	token            uint64 // token, or term of a submission
	code             protos.RegistryResult_Code
	owner            string // PROCESS/INCARNATION in the result, if any
	foundToken       uint64 // token in the result, or term of a submission
	version          uint64 // number of the version of a claim, a commit or a read submission
	ended            bool
	called, returned int
	client           int
	applied          bool // true once its entry has been applied
}

type kind int

const (
	claim kind = iota
	release
	gone // incarnations of a process lose their claims
	readKey
	commit
	free // another process's ownership of a submission ends
	end
	put
	remove
)

// unknown is the code of a call without a result.
const unknown = protos.RegistryResult_UNKNOWN

// history records the calls to one registry.
type history struct {
	calls    map[string][]*call // calls by key
	commands map[ticket][]*call // calls by command
	opens    map[uint64][]*call // releases of earlier incarnations, by the later one
	grants   map[string]string  // owner of a key, by term or claim
	sessions map[uint64]ticket  // incarnations with a session, by session id
	seen     map[ticket]bool    // applied commands
	done     uint64             // index of the latest committed entry that is recorded
	terms    map[uint64]uint64  // raft's terms of committed entries, by index
	leaders  map[uint64]uint64  // leading members, by term
	states   map[uint64]uint64  // digests of states, by the last applied entry
	contents map[uint64]uint64  // digests of states without the registry's number, members and recoveries
	initial  map[string]object  // objects that a recovery kept, by key
}

// ticket is a command of an incarnation.
type ticket struct {
	process string
	life    uint64
	number  uint64
}

func newHistory() *history {
	return &history{calls: map[string][]*call{}, commands: map[ticket][]*call{}, opens: map[uint64][]*call{},
		grants: map[string]string{}, sessions: map[uint64]ticket{}, seen: map[ticket]bool{}, done: 1,
		terms: map[uint64]uint64{}, leaders: map[uint64]uint64{}, states: map[uint64]uint64{},
		contents: map[uint64]uint64{}, initial: map[string]object{}}
}

// keys are the names, submissions and actors that calls use.
var keys = []string{"name:x", "name:y", "submission:s", "submission:t", "actor:p"}

func (h *history) add(w *world, p *process, c *call) *call {
	c.called, c.returned, c.client = w.now, math.MaxInt, p.index
	if c.process == "" {
		c.process, c.life = p.name, p.life
	}
	h.calls[c.key] = append(h.calls[c.key], c)
	return c
}

// committed records a committed entry, whose effects are visible from now on. It tracks sessions
// independently of the registry.
func (h *history) committed(w *world, e *raftpb.Entry) {
	h.done = e.GetIndex()
	h.terms[h.done] = e.GetTerm()
	var c protos.RegistryCommand
	if e.GetType() != raftpb.EntryNormal || proto.Unmarshal(e.GetData(), &c) != nil {
		return
	}
	if by := c.GetOpen().GetProcess(); by != nil {
		for _, s := range h.sessions {
			if s.process == by.Name && s.life > by.Incarnation {
				return // a late command of an earlier incarnation
			}
		}
		h.endSessions(by.Name, by.Incarnation-1)
		h.sessions[e.GetIndex()] = ticket{process: by.Name, life: by.Incarnation}
		h.apply(w, h.opens[by.Incarnation])
		return
	}
	by, open := h.sessions[c.Session]
	if !open {
		return
	}
	by.number = c.Sequence
	if h.seen[by] {
		return // a duplicate of the command
	}
	h.seen[by] = true
	h.apply(w, h.commands[by])
	if gone := c.GetReleaseProcess().GetProcess(); gone != nil {
		h.endSessions(gone.Name, gone.Incarnation)
	}
}

func (h *history) apply(w *world, calls []*call) {
	for _, c := range calls {
		if !c.applied {
			c.applied, c.returned = true, w.now // until the caller receives the result
		}
	}
}

func (h *history) endSessions(process string, life uint64) {
	maps.DeleteFunc(h.sessions, func(_ uint64, s ticket) bool { return s.process == process && s.life <= life })
}

// lost adds a call for each key by which incarnations of a process lose their claims.
func (h *history) lost(w *world, p *process, name string, life uint64) (calls []*call) {
	for _, key := range keys {
		if !strings.HasPrefix(key, "actor") {
			calls = append(calls, h.add(w, p, &call{kind: gone, key: key, process: name, life: life}))
		}
	}
	return calls
}

// read completes a read of all keys.
func (h *history) read(w *world, p *process, ticket uint64) {
	first := p.reads[ticket]
	if first == nil {
		return
	}
	delete(p.reads, ticket)
	s := p.member.State()
	for _, key := range keys {
		c := h.add(w, p, &call{kind: readKey, key: key, code: protos.RegistryResult_DONE})
		c.called, c.returned = first.called, w.now
		c.see(s)
		w.note(c.foundToken)
	}
}

// see fills in the result of a read from a state.
func (c *call) see(s *registry.State) {
	class, id, _ := strings.Cut(c.key, ":")
	switch class {
	case "name":
		if n := s.Name(id); n != nil {
			c.owner, c.foundToken = owner(n.Owner), n.Token
		}
	case "submission":
		if v := s.Submission(id); v != nil {
			c.owner, c.foundToken, c.ended = owner(v.Owner), v.Term, v.Ended
			c.version = v.Version.GetNumber()
		}
	case "actor":
		if v := s.Actor(id); v != nil {
			c.foundToken = uint64(v.Spec[0])<<8 | uint64(v.Spec[1])
		}
	}
}

func owner(p *protos.RegistryProcess) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s/%d", p.Name, p.Incarnation)
}

// returned records the result of a command. It checks that the entry is committed and that no
// other process owns the granted key.
func (w *world) returned(p *process, o registry.Outcome) {
	c := p.calls[o.Ticket]
	delete(p.calls, o.Ticket)
	w.note(o.Ticket, uint64(o.Result.Code), o.Result.Index)
	if c == nil || o.Result.Code == protos.RegistryResult_NO_SESSION || w.plant.early {
		return
	}
	if !c.applied {
		w.fail("%s receives a result of %+v, which is not committed", p.name, *c)
	}
	c.returned, c.code, c.owner, c.foundToken = w.now, o.Result.Code, owner(o.Result.Owner), o.Result.Term
	if c.kind != claim || c.code != protos.RegistryResult_DONE {
		return
	}
	grant := fmt.Sprintf("%s in term %d", c.key, c.token)
	if strings.HasPrefix(c.key, "name") {
		grant = fmt.Sprintf("%s by entry %d", c.key, o.Result.Index)
	}
	by := fmt.Sprintf("%s/%d", c.process, c.life)
	if other := p.history.grants[grant]; other != "" && other != by {
		w.fail("%s belongs to %s, and to %s", grant, other, by)
	}
	p.history.grants[grant] = by
}

// issue makes a process issue a random read or command.
func (w *world) issue(p *process) {
	if len(p.calls) >= 3 || len(p.reads) >= 3 {
		return
	}
	key := keys[w.random.IntN(len(keys))]
	class, id, _ := strings.Cut(key, ":")
	c := &call{key: key, token: uint64(1 + w.random.IntN(1<<15))}
	command := &protos.RegistryCommand{}
	switch n := w.random.IntN(20); {
	case n < 7:
		ticket := p.member.Read()
		p.reads[ticket] = &call{called: w.now}
		w.deliverReady(p)
		return
	case n == 7:
		w.declareGone(p)
		return
	case class == "name":
		w.nameCommand(p, c, command, id)
	case class == "submission":
		w.submissionCommand(p, c, command, id)
	case n < 17:
		c.kind = put
		command.Kind = &protos.RegistryCommand_PutActor{PutActor: &protos.PutActor{Name: id,
			Spec: []byte{byte(c.token >> 8), byte(c.token)}}}
	default:
		c.kind = remove
		command.Kind = &protos.RegistryCommand_DeleteActor{DeleteActor: &protos.DeleteActor{Name: id}}
	}
	w.submit(p, c, command)
}

func (w *world) submit(p *process, c *call, command *protos.RegistryCommand) {
	p.history.add(w, p, c)
	if w.plant.early && p.member.Status().Leads && c.kind == put {
		c.returned, c.code = w.now, protos.RegistryResult_DONE
	}
	w.command(p, command, c)
}

// command submits a command to a process's member.
func (w *world) command(p *process, command *protos.RegistryCommand, calls ...*call) {
	number := p.member.Submit(command)
	p.calls[number] = calls[0]
	p.history.commands[ticket{p.name, p.life, number}] = calls
	w.deliverReady(p)
}

// declareGone makes a process release the claims of a process.
func (w *world) declareGone(p *process) {
	other := w.processes[w.random.IntN(len(w.processes))]
	process := &protos.RegistryProcess{Name: other.name, Incarnation: other.life}
	w.command(p, &protos.RegistryCommand{Kind: &protos.RegistryCommand_ReleaseProcess{
		ReleaseProcess: &protos.ReleaseProcess{Process: process},
	}}, p.history.lost(w, p, other.name, other.life)...)
}

func (w *world) nameCommand(p *process, c *call, command *protos.RegistryCommand, id string) {
	if token := p.tokens[c.key]; token != 0 && w.random.IntN(2) == 0 {
		delete(p.tokens, c.key)
		c.kind, c.token = release, token
		command.Kind = &protos.RegistryCommand_ReleaseName{ReleaseName: &protos.ReleaseName{Name: id, Token: token}}
		return
	}
	p.tokens[c.key] = c.token
	command.Kind = &protos.RegistryCommand_ClaimName{ClaimName: &protos.ClaimName{Name: id, Token: c.token}}
}

func (w *world) submissionCommand(p *process, c *call, command *protos.RegistryCommand, id string) {
	known := p.member.State().Submission(id)
	mine := known != nil && owner(known.Owner) == fmt.Sprintf("%s/%d", p.name, p.life)
	c.token, c.version = known.GetTerm(), known.GetVersion().GetNumber()
	switch n := w.random.IntN(12); {
	case mine && n == 0:
		c.kind = end
		command.Kind = &protos.RegistryCommand_EndSubmission{
			EndSubmission: &protos.EndSubmission{Id: id, Term: c.token},
		}
	case mine && n < 6:
		c.kind, c.version = commit, c.version+uint64(w.random.IntN(3))
		command.Kind = &protos.RegistryCommand_CommitVersion{CommitVersion: &protos.CommitVersion{
			Id: id, Term: c.token, Version: &protos.Version{Number: c.version}}}
	case mine:
		c.kind = release
		command.Kind = &protos.RegistryCommand_GiveUpSubmission{
			GiveUpSubmission: &protos.GiveUpSubmission{Id: id, Term: c.token}}
	case known.GetOwner() != nil && n < 4:
		c.kind = free
		command.Kind = &protos.RegistryCommand_ReleaseSubmission{
			ReleaseSubmission: &protos.ReleaseSubmission{Id: id, Term: c.token}}
	default:
		c.token += uint64(1 + w.random.IntN(2))
		if n == 4 && c.version > 0 {
			c.version--
		}
		command.Kind = &protos.RegistryCommand_ClaimSubmission{ClaimSubmission: &protos.ClaimSubmission{
			Id: id, Term: c.token, Version: &protos.Version{Number: c.version}}}
	}
}

// object is the state of one key in the model.
type object struct {
	owner string
	name  string // of the owner's process
	life  uint64
	token uint64 // token, term or spec
	ended bool

	version uint64 // number of the committed version of a submission
}

// linearizable checks the calls of each key with Porcupine. It returns a violation, if any, and the
// number of keys whose check timed out.
func (h *history) linearizable() (wrong string, undecided int) {
	for _, key := range keys {
		var operations []porcupine.Operation
		for _, c := range h.calls[key] {
			if !c.applied && c.code == unknown {
				continue // never in the log
			}
			operations = append(operations, porcupine.Operation{ClientId: c.client, Input: c, Call: int64(c.called),
				Output: c, Return: int64(c.returned)})
		}
		step := models[strings.SplitN(key, ":", 2)[0]]
		model := porcupine.Model{
			Init: func() any { return h.initial[key] },
			Step: func(state, input, _ any) (bool, any) { return step(state.(object), input.(*call)) },
		}
		switch porcupine.CheckOperationsTimeout(model, operations, time.Minute) {
		case porcupine.Unknown:
			undecided++
		case porcupine.Illegal:
			var text strings.Builder
			for _, c := range h.calls[key] {
				fmt.Fprintf(&text, "%+v\n", *c)
			}
			return fmt.Sprintf("%s: its %d calls are not linearizable:\n%s", key, len(operations), text.String()), 0
		}
	}
	return "", undecided
}

// models specify the registry independently of its implementation.
var models = map[string]func(o object, c *call) (bool, any){"name": stepName, "submission": stepSubmission,
	"actor": stepActor}

// agrees reports whether a result is the call's, or the call's is unknown.
func (c *call) agrees(code protos.RegistryResult_Code) bool {
	return c.code == unknown || c.code == code
}

// without returns the object after incarnations of a process have lost their claims. A submission
// keeps its term.
func (o object) without(c *call) object {
	if o.name == c.process && o.life <= c.life {
		o.owner, o.name, o.life = "", "", 0
		if strings.HasPrefix(c.key, "name") {
			o.token = 0
		}
	}
	return o
}

func stepName(o object, c *call) (bool, any) {
	by := fmt.Sprintf("%s/%d", c.process, c.life)
	switch c.kind {
	case gone:
		return true, o.without(c)
	case readKey:
		return c.owner == o.owner && c.foundToken == o.token, o
	case release:
		if o.owner != by || o.token != c.token {
			return c.agrees(protos.RegistryResult_ABSENT), o
		}
		return c.agrees(protos.RegistryResult_DONE), object{}
	}
	if o.owner == "" {
		return c.agrees(protos.RegistryResult_DONE), object{owner: by, name: c.process, life: c.life, token: c.token}
	}
	if o.owner == by && o.token == c.token {
		return c.agrees(protos.RegistryResult_DONE), o
	}
	return c.agrees(protos.RegistryResult_TAKEN) && (c.code == unknown || c.owner == o.owner), o
}

func stepSubmission(o object, c *call) (bool, any) {
	by := fmt.Sprintf("%s/%d", c.process, c.life)
	switch c.kind {
	case gone:
		return true, o.without(c)
	case readKey:
		return c.owner == o.owner && c.foundToken == o.token && c.ended == o.ended && c.version == o.version, o
	case claim:
		return stepClaim(o, c, by)
	}
	switch {
	case o.token == 0:
		return c.agrees(protos.RegistryResult_ABSENT), o
	case o.ended:
		return c.agrees(protos.RegistryResult_ENDED), o
	case o.owner == "" || o.token != c.token || c.kind != free && o.owner != by:
		return c.agrees(protos.RegistryResult_TAKEN), o
	case c.kind == commit:
		o.version = max(o.version, c.version)
		return c.agrees(protos.RegistryResult_DONE), o
	}
	after := object{token: o.token, ended: c.kind == end, version: o.version}
	return c.agrees(protos.RegistryResult_DONE), after
}

// stepClaim applies an incarnation's claim of a submission to the model.
func stepClaim(o object, c *call, by string) (bool, any) {
	switch {
	case o.ended:
		return c.agrees(protos.RegistryResult_ENDED), o
	case o.owner == "" && c.token > o.token && c.version < o.version:
		return c.agrees(protos.RegistryResult_STALE), o
	case o.owner == "" && c.token > o.token:
		after := object{owner: by, name: c.process, life: c.life, token: c.token, version: o.version}
		if o.token == 0 {
			after.version = c.version
		}
		return c.agrees(protos.RegistryResult_DONE), after
	case o.owner == by && o.token == c.token:
		return c.agrees(protos.RegistryResult_DONE), o
	}
	return c.agrees(protos.RegistryResult_TAKEN) &&
		(c.code == unknown || c.owner == o.owner && c.foundToken == o.token), o
}

func stepActor(o object, c *call) (bool, any) {
	switch c.kind {
	case readKey:
		return c.foundToken == o.token, o
	case put:
		return c.agrees(protos.RegistryResult_DONE), object{token: c.token}
	}
	if o.token == 0 {
		return c.agrees(protos.RegistryResult_ABSENT), o
	}
	return c.agrees(protos.RegistryResult_DONE), object{}
}

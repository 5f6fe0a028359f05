package holders

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// silentAfter is how long an owner says nothing until holders say that it is silent.
const silentAfter = 2 * time.Second

// WithoutQuorum reports whether the registry has no leader, as far as this process knows.
func (s *Service) WithoutQuorum() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaderless != 0
}

// Held returns the unfinished submissions of other owners of which this process is a holder, with the
// times of the owners' latest messages.
func (s *Service) Held() (all []*protos.Submission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.all {
		if m := s.heldHere(h); m != nil {
			all = append(all, m)
		}
	}
	return all
}

// HeldOne returns one submission as Held does; nil if it is not among them.
func (s *Service) HeldOne(id string) *protos.Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.all[id]; h != nil {
		return s.heldHere(h)
	}
	return nil
}

// heldHere returns a holder's view of another owner's submission; nil without a copy; s.mu is held.
func (s *Service) heldHere(h *holding) *protos.Submission {
	if h.ended || h.duty != nil || h.folder == "" || h.entry.GetEnded() {
		return nil
	}
	owner := cmp.Or(h.owner, h.plan.Holders[0])
	heard, unknown := h.heard, h.absent != 0 && s.leaderless == 0
	switch {
	case owner == s.config.Process || unknown:
		heard = time.Now()
	case heard.IsZero(): // the registry has not answered yet
		heard = s.began
	}
	m := &protos.Submission{
		Id: h.plan.Id, Plan: request.Text(h.plan.Name, request.MaxListed), Process: owner, By: h.plan.By,
		State: request.Waiting, Total: h.plan.Total, Submitted: h.plan.At, Holders: h.plan.Holders, Held: true,
		Folder: filepath.Join(s.config.Out, h.folder), Lacking: s.fault(h), Continues: h.plan.Continues,
		Away: heard.UnixNano(),
		Why:  fmt.Sprintf("as process %s, which holds it, knows it", s.config.Process),
	}
	finished, err := filepath.Glob(filepath.Join(m.Folder, "runs", "*", "run.json"))
	if err == nil && len(finished) > 0 {
		m.State, m.Done = request.Running, int32(len(finished))
		m.Share = float64(m.Done) / float64(max(m.Total, m.Done))
	}
	switch {
	case unknown:
		m.Why = "the registry does not know it; unless it has ended, a process that holds it goes on with it soon"
	case h.entry != nil && h.entry.Owner == nil:
		m.Why = "another holder is about to take over"
	case time.Since(heard) > silentAfter:
		m.Why = fmt.Sprintf("process %s, which holds it, has not heard of it since", s.config.Process)
	}
	return m
}

// fault returns the reason why this process has no copy of a submission, after its name; s.mu is held.
func (s *Service) fault(h *holding) []string {
	if why := cmp.Or(h.noteFault, h.copyFault); why != "" {
		return []string{s.config.Process + ": " + why}
	}
	return nil
}

// Lacking are the holders of a submission that is carried out here that have no up-to-date copy of
// it, or cannot write, each with the reason.
func (s *Service) Lacking(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.all[id]; h != nil && h.duty != nil {
		return s.lacking(h)
	}
	return nil
}

// lacking is Lacking of a holding; s.mu is held.
func (s *Service) lacking(h *holding) (all []string) {
	for _, name := range h.plan.Holders {
		c, why := h.duty.copies[name], ""
		switch {
		case name == s.config.Process:
			why = h.noteFault
		case s.config.Gone(name, 0):
			why = "away"
		case c != nil:
			why = c.why
		}
		if why != "" {
			all = append(all, name+": "+why)
		}
	}
	return all
}

// logCopies has the submission's log say, behind another text, how many copies there are and why
// there are not more; s.mu is held.
func (s *Service) logCopies(h *holding, before string) {
	if h.duty == nil {
		return
	}
	lacking, all := s.lacking(h), len(h.plan.Holders)
	text := before + "copies " + countCopies(lacking, all)
	if all-len(lacking) < 2 {
		text += fmt.Sprintf("; what finishes from now on does not survive process %s", s.config.Process)
	}
	id := h.plan.Id
	s.config.Begin(func() { s.config.Note(id, text) })
}

// countCopies says how many of all holders have a copy, and lists the others with their reasons.
func countCopies(lacking []string, all int) string {
	return strings.Join(append([]string{fmt.Sprintf("%d of %d", all-len(lacking), all)}, lacking...), ", ")
}

// cause is an error about a file in the order in which a reader wants it: first what is wrong.
func cause(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return fmt.Sprintf("%v (%s %s)", path.Err, path.Op, path.Path)
	case errors.As(err, &link):
		return fmt.Sprintf("%v (%s %s)", link.Err, link.Op, link.New)
	}
	return err.Error()
}

// failed takes note, in one of a holding's faults, that something was not written here, and says so
// once; s.mu is held.
func (s *Service) failed(h *holding, fault *string, err error) {
	if *fault == "" {
		s.config.Log("submission %s cannot be held here: %v", h.plan.Id, err)
	}
	*fault = request.Text(cause(err), request.MaxListed)
}

// Copy returns how a submission has ended of whose record there is a copy here, and where; nil
// without.
func (s *Service) Copy(id string) *protos.Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.all[id]; h != nil {
		return s.copied(h)
	}
	return nil
}

// Copies are the submissions of whose records there are copies here.
func (s *Service) Copies() (all []*protos.Submission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.all {
		if m := s.copied(h); m != nil {
			all = append(all, m)
		}
	}
	return all
}

// copied is Copy of a holding; s.mu is held.
func (s *Service) copied(h *holding) *protos.Submission {
	if !s.hasCopy(h) || h.plan.End == nil || s.missing(h.folder) {
		return nil
	}
	m := proto.CloneOf(h.plan.End)
	m.Process, m.Folder, m.Holders = s.config.Process, filepath.Join(s.config.Out, h.folder), h.plan.Holders
	m.Copy, m.Lacking = true, nil
	return m
}

// Claim makes the copy of a record the record: of a submission that has ended at another process,
// which has lost the record. It asks that process and the other holders first. It returns how the
// submission has ended, with the folder of the record within the folder of records.
func (s *Service) Claim(ctx context.Context, id string) (*protos.HeldPlan, error) {
	s.mu.Lock()
	h := s.all[id]
	if h == nil || s.copied(h) == nil {
		s.mu.Unlock()
		return nil, refusal.Again(fmt.Errorf("process %s has no copy of submission %s now", s.config.Process, id))
	}
	maker, plan := h.by, h.plan
	s.mu.Unlock()
	for _, name := range append(slices.DeleteFunc(s.others(plan), func(o string) bool { return o == maker }), maker) {
		switch has, err := s.askWhetherHas(ctx, name, plan); {
		case has:
			return nil, refusal.Again(fmt.Errorf("the record of submission %s is at process %s; here, at process %s, "+
				"is a copy", id, name, s.config.Process))
		case err != nil && name == maker:
			return nil, refusal.Again(fmt.Errorf("the record of run %s at process %s is a copy; process %s, which has "+
				"made the record, is away: %w", id, s.config.Process, maker, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copied(h) == nil || h.by != maker {
		return nil, refusal.Again(fmt.Errorf("the copy of submission %s at process %s is being changed", id,
			s.config.Process))
	}
	name := s.vacant(h)
	if err := s.rename(h.folder, name); err != nil {
		return nil, err
	}
	h.plan = proto.CloneOf(h.plan)
	h.folder, h.plan.Folder, h.by = name, name, s.config.Process
	_ = s.writeNote(h) // it has logged its error
	return h.plan, nil
}

// askWhetherHas asks another process whether it has the record of a submission that has ended.
func (s *Service) askWhetherHas(ctx context.Context, name string, plan *protos.HeldPlan) (bool, error) {
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	conn, err := s.config.Open(opening, name)
	if err != nil {
		return false, err
	}
	defer conn.Close() //nolint:errcheck // all was said
	head := &protos.CopyHead{From: s.config.Process, Plan: plan, Asks: true}
	if err := request.Write(lively{conn}, head); err != nil {
		return false, err
	}
	answer := &protos.CopyAnswer{}
	if err := request.Read(bufio.NewReader(lively{conn}), answer); err != nil {
		return false, fmt.Errorf("it has not answered: %w", err)
	}
	if answer.Error != "" {
		return false, errors.New(answer.Error)
	}
	return answer.Has, nil
}

// answerWhetherHas answers askWhetherHas.
func (s *Service) answerWhetherHas(id string) *protos.CopyAnswer {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if !ready {
		return &protos.CopyAnswer{Error: "its process has just begun"}
	}
	return &protos.CopyAnswer{Has: s.config.Has(id)}
}

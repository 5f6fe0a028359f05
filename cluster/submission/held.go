package submission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/holders"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

const (
	// runsOfTerm is how many runs a submission has at most in one term, rehearsals
	// included: those of a later one have larger numbers.
	runsOfTerm = 1 << 20
	// concludePatience is how long a submission that was stopped waits for others to know.
	concludePatience = 2 * time.Second
)

// hold makes other processes holders of the submission. The note gives the reason if there are none. An
// error is the reason why the cluster accepts no submission now.
func (s *Submission) hold(ctx context.Context, m *protos.SubmitPlan) (note string, err error) {
	if s.queue.config.Holders == nil {
		return "", nil
	}
	s.Holders, note, err = s.queue.config.Holders.Hold(ctx, &protos.HeldPlan{
		Id: s.ID, Submitted: &protos.SubmitPlan{File: s.File, Text: m.Text, Set: m.Set, Place: m.Place},
		Name: s.Plan, By: s.By, At: s.Submitted.UnixNano(), Total: int32(s.Total), Target: s.Target, Folder: s.Folder,
		Continues: s.Continues,
	})
	if len(s.Holders) == 0 && err == nil {
		s.Alone = request.Text(note, request.MaxListed)
	}
	return note, err
}

// holders are the processes that hold the submission; none if this one alone does.
func (s *Submission) holders() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Holders
}

// commit waits until another process has a run that has finished; false if another one carries the
// submission out.
func (s *Submission) commit() bool {
	if len(s.holders()) == 0 {
		return true
	}
	err := s.queue.config.Holders.Commit(s.stop, s.ID)
	if errors.Is(err, holders.ErrElsewhere) {
		s.end(err)
		return false
	}
	return true
}

// leaves reports whether another process carries the submission out, or will: because that one has
// claimed it, or because this process stops. It is over here then.
func (s *Submission) leaves(err error) bool {
	switch {
	case len(s.holders()) == 0:
		return false
	case errors.Is(err, holders.ErrElsewhere), errors.Is(context.Cause(s.stop), holders.ErrElsewhere):
		s.leave()
		return true
	case errors.Is(err, experiment.ErrStopping):
		s.Log("this process stops; %s can go on", strings.Join(s.holders(), ", "))
		s.gone()
		s.end(nil)
		return true
	}
	return false
}

// agree makes sure that no other process will carry the submission out, which has ended in a state.
// What the next life of this process is to know is written before: it may end meanwhile.
func (s *Submission) agree(state, why string) error {
	if len(s.holders()) == 0 {
		return nil
	}
	s.mu.Lock()
	e := s.entry
	s.mu.Unlock()
	e.State, e.Error = state, why
	s.note(e)
	return s.conclude(e)
}

// conclude has the other holders know how the submission has ended. The error says that another
// process carries it out. One that was stopped does not wait for long.
func (s *Submission) conclude(e entry) error {
	ctx := context.Background() // the end of the process ends it as well
	if s.stop.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, concludePatience)
		defer cancel()
	}
	err := s.queue.config.Holders.End(ctx, s.ID, s.ending(e))
	if errors.Is(err, holders.ErrElsewhere) {
		return err
	}
	return nil
}

// ending is how the submission ends, as others keep it.
func (s *Submission) ending(e entry) *protos.Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.message()
	m.Placement, m.Lacking, m.Lost = nil, nil, false
	m.State, m.Error = e.State, request.Text(e.Error, request.MaxListed)
	return m
}

// leave forgets the submission here: another process carries it out.
func (s *Submission) leave() {
	q := s.queue
	s.Log("is carried out by another process from now on")
	s.change(func() {
		s.State = removed
		if s.moved == nil {
			s.moved = new(string)
		}
		s.publish()
	})
	q.mu.Lock()
	q.all = slices.DeleteFunc(q.all, func(o *Submission) bool { return o == s })
	q.mu.Unlock()
	q.config.Removed()
	s.end(nil)
	s.gone()
}

// elsewhere is an error if another process carries the submission out.
func (s *Submission) elsewhere() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.moved == nil:
		return nil
	case *s.moved == "":
		return refusal.Again(fmt.Errorf("submission %s is carried out by another process", s.ID))
	}
	return refusal.Again(fmt.Errorf("submission %s is carried out by process %s", s.ID, *s.moved))
}

// Drop has this process carry a submission out no longer, because another one does; see
// holders.Config.
func (q *Queue) Drop(id, to string) {
	s := q.own(id)
	if s == nil {
		return
	}
	s.mu.Lock()
	s.moved = &to
	s.mu.Unlock()
	s.end(holders.ErrElsewhere)
	if q.unqueue(s) || s.over() {
		s.leave()
	}
	select {
	case <-s.left:
	case <-q.config.Stop.Done():
	}
}

// Held takes note of who holds a submission from now on; see holders.Config.
func (q *Queue) Held(id string, names []string) {
	s := q.own(id)
	if s == nil || s.over() {
		return
	}
	s.Log("is held by %s from now on", strings.Join(names, ", "))
	s.change(func() {
		s.Holders = names
		s.publish()
	})
}

// copied returns a submission that another process has brought to its end, and of whose record
// there is a copy here, or that this process holds while another one carries it out; nil without.
func (q *Queue) copied(id string) *Submission {
	if q.config.Holders == nil {
		return nil
	}
	where := "at another process; copy of the record"
	m := q.config.Holders.Copy(id)
	if m == nil {
		m = q.config.Holders.HeldOne(id)
		where = fmt.Sprintf("as process %s holds it for another one; its copy", q.config.Process)
	}
	if m == nil {
		return nil
	}
	folder, err := filepath.Rel(q.config.Out, m.Folder)
	if err != nil {
		return nil
	}
	s := q.newSubmission(entry{
		ID: m.Id, Plan: m.Plan, By: m.By, Submitted: time.Unix(0, m.Submitted), State: m.State, Done: int(m.Done),
		Total: int(m.Total), Error: m.Error, Folder: folder, Holders: m.Holders, Continues: m.Continues,
	})
	s.held = m
	s.recall(where)
	return s
}

// claim makes the copy of a record here the record, since the process that has made the record has
// lost it.
func (q *Queue) claim(ctx context.Context, id string) (*Submission, error) {
	p, err := q.config.Holders.Claim(ctx, id)
	if err != nil {
		return nil, err
	}
	return q.adoptEnded(p, "at another process, which has lost the record; the copy, now the record,"), nil
}

// adoptEnded adds an ended submission to this process's submissions. The text where, in its log, names
// the place of its record.
func (q *Queue) adoptEnded(p *protos.HeldPlan, where string) *Submission {
	s := q.newSubmission(entry{
		ID: p.Id, Plan: p.Name, File: cmp.Or(p.Submitted.GetFile(), record.PlanName), Place: p.Submitted.GetPlace(),
		By: p.By, Submitted: time.Unix(0, p.At), State: p.End.GetState(), Done: int(p.End.GetDone()),
		Total: int(p.Total), Target: p.Target, Error: p.End.GetError(), Folder: p.Folder, Holders: p.Holders,
		Continues: p.Continues,
	})
	s.recall(where)
	q.mu.Lock()
	q.add(s)
	q.mu.Unlock()
	s.change(s.publish)
	return s
}

// Has reports whether this process has the record of a submission that has ended here. If it has
// lost the record, it forgets the submission; see holders.Config.
func (q *Queue) Has(id string) bool {
	s := q.own(id)
	if s == nil {
		return false
	}
	s.mu.Lock()
	lost := s.lost()
	s.mu.Unlock()
	if lost {
		q.config.Log("the record of submission %s is gone from %s; a copy takes its place", id, s.folder())
		q.forget(s)
	}
	return !lost
}

// Note adds a line to the log of a submission that is carried out here; see holders.Config.
func (q *Queue) Note(id, text string) {
	if s := q.own(id); s != nil {
		s.Log("%s", text)
	}
}

// lacking are the holders without an up-to-date copy. Without other holders, it is the reason why
// there are none.
func (s *Submission) lacking() []string {
	switch {
	case len(s.Holders) == 0 && s.Alone != "" && !s.ended():
		return []string{s.Alone}
	case len(s.Holders) == 0:
		return nil
	}
	return s.queue.config.Holders.Lacking(s.ID)
}

// Adopt has this process carry a submission out that another one did; see holders.Config.
func (q *Queue) Adopt(p *protos.HeldPlan, term uint64, why string) *protos.Submission {
	if s := q.own(p.Id); s != nil { // it has ended here, in an earlier life of the process
		return s.ending(s.entry)
	}
	if p.End != nil { // the previous owner ended it, and was gone before the registry recorded that
		q.adoptEnded(p, "at another process; the copy, now the record,")
		return p.End
	}
	s := q.newSubmission(entry{
		ID: p.Id, Plan: p.Name, File: p.Submitted.GetFile(), By: p.By, Submitted: time.Unix(0, p.At),
		State: request.Waiting, Total: int(p.Total), Target: p.Target, Folder: p.Folder, Holders: p.Holders,
		Continues: p.Continues,
	})
	s.runs, s.succeeds = term*runsOfTerm, why
	s.lines = s.written()
	if folder, err := record.Open(s.folder()); err == nil {
		s.Done = min(len(folder.Runs()), s.Total)
	}
	err := s.read(p.Submitted)
	q.mu.Lock()
	q.add(s)
	q.mu.Unlock()
	if err != nil {
		s.finish(err)
		return nil
	}
	goesOn := fmt.Sprintf("goes on at process %s, with %d of %d runs finished", q.config.Process, s.Done, s.Total)
	if why != "" {
		goesOn += ": " + why
	}
	s.Log("%s", goesOn)
	s.change(s.publish)
	q.insert(s)
	return nil
}

// insert has a submission wait before those that were submitted later.
func (q *Queue) insert(s *Submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.waiting, func(o *Submission) bool { return o.Submitted.After(s.Submitted) })
	if at < 0 {
		at = len(q.waiting)
	}
	q.waiting = slices.Insert(q.waiting, at, s)
	q.wake()
}

// Ready finds out whether a plan could be carried out here, and makes the folder of its record; see
// holders.Config.
func (q *Queue) Ready(ctx context.Context, p *protos.HeldPlan, dir string) error {
	m := p.Submitted
	source, err := experiment.Parse(m.GetFile(), []byte(m.GetText()), m.GetSet()...)
	if err != nil {
		return err
	}
	err = q.trial(ctx, func() error {
		o := experiment.Options{Catalog: q.config.Catalog, Data: q.config.Data, Out: dir}
		r, err := experiment.Prepare(ctx, source, o, experiment.Site{Venue: unplayed{q.config.Insecure},
			Shared: q.config.Shared})
		if err != nil {
			return err
		}
		return r.Close()
	})
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// unplayed is the cluster as a venue on which nothing takes place yet.
type unplayed struct{ insecure bool }

var _ experiment.Venue = unplayed{}

// Traits of a cluster.
func (u unplayed) Traits() experiment.Traits {
	return experiment.Traits{Clock: "cluster", Alone: true, Insecure: u.insecure}
}

// Rehearse leaves out what takes other processes: that was found out already.
func (unplayed) Rehearse(context.Context, *experiment.Stage) error { return nil }

// Play refuses.
func (unplayed) Play(context.Context, *experiment.Stage) (experiment.Outcome, error) {
	return experiment.Outcome{}, errors.New("this process does not carry the plan out")
}

package submission

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/archive"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// showEvery is the least time between two states of a submission that is watched.
const showEvery = 100 * time.Millisecond

// Answer carries out a client's request about submissions.
func (q *Queue) Answer(ctx context.Context, c *request.Caller, r *protos.Request) error {
	switch k := r.Kind.(type) {
	case *protos.Request_Submit:
		return q.answerSubmit(ctx, c, k.Submit)
	case *protos.Request_Watch:
		return q.answerWatch(ctx, c, k.Watch.Id)
	case *protos.Request_Log:
		return q.answerLog(ctx, c, k.Log)
	case *protos.Request_Stop:
		return q.answerStop(c, k.Stop.Id)
	case *protos.Request_Remove:
		return q.answerRemove(ctx, c, k.Remove.Id)
	case *protos.Request_Fetch:
		return q.answerFetch(c, k.Fetch.Id)
	}
	return refusal.Input(errors.New("this request is not known here: is the client newer than the cluster?"))
}

func (q *Queue) answerSubmit(ctx context.Context, c *request.Caller, m *protos.SubmitPlan) error {
	if err := c.May("submit plans", identity.Operator, identity.Client); err != nil {
		return err
	}
	var s *Submission
	var note string
	var err error
	if m.Continues != "" {
		s, note, err = q.goOn(ctx, c.Name, m.Continues)
	} else {
		s, note, err = q.submit(ctx, c.Name, m, nil)
	}
	if err != nil {
		return err
	}
	told := &protos.Submitted{Id: s.ID, Note: request.Text(note, request.MaxText)}
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Submitted{Submitted: told}})
}

// answerWatch says how far a submission is with every change, until it has ended.
func (q *Queue) answerWatch(ctx context.Context, c *request.Caller, id string) error {
	s, err := q.find(id)
	if err != nil {
		return err
	}
	for {
		m, over, changed := s.Now()
		if err := s.elsewhere(); err != nil {
			return err
		}
		err := c.Reply(&protos.Reply{Kind: &protos.Reply_Submission{Submission: m}})
		switch {
		case err != nil || over:
			return err
		case s.held != nil:
			return refusal.Again(fmt.Errorf("submission %s is carried out by process %s", s.ID, s.held.Process))
		}
		err = await(ctx, time.After(showEvery))
		if err == nil {
			err = await(ctx, changed)
		}
		if err != nil {
			return err
		}
	}
}

// await waits for something until ctx ends.
func await[T any](ctx context.Context, what <-chan T) error {
	select {
	case <-what:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxTold is how many lines of a log one message carries.
const maxTold = 500

func (q *Queue) answerLog(ctx context.Context, c *request.Caller, m *protos.ReadLog) error {
	s, err := q.find(m.Id)
	if err != nil {
		return err
	}
	for from := 0; ; {
		lines, next, over, changed := s.since(from)
		from = next
		for some := range slices.Chunk(lines, maxTold) {
			told := &protos.LogLines{Lines: some}
			if err := c.Reply(&protos.Reply{Kind: &protos.Reply_Lines{Lines: told}}); err != nil {
				return err
			}
		}
		if err := s.elsewhere(); err != nil {
			return err
		}
		if over || !m.Follow {
			return c.Done()
		}
		if err := await(ctx, changed); err != nil {
			return err
		}
	}
}

func (q *Queue) answerStop(c *request.Caller, id string) error {
	if err := c.May("stop submissions", identity.Operator); err != nil {
		return err
	}
	s, err := q.find(id)
	if err != nil {
		return err
	}
	switch {
	case s.over():
		return refusal.Input(fmt.Errorf("submission %s is over already", s.ID))
	case s.held != nil:
		return refusal.Again(fmt.Errorf("submission %s is carried out by process %s, which is away", s.ID,
			s.held.Process))
	}
	s.halt(errStopped{c.Name})
	if h := s.queue.config.Holders; h != nil && h.Holds(s.ID) && h.WithoutQuorum() {
		return fmt.Errorf("submission %s is stopped here, but the registry has no quorum: unless process %s is there "+
			"when it has one again, another process goes on with the submission", s.ID, q.config.Process)
	}
	return c.Done()
}

// errLost says that a record is not in its folder any more.
var errLost = errors.New("somebody has deleted the record")

// findEnded returns the submission of an id, for what can be done once it has ended.
func (q *Queue) findEnded(id, what string) (*Submission, error) {
	s, err := q.find(id)
	if err != nil {
		return nil, err
	}
	switch m, over, _ := s.Now(); {
	case !over:
		return nil, refusal.Input(fmt.Errorf("run %s is %s; %s when it has ended", s.ID, m.State, what))
	case m.Lost:
		return s, fmt.Errorf("%w of run %s from %s at process %s, and no process that answers has a copy", errLost,
			s.ID, s.folder(), q.config.Process)
	}
	return s, nil
}

// answerRemove removes a submission that has ended, and its record.
func (q *Queue) answerRemove(ctx context.Context, c *request.Caller, id string) error {
	if err := c.May("remove runs", identity.Operator); err != nil {
		return err
	}
	s, err := q.findEnded(id, "it can be removed")
	if err == nil && s.held != nil {
		s, err = q.claim(ctx, id)
	}
	if err == nil || errors.Is(err, errLost) {
		err = s.known()
	}
	if err != nil {
		return err
	}
	if err := q.remove(s); err != nil {
		return err
	}
	q.config.Log("%s has removed run %s with its record in %s", c.Name, s.ID, s.folder())
	return c.Done()
}

// known returns an error if the registry has not recorded the end of the submission yet. Then another
// process may still go on with the submission.
func (s *Submission) known() error {
	if h := s.queue.config.Holders; h != nil && h.Holds(s.ID) {
		return refusal.Again(fmt.Errorf("submission %s has ended, but the registry does not know yet", s.ID))
	}
	return nil
}

// answerFetch sends the folder of a record as an archive.
func (q *Queue) answerFetch(c *request.Caller, id string) error {
	s, err := q.findEnded(id, "its record can be fetched")
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(portions{c}, 256<<10)
	if err := errors.Join(archive.Pack(out, s.folder(), nil), out.Flush()); err != nil {
		return err
	}
	return c.Done()
}

// portions sends what is written to it, a buffer at a time.
type portions struct{ *request.Caller }

func (p portions) Write(b []byte) (int, error) {
	return len(b), p.Reply(&protos.Reply{Kind: &protos.Reply_Portion{Portion: &protos.Portion{Bytes: b}}})
}

package submission

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// submit checks a plan and queues it, in the place of a submission whose record it goes on with, if
// there is one. What cannot run is told at once. Until its turn comes, only the plan is kept, here
// and by others; the note says so if none do.
func (q *Queue) submit(ctx context.Context, by string, m *protos.SubmitPlan,
	former *Submission) (s *Submission, note string, err error) {
	var draw [4]byte
	_, _ = rand.Read(draw[:]) // which never fails
	file := filepath.Base(m.File)
	s = q.newSubmission(entry{
		ID: fmt.Sprintf("%x", draw), File: file, By: by, Submitted: time.Now(), State: request.Waiting,
		Place: m.Place,
	})
	if err := s.read(m); err != nil {
		return nil, "", err
	}
	s.Folder = filepath.Base(strings.TrimSuffix(file, filepath.Ext(file)) + "-" + s.ID) // the file may be "/"
	giveBack := func() error { return os.RemoveAll(s.folder()) }
	if former != nil {
		s.Continues = append([]string{former.ID}, former.Continues...)
		s.Continues = s.Continues[:min(len(s.Continues), maxContinued)]
		if err := os.Rename(former.folder(), s.folder()); err != nil {
			return nil, "", err
		}
		giveBack = func() error { return os.Rename(s.folder(), former.folder()) }
	}
	if err := s.try(ctx, former != nil); err != nil {
		s.end(nil)
		if former != nil {
			err = errors.Join(err, giveBack())
		}
		return nil, "", err
	}
	note, err = s.hold(ctx, m)
	if err == nil {
		if err = q.enqueue(s); err != nil {
			s.disown()
		}
	}
	if err != nil {
		s.end(nil)
		return nil, "", errors.Join(err, giveBack())
	}
	if note != "" {
		s.Log("%s", note)
	}
	s.change(s.publish)
	return s, note, nil
}

// goOn queues what is missing of a submission that has ended before its runs had, as another one.
func (q *Queue) goOn(ctx context.Context, by, id string) (s *Submission, note string, err error) {
	q.goingOn.Lock() // one of two that want the same finds that it is gone
	defer q.goingOn.Unlock()
	former, err := q.findEnded(id, "it can go on")
	if err == nil && former.held != nil {
		former, err = q.claim(ctx, id)
	}
	if err == nil {
		err = former.known()
	}
	switch {
	case err != nil:
		return nil, "", err
	case former.Done == former.Total && former.State != request.Failed:
		return nil, "", refusal.Input(fmt.Errorf("submission %s is %s, and all of its runs are finished", former.ID,
			former.State))
	}
	text, err := os.ReadFile(filepath.Join(former.folder(), record.PlanName))
	if err != nil {
		return nil, "", err
	}
	s, note, err = q.submit(ctx, by, &protos.SubmitPlan{File: former.File, Text: string(text), Place: former.Place},
		former)
	if err != nil {
		return nil, "", err
	}
	s.Log("goes on with submission %s, with %d of %d runs finished", former.ID, s.Done, s.Total)
	note = strings.TrimSuffix(fmt.Sprintf("submission %s goes on as %s, with %d of %d runs finished; either id leads "+
		"to it\n%s", former.ID, s.ID, s.Done, s.Total, note), "\n")
	return s, note, q.remove(former)
}

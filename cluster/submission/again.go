package submission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// goOn queues what is missing of a submission that has ended before its runs had, as another one.
func (q *Queue) goOn(ctx context.Context, by, id string) (s *Submission, note string, err error) {
	former, err := q.findEnded(id, "it can go on")
	switch {
	case err != nil:
		return nil, "", err
	case q.own(former.ID) == nil:
		return nil, "", refusal.Again(fmt.Errorf("here is a copy of the record of submission %s; the process that has "+
			"made it is away", former.ID))
	case former.Done == former.Total && former.State != request.Failed:
		return nil, "", refusal.Input(fmt.Errorf("submission %s is %s, and all of its runs are finished", former.ID,
			former.State))
	}
	text, err := os.ReadFile(filepath.Join(former.folder(), "plan.yaml"))
	if err != nil {
		return nil, "", err
	}
	s, note, err = q.submit(ctx, by, &protos.SubmitPlan{File: former.File, Text: string(text), Place: former.Place},
		former)
	if err != nil {
		return nil, "", err
	}
	s.Log("goes on with submission %s, with %d of %d runs finished", former.ID, s.Done, s.Total)
	return s, note, q.remove(former)
}

package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/store"
)

// checkStore returns an error if a plan names no store that its record can be copied to.
func checkStore(p *plan.Plan) error {
	if p.Checkpoint == nil || p.Checkpoint.To == "" {
		return nil
	}
	if _, err := store.Parse(p.Checkpoint.To); err != nil {
		e := syntax.Errorf(p.Checkpoint.Source.At("to"), "%w", err)
		e.Line = "" // it may hold a password
		return refusal.Input(e)
	}
	return nil
}

// openStore finds out where the record stays: in a folder, or in a store, for which it makes a working
// folder.
func (r *Runner) openStore(ctx context.Context) (err error) {
	if r.Out == "" {
		return nil
	}
	at, err := store.Parse(r.Out)
	if err != nil {
		return refusal.Input(err)
	}
	r.Out = at.String()
	if at.Bucket == "" && (!r.Continue || !store.Is(at.Path)) {
		return nil
	}
	mode := store.New
	if r.Continue {
		mode = store.Continue
	}
	if r.work, err = store.Work(ctx, at, mode, r.note); err == nil {
		r.where, r.Out = r.Out, r.work.Dir
	}
	return err
}

// StartUploads copies the record to the stores that the options and the plan name, and from then on
// what changes in it. Without a store it does nothing.
func (r *Runner) StartUploads(ctx context.Context) error {
	if r.work != nil {
		r.mirrors = append(r.mirrors, r.work)
		if err := r.work.Start(ctx); err != nil {
			return err
		}
	}
	to := ""
	for i := range r.points {
		c := r.points[i].Spec.Plan.Checkpoint
		if c == nil || c.To == "" || c.To == to {
			continue
		}
		if to != "" {
			return refusal.Input(
				fmt.Errorf("the plan's points have records in %s and %s; one store is accepted", to, c.To),
			)
		}
		to = c.To
	}
	if to == "" {
		return nil
	}
	at, err := store.Parse(to)
	if err != nil || at.String() == r.where {
		return err
	}
	mode := store.New
	if r.Continue {
		mode = store.Either
	}
	m, err := store.Copy(ctx, at, r.Out, record.PlanName, mode, r.note)
	if err == nil {
		r.mirrors = append(r.mirrors, m)
	}
	return err
}

// changed has changes of the record uploaded.
func (r *Runner) changed() {
	for _, m := range r.mirrors {
		m.Changed()
	}
}

// UploadGrace is how long uploads go on after a run was interrupted.
const UploadGrace = 400 * time.Millisecond

// Upload copies the rest of the record to its stores, and removes a working folder. It gives up
// UploadGrace after ctx ended; the error says which files are not uploaded.
func (r *Report) Upload(ctx context.Context) (err error) {
	for _, m := range r.mirrors {
		err = errors.Join(err, m.Close(ctx, UploadGrace))
	}
	r.mirrors = nil
	return err
}

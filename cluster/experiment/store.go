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

// checkStore returns an error if checkpoint.to is no address of a store.
func checkStore(p *plan.Plan) error {
	if p.Checkpoint == nil || p.Checkpoint.To == "" {
		return nil
	}
	if _, err := store.Parse(p.Checkpoint.To); err != nil {
		e := syntax.Errorf(p.Checkpoint.Source.At("to"), "%w", err)
		e.Line = "" // without the line, which may hold a password
		return refusal.Input(e)
	}
	return nil
}

// openStore opens a working folder if the record goes to a store, or comes from one.
func (r *Runner) openStore(ctx context.Context) (err error) {
	if r.Out == "" {
		return nil
	}
	at, err := store.Parse(r.Out)
	if err != nil {
		return refusal.Input(err)
	}
	r.Out = at.String()
	if at.Bucket == "" && (!r.Continue || !store.IsStored(at.Path)) {
		return nil
	}
	mode := store.MustBeEmpty
	if r.Continue {
		mode = store.MustHoldRecord
	}
	if r.work, err = store.OpenWorkFolder(ctx, at, mode, r.note); err == nil {
		r.address, r.Out = r.Out, r.work.Dir
	}
	return err
}

// StartUploads uploads the record to the stores in the options and the plan, and its changes from then on.
// Without a store it does nothing.
func (r *Runner) StartUploads(ctx context.Context) error {
	if r.work != nil {
		r.uploads = append(r.uploads, r.work)
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
	if err != nil || at.String() == r.address {
		return err
	}
	mode := store.MustBeEmpty
	if r.Continue {
		mode = store.MayHoldRecord
	}
	u, err := store.UploadFolder(ctx, at, r.Out, record.PlanName, mode, r.note)
	if err == nil {
		r.uploads = append(r.uploads, u)
	}
	return err
}

// changed starts uploads of the record's changes.
func (r *Runner) changed() {
	for _, u := range r.uploads {
		u.Changed()
	}
}

// UploadGrace bounds the uploads after an interruption.
const UploadGrace = 400 * time.Millisecond

// Upload uploads the last changes of the record, and removes a working folder. It gives up UploadGrace after
// ctx is done; the error then counts the missing files and names the folder that keeps them.
func (r *Runner) Upload(ctx context.Context) (err error) {
	for _, u := range r.uploads {
		err = errors.Join(err, u.Close(ctx, UploadGrace))
	}
	r.uploads = nil
	return err
}

// Package drivertest tests that runs continue from their checkpoints, in programs with their own actors.
package drivertest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
)

// errCut is the cause of the interruption.
var errCut = errors.New("interrupted by the test")

// Resumed runs a plan in real time, interrupts its only run after the second checkpoint, and continues
// the run from there. It returns the report of the second part. Each part makes new actors, so state
// that they do not declare is lost.
func Resumed(t *testing.T, plan *driver.Plan, options driver.Options) *driver.Report {
	t.Helper()
	options.Out, options.Clock = filepath.Join(t.TempDir(), "out"), driver.Real
	ctx, cancel := context.WithCancelCause(t.Context())
	go interrupt(ctx, options.Out, cancel)
	if _, err := driver.Run(ctx, plan, options); !errors.Is(err, errCut) {
		t.Fatalf("the run was not interrupted after its second checkpoint: %v", err)
	}
	goesOn := false
	options.Continue = true
	options.Progress = func(p driver.Progress) {
		goesOn = goesOn || strings.Contains(p.Note, "goes on from its checkpoint")
	}
	report, err := driver.Run(t.Context(), plan, options)
	if err != nil || !goesOn {
		t.Fatalf("the run did not go on from its checkpoint: %v", err)
	}
	return report
}

// interrupt cancels a run once it has written a second checkpoint.
func interrupt(ctx context.Context, out string, cancel context.CancelCauseFunc) {
	seen := map[string]bool{}
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		names, _ := filepath.Glob(filepath.Join(out, "runs", "0000", "checkpoints", "*.state"))
		for _, name := range names {
			seen[name] = true
		}
		if len(seen) > 1 {
			cancel(errCut)
		}
	}
}

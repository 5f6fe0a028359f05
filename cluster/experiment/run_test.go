package experiment

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
)

// deaf is an executor whose runs do not stop when their context ends.
type deaf struct {
	Virtual
	playing, release chan struct{}
}

func (d deaf) Play(_ context.Context, s *Stage) (Outcome, error) {
	close(d.playing)
	<-d.release
	return d.Virtual.Play(context.Background(), s)
}

func TestRunThatDoesNotStopIsLeftBehindAndSavesNothing(t *testing.T) {
	p, err := Parse("plan.yaml", []byte(`
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.01}}
architecture: {kind: gossip}
nodes: [{name: n, count: 3, compute: {step: 5ms}}]
stop: {steps: 60}
`))
	if err != nil {
		t.Fatal(err)
	}
	d := deaf{playing: make(chan struct{}), release: make(chan struct{})}
	dir := filepath.Join(t.TempDir(), "out")
	r, err := Prepare(t.Context(), p, Options{Out: dir, Jobs: 1}, Site{Venue: d})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-d.playing
		cancel()
	}()
	if err := r.RunAll(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	report, err := r.Report(0)
	if err != nil || len(report.Runs) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	close(d.release)
	if err := r.folder.SaveRun(0, record.Run{}, record.Data{}, record.Models{}); !errors.Is(err, record.ErrClosed) {
		t.Error(err)
	}
}

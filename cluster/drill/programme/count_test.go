package programme

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
)

// Plans of all kinds, over links that lose and repeat, with faults, are counted as they are trained.
func TestRandomPlansAreCountedAsTheyAreTrained(t *testing.T) {
	t.Parallel()
	counted := 0
	for seed := uint64(1); seed <= 60; seed++ {
		c := New(seed)
		links := func(count bool) (string, record.Run, error) {
			p, err := experiment.Parse("plan.yaml", []byte(c.YAML()))
			if err != nil {
				t.Fatal(err)
			}
			r, err := experiment.Run(t.Context(), p, experiment.Options{Out: filepath.Join(t.TempDir(), "record"),
				Jobs: 1, Count: count})
			if r == nil {
				return "", record.Run{}, err
			}
			text, _ := json.Marshal(r.Traces[0].Links)
			return string(text), r.Runs[0], nil
		}
		same, run, err := links(true)
		if input := (*refusal.InputError)(nil); errors.As(err, &input) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want, trained, err := links(false)
		if err != nil {
			t.Fatal(err)
		}
		if trained.Outcome == record.Failed { // it may have diverged
			continue
		}
		counted++
		if want != same || trained.Bytes != run.Bytes || trained.Messages != run.Messages ||
			trained.Steps != run.Steps {
			t.Errorf("seed %d: trained %d bytes in %d messages, counted %d in %d\n%s", seed, trained.Bytes,
				trained.Messages, run.Bytes, run.Messages, c.YAML())
		}
	}
	if counted < 40 {
		t.Errorf("only %d plans were counted", counted)
	}
}

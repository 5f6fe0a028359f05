package experiment

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/gradwire/gradwire/nn/kernel"
)

// Each folder is the record of a program for which an all-reduce without an algorithm was a ring.
// The plan of one spells the default out; the other sweeps over the kind of the architecture, so
// that its plan.yaml leaves the algorithm out as its author did.
func TestARecordFromBeforeTheDefaultAlgorithmWasAutoIsReplayedAsARing(t *testing.T) {
	for _, name := range []string{"spelled", "swept"} {
		dir := filepath.Join("testdata/ring", name, "runs/0000")
		r, err := Replay(context.Background(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.RecordedBuild.Kernel == kernel.Name() && !r.Equal {
			t.Errorf("%s: recorded %s, replayed %s", name, r.Recorded, r.Digest)
		}
		if ring := digestOf(t, filepath.Join("testdata/ring", name), "ring"); r.Digest != ring {
			t.Errorf("%s: replayed %s, with algorithm: ring %s", name, r.Digest, ring)
		}
		if auto := digestOf(t, filepath.Join("testdata/ring", name), "auto"); r.Digest == auto {
			t.Errorf("%s: today's default has the same digest %s, which proves nothing", name, auto)
		}
	}
}

// digestOf is the digest of the plan of a record under an algorithm.
func digestOf(t *testing.T, dir, algorithm string) string {
	t.Helper()
	p, err := Load(
		filepath.Join(dir, "plan.yaml"),
		"architecture={kind: all-reduce, algorithm: "+algorithm+"}",
		"sweep={}",
	)
	if err != nil {
		t.Fatal(err)
	}
	return recordOf(t, p).Digest
}

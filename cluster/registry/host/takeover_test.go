package host_test

import (
	"os"
	"slices"
	"testing"
	"time"
)

// TestTakeover measures the time until the registry answers again after its leader is killed, and
// after its leader leaves.
func TestTakeover(t *testing.T) {
	if os.Getenv("GRADWIRE_LENGTHY") == "" {
		t.Skip("takes long; GRADWIRE_LENGTHY=1 runs it")
	}
	for _, orderly := range []bool{false, true} {
		var took []time.Duration
		for n := range uint64(10) {
			w := newWire(t)
			three(w)
			leader := w.hosts["a"].Status().Leader
			others := slices.DeleteFunc([]string{"a", "b", "c"}, func(name string) bool { return name == leader })
			claimName(t, w.hosts[others[0]], "before", 1) // opens a session
			began := time.Now()
			if orderly {
				if err := w.hosts[leader].Leave(patience(t, time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
			w.kill(leader)
			claimName(t, w.hosts[others[0]], "after", n+2)
			took = append(took, time.Since(began).Round(time.Millisecond))
			for _, name := range others {
				w.kill(name)
			}
		}
		slices.Sort(took)
		t.Logf("leader leaves: %v; median %v of %v", orderly, took[len(took)/2], took)
	}
}

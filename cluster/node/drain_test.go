package node

import (
	"errors"
	"runtime"
	"testing"
)

// When two processes leave together, the second one's last save waits for the first one's, and is made
// only if the first fails.
func TestProcessesThatLeaveTogetherShareTheLastSave(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		first error
		saves int
	}{
		"first succeeds": {nil, 1},
		"first fails":    {errors.New("the first save fails"), 2},
	} {
		var final finalSave
		saves, second := 1, make(chan error, 1)
		first := final.once(func() error {
			go func() {
				second <- final.once(func() error {
					saves++
					return nil
				})
			}()
			for range 1000 {
				runtime.Gosched()
			}
			if len(second) > 0 || !final.active.Load() {
				t.Errorf("%s: the second save has not waited", name)
			}
			return x.first
		})
		err := <-second
		if saves != x.saves || !errors.Is(first, x.first) || err != nil || !final.active.Load() {
			t.Errorf("%s: %d saves, results %v and %v; active: %v", name, saves, first, err, final.active.Load())
		}
	}
}

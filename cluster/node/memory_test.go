package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/memory"
)

// All runs together have to fit, and the one that takes most ends when they take more after all.
func TestRunsShareTheMemoryOfTheirProcess(t *testing.T) {
	p := Config{Name: "a", Out: t.TempDir(), Catalog: catalog.Default()}.process()
	limit := memory.Bound{Bytes: 1000, By: "this machine has"}
	begin := func(number uint64, need float64) (*hosted, error) {
		h := p.newHosted(number, "b", []string{"a"})
		if !p.register(h) {
			t.Fatalf("run %d is not registered", number)
		}
		return h, p.fitsWithin(limit, h, need, false)
	}
	small, err := begin(1, 300)
	if err != nil {
		t.Error(err)
	}
	large, err := begin(2, 600)
	if err != nil {
		t.Error(err)
	}
	third, err := begin(3, 200)
	if err == nil || !strings.Contains(err.Error(), "of which 2 other runs take 900 B") {
		t.Errorf("a run that does not fit: %v", err)
	}
	if err := p.fitsWithin(limit, third, 200, true); err != nil {
		t.Errorf("one that is only rehearsed has to fit alone: %v", err)
	}
	if err := p.fitsWithin(limit, third, 1001, true); !errors.Is(err, errMemory) {
		t.Errorf("one that does not fit alone: %v", err)
	}
	p.relieve(990, limit)
	if small.stop.Err() != nil || large.stop.Err() == nil || third.stop.Err() != nil {
		t.Error("another run has ended than the one that takes most")
	}
	p.unregister(large)
	if err := p.fitsWithin(limit, third, 200, false); err != nil {
		t.Errorf("what a run took is not free when it is over: %v", err)
	}
}

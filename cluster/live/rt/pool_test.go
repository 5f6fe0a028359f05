package rt

import (
	"errors"
	"sync"
	"testing"
	"time"
)

func TestStoppedPoolBeginsNothingMore(t *testing.T) {
	p := &Pool{}
	if err := p.Start(1); err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	err := errors.Join(
		p.Submit(Steps, func() { close(begun); <-release }),
		p.Submit(Steps, func() { t.Error("a queued computation was begun after the stop") }))
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	time.AfterFunc(10*time.Millisecond, func() { close(release) })
	p.Stop()
	for range 2 * maxQueued { // more than the queue holds
		if err := p.Submit(Steps, func() { t.Error("computed after the stop") }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoolComputesEverythingOnce(t *testing.T) {
	p := &Pool{}
	if err := p.Start(2); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for i := range maxQueued {
		group.Add(1)
		if err := p.Submit(Class(i)%classes, func() {
			defer group.Done()
			mu.Lock()
			defer mu.Unlock()
			seen[i]++
		}); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	p.Stop()
	for i := range maxQueued {
		if seen[i] != 1 {
			t.Fatalf("computation %d was done %d times", i, seen[i])
		}
	}
}

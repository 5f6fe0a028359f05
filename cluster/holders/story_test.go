package holders_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/holders"
)

// What has once counted is there to the end, whoever dies when, and one process ends it.
func TestNothingThatCountedIsLost(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 5
	}
	successions, replaced := 0, 0
	for seed := range seeds {
		bubble(t, func(t *testing.T) {
			more, holders := chance(t, seed)
			successions, replaced = successions+more, replaced+holders
		})
	}
	t.Logf("%d successions, %d holders replaced in %d stories", successions, replaced, seeds)
	if successions == 0 || replaced == 0 {
		t.Error("no process has taken over, or become a holder")
	}
}

// story is a submission whose processes die, come back and are cut off by chance.
type story struct {
	*cluster
	names   []string
	counted map[int]string // runs that count, with what they hold; c.mu is held
}

const storyRuns = 12

// chance tells a story, and returns how often a process has taken over.
func chance(t *testing.T, seed uint64) (successions, replaced int) {
	s := &story{names: []string{"a", "b", "c", "d", "e"}, counted: map[int]string{}}
	s.cluster = newCluster(t, seed, s.names...)
	defer s.close()
	s.lost = []float64{0, 0.2}[seed%2]
	if _, note := s.at("a").submit("1"); note != "" {
		t.Fatalf("seed %d: %s", seed, note)
	}
	over := make(chan struct{})
	var workers sync.WaitGroup
	for _, name := range s.names {
		workers.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(2 * time.Second):
				}
				s.work(s.at(name))
			}
		})
	}
	for !s.over() {
		time.Sleep(s.span(10 * time.Second))
		s.disturb(s.names)
	}
	close(over)
	workers.Wait()
	ends := 0
	for _, name := range s.names {
		p := s.at(name)
		if successions += p.adopted; p.done["1"] {
			ends++
		}
		replaced += p.replaced
	}
	if len(s.counted) < storyRuns/2 || ends != 1 {
		t.Errorf("seed %d: %d runs counted, and %d processes have the record", seed, len(s.counted), ends)
	}
	return successions, replaced
}

// over reports whether all processes are there, and know that the submission has ended.
func (s *story) over() bool {
	return !slices.ContainsFunc(s.names, func(name string) bool {
		p := s.at(name)
		return p.stop.Err() != nil || p.Holds("1")
	})
}

// work makes a run where a process carries the submission out, or ends it.
func (s *story) work(p *process) {
	if p.folder("1") == "" || p.stop.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.stop, 30*time.Second)
	defer cancel()
	var err error
	if p.text("1", storyRuns-1) == "" {
		err = s.makeOne(ctx, p)
	} else {
		s.check(p)
		p.mu.Lock()
		p.done["1"] = true // as a ledger says before others know
		p.mu.Unlock()
		err = p.finish(ctx, "1")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, holders.ErrElsewhere) { // a ledger says so, too
		delete(p.done, "1")
		delete(p.carries, "1")
	}
	if err == nil && p.done["1"] {
		delete(p.carries, "1")
	}
}

func (s *story) makeOne(ctx context.Context, p *process) error {
	run, err := p.make(ctx, "1")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.counted[run]; was != "" {
		s.t.Errorf("run %d counts twice: %q, %q", run, was, p.text("1", run))
	}
	s.counted[run] = p.text("1", run)
	return nil
}

// check expects a record to hold all runs that count.
func (s *story) check(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for run, was := range s.counted {
		if is := p.text("1", run); is != was {
			s.t.Errorf("run %d counted as %q and is %q", run, was, is)
		}
	}
}

// span is a time by chance.
func (c *cluster) span(most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.Int64N(int64(most)))
}

// disturb has something happen to one of the processes, of which most are there.
func (c *cluster) disturb(names []string) {
	c.mu.Lock()
	name := names[c.IntN(len(names))]
	var dead []string
	for _, n := range names {
		if c.all[n].stop.Err() != nil {
			dead = append(dead, n)
		} else if c.all[n].folder("1") != "" && c.IntN(2) == 0 {
			name = n
		}
	}
	what := c.IntN(4)
	other := names[c.IntN(len(names))]
	c.mu.Unlock()
	switch {
	case len(dead) > 1 || len(dead) == 1 && what == 0 || slices.Contains(dead, name):
		c.start(dead[0])
	case what == 0:
		c.mu.Lock()
		if c.cut[[2]string{name, other}] = true; c.IntN(2) == 0 {
			clear(c.cut)
		}
		c.mu.Unlock()
	case what == 1:
		c.leave(name)
	default:
		c.kill(name)
	}
}

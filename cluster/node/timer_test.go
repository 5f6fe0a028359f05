package node

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/journal"
	"github.com/gradwire/gradwire/cluster/mesh"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

// timed is a conductor that knows no time but 0, of a run that has not begun.
func timed(t *testing.T) *conductor {
	t.Helper()
	p := &process{config: Config{Name: "a"}, mesh: mesh.New(mesh.Config{Name: "a"})}
	p.stop, p.halt = context.WithCancelCause(t.Context())
	t.Cleanup(func() { p.halt(nil) })
	c := p.newConductor(1, p.log, &protos.PlaceRun{})
	d := &world.Deployment{Nodes: []world.Node{{Name: "a"}}}
	c.stage = &experiment.Stage{Deployment: d, Collector: record.NewCollector(record.Config{})}
	c.history = journal.NewHistory(d, []train.Role{{Trains: true, Holds: true}}, p.log)
	return c
}

func TestPauseIsNoticedByBothClocks(t *testing.T) {
	const s = time.Second
	for name, x := range map[string]struct {
		ran, day time.Duration
		want     string
	}{
		"none":          {ran: s, day: s},
		"day set back":  {ran: s, day: -time.Hour},
		"stopped":       {ran: 20 * s, day: 20 * s, want: ", was paused for 20.0 s"},
		"asleep":        {ran: s, day: 21 * s, want: ", slept for 20.0 s, or its clock was set forward"},
		"stopped since": {ran: 20 * s, day: 50 * s, want: ", was paused for 20.0 s"},
	} {
		t.Run(name, func(t *testing.T) {
			c := timed(t)
			ran := c.judgePause(x.ran, x.day)
			told, degraded, _ := c.history.Close(0)
			if x.want == "" {
				if len(told) > 0 || degraded || ran != x.ran || c.pauses.Load() != 0 {
					t.Errorf("ran %v, %v", ran, told)
				}
				return
			}
			if ran != 0 || !degraded || c.pauses.Load() != 1 {
				t.Errorf("ran %v, degraded: %v, %d pauses", ran, degraded, c.pauses.Load())
			}
			if len(told) != 1 || told[0].Node != actors.Coordinator || !strings.Contains(told[0].What, x.want) {
				t.Errorf("told: %v", told)
			}
		})
	}
}

// A pause that is noticed when the nodes have been halted does not change what their steps show.
func TestNodesThatAreHaltedAreNotInterrupted(t *testing.T) {
	for _, halted := range []bool{false, true} {
		c := timed(t)
		collector := record.NewCollector(record.Config{Nodes: []string{"n"}, Trains: []bool{true}})
		c.stage.Collector = collector
		step := func(at time.Duration) { collector.Observe(at, 0, actors.Event{Kind: actors.StepDone}) }
		step(time.Second)
		step(2 * time.Second)
		if halted {
			c.halt()
		}
		c.paused(time.Second, "slept")
		step(9 * time.Second)
		want := time.Second
		if halted {
			want = 7 * time.Second
		}
		if _, longest := collector.Paces(); longest != want {
			t.Errorf("halted: %v; the longest step took %v, want %v", halted, longest, want)
		}
	}
}

// A process that wakes up behind the end of its run halts the nodes before it knows that it slept.
func TestNodesThatWereHaltedAfterAPauseDidNotStandStill(t *testing.T) {
	const s = time.Second
	for _, x := range []struct{ slept, last time.Duration }{{0, s}, {20 * s, 9 * s}} {
		c := timed(t)
		c.stage.Collector = record.NewCollector(record.Config{Nodes: []string{"a"}, Trains: []bool{true}})
		c.stage.Collector.Observe(s, 0, actors.Event{Kind: actors.StepDone})
		c.halt()
		c.judgePause(x.slept, x.slept)
		c.excuse(9 * s)
		if paces, _ := c.stage.Collector.Paces(); paces[0].Last != x.last {
			t.Errorf("after a pause of %v the node stood still from %v on, want %v", x.slept, paces[0].Last, x.last)
		}
	}
}

package processes

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	oneSeed  = flag.Uint64("programme.seed", 0, "run the programme of this seed alone")
	seeds    = flag.Uint64("programme.seeds", 0, "number of seeds; by default one per theme, or GRADWIRE_TURN's")
	from     = flag.Uint64("programme.from", 1, "the first seed")
	minutes  = flag.Float64("programme.minutes", 0, "start no further seed after so many minutes; 0 for no bound")
	shrinkTo = flag.Duration("programme.shrink", 5*time.Minute, "time to search for fewer faults that still fail")
)

// outcome is the result of a programme.
type outcome struct {
	violations []violation
	failure    error // error of the test itself
	events     []string
	tails      string // end of each process's log
	states     string // final states of the submissions
	took       time.Duration
}

// run runs a programme in a folder.
func (p *programme) run(ctx context.Context, dir string) (o outcome) {
	c, ctx, err := newCluster(ctx, p, dir)
	r := &running{cluster: c, random: rand.New(rand.NewPCG(p.Seed, 13))} //nolint:gosec // bits to change
	began := time.Now()
	if err == nil {
		c.mu.Lock()
		c.began = began
		c.mu.Unlock()
		r.play(ctx)
	} else {
		c.failed(err)
	}
	c.close()
	for _, s := range r.submissions {
		now := s.now()
		o.states += fmt.Sprintf("; %s %s, %d of %d", s.Name, now.State, now.Done, now.Total)
		if now.Error != "" {
			o.states += fmt.Sprintf(" (%.120s)", now.Error)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.violations, o.failure, o.events, o.took = c.violations, c.failure, c.events, time.Since(began)
	if len(o.violations) > 0 || o.failure != nil {
		o.tails = c.tails(40)
	}
	return o
}

// play submits the plans, injects the faults, and checks the invariants.
func (r *running) play(ctx context.Context) {
	watched, stop := context.WithCancel(ctx)
	defer stop()
	var watches, faults sync.WaitGroup
	for i := range r.programme.Plans {
		w := r.programme.Plans[i]
		r.submissions = append(r.submissions, &submission{workload: &w, r: r})
	}
	for _, s := range r.submissions {
		watches.Go(func() { s.submit(watched) })
	}
	for i := range r.programme.Faults {
		faults.Go(func() { r.inflict(ctx, &r.programme.Faults[i]) })
	}
	faults.Wait()
	if ctx.Err() == nil {
		r.event("all faults are over")
		if err := r.settled(ctx); err != nil && ctx.Err() == nil {
			r.broken("ends", "%v", err)
		}
		r.quiet(ctx)
	}
	stop()
	watches.Wait()
	if ctx.Err() == nil {
		r.final(ctx)
	}
}

// shrink drops one fault after another as long as the same invariant breaks, until ctx ends.
func shrink(ctx context.Context, p *programme, first outcome,
	run func(context.Context, *programme) outcome) (*programme, outcome) {
	least := first
	for i := len(p.Faults) - 1; i >= 0; i-- {
		less := p.without(i)
		o := run(ctx, less)
		if ctx.Err() != nil {
			break
		}
		if len(o.violations) > 0 && o.violations[0].invariant == first.violations[0].invariant {
			p, least = less, o
		}
	}
	return p, least
}

// trial runs the programme of a seed, and reports the first broken invariant with the fewest
// faults.
func trial(t *testing.T, seed uint64) {
	t.Helper()
	p := newProgramme(seed)
	t.Logf("%s", p)
	o := p.run(t.Context(), t.TempDir())
	if o.failure != nil {
		t.Fatalf("the test cannot go on: %v\n%s\n%s", o.failure, strings.Join(o.events, "\n"), o.tails)
	}
	t.Logf("%.1f s, %d processes%s", o.took.Seconds(), len(p.Names), o.states)
	if len(o.violations) == 0 {
		t.Logf("\n%s", strings.Join(o.events, "\n"))
		return
	}
	least, shown := p, o
	if *shrinkTo > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), *shrinkTo)
		defer cancel()
		least, shown = shrink(ctx, p, o, func(ctx context.Context, less *programme) outcome {
			return less.run(ctx, t.TempDir())
		})
	}
	v := o.violations[0]
	t.Errorf("%s: %s\n\n%s\nThe fewest faults that break it:\n\n%s\n%s\n\n%s\n"+
		"go test ./cluster/drill/processes -run 'TestProgramme$' -v -programme.seed %d", v.invariant, v.how,
		strings.Join(o.events, "\n"), least, strings.Join(shown.events, "\n"), shown.tails, seed)
}

// TestProgramme runs clusters of processes under drawn faults, and checks the invariants.
func TestProgramme(t *testing.T) {
	first, n := *from, *seeds
	switch {
	case *oneSeed > 0:
		first, n = *oneSeed, 1
	case n == 0:
		if os.Getenv("GRADWIRE_LENGTHY") == "" {
			t.Skip("runs for minutes; GRADWIRE_LENGTHY=1 or -programme.seeds enables it")
		}
		first, n = turn(uint64(len(themes)))
	}
	if err := unprivileged(); err != nil {
		t.Logf("the programmes omit faults of networks and disks, which require root: %v", err)
	}
	began := time.Now()
	for seed := first; seed < first+n; seed++ {
		if *minutes > 0 && time.Since(began).Minutes() > *minutes {
			t.Logf("%d seeds in %v", seed-first, time.Since(began).Round(time.Second))
			return
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { trial(t, seed) })
	}
}

// turn returns the seeds for GRADWIRE_TURN: one of the first n, so that n consecutive turns run
// all n. Without a turn it returns all n.
func turn(n uint64) (first, number uint64) {
	turn, err := strconv.ParseUint(os.Getenv("GRADWIRE_TURN"), 10, 32)
	if err != nil {
		return 1, n
	}
	return 1 + turn%n, 1
}

// If every pause breaks an invariant, shrink keeps one pause and no other fault.
func TestShrinkKeepsOnlyTheCausingFault(t *testing.T) {
	run := func(_ context.Context, p *programme) (o outcome) {
		for _, f := range p.Faults {
			if f.Kind == pause {
				o.violations = []violation{{"no-pause", f.On}}
			}
		}
		return o
	}
	for seed := uint64(1); seed <= 200; seed++ {
		p := newProgramme(seed)
		before, o := p.String(), run(t.Context(), p)
		if len(o.violations) == 0 {
			continue
		}
		least, _ := shrink(t.Context(), p, o, run)
		if len(least.Faults) != 1 || least.Faults[0].Kind != pause || p.String() != before {
			t.Errorf("shrink keeps %s of %s", least, p)
		}
	}
}

// A seed always makes the same programme, and the first seeds cover all themes.
func TestSeedMakesTheSameProgramme(t *testing.T) {
	seen := map[string]bool{}
	for seed := uint64(1); seed <= 200; seed++ {
		p := newProgramme(seed)
		if text := newProgramme(seed).String(); text != p.String() {
			t.Fatalf("%s\n%s", p, text)
		}
		if seed <= uint64(len(themes)) {
			seen[p.Theme] = true
		}
		if len(p.Plans) == 0 || len(p.Faults) == 0 && !p.Plans[0].poisonous() {
			t.Errorf("a programme without plans or faults: %s", p)
		}
	}
	if len(seen) != len(themes) {
		t.Errorf("themes %v", seen)
	}
}

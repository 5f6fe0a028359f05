// Package programme drills plans that are drawn at random, one for each seed: all architectures,
// over links that lose, repeat and reorder messages, with nodes that crash, leave, join, are
// preempted, pause, slow down and are cut off. In half of them the coordinator is heard late, and
// by one node after the other, as on a cluster. Of a plan in which an invariant breaks it finds a
// smaller one in which that breaks too.
package programme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/drill"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/shelf"
)

// Options say which plans are drilled.
type Options struct {
	// Catalog is what plans can name; nil stands for catalog.Default().
	Catalog *catalog.Catalog
	// From is the first seed, Seeds how many there are.
	From, Seeds uint64
	// Time, unless it is 0, is when no other seed is begun.
	Time time.Duration
	// Patience is how long the runs of one plan may take on this machine; 0 stands for half a
	// minute. A plan whose runs take longer breaks [drill.Progress].
	Patience time.Duration
	// Invariants are checked; nil stands for drill.Invariants().
	Invariants []drill.Invariant
	// Progress, if not nil, is told how far the programme is, one call at a time.
	Progress func(experiment.Progress)
}

// Failure is a plan in which an invariant broke.
type Failure struct {
	Seed uint64 `json:"seed"`
	// Invariant is its name, and How says how it broke.
	Invariant string `json:"invariant"`
	How       string `json:"how"`
	// Plan is the smallest plan that was found in which it breaks too.
	Plan string `json:"plan"`
}

// Report is what a programme leaves.
type Report struct {
	From uint64 `json:"from"`
	// Seeds were drilled, in Wall seconds.
	Seeds uint64  `json:"seeds"`
	Wall  float64 `json:"wall_s"`
	// Watched is in how many plans each invariant could be watched.
	Watched map[string]uint64 `json:"watched"`
	// Failures are in the order of seeds, one of each at most.
	Failures []Failure `json:"failures"`
}

// Run drills the plans of some seeds side by side. The error is that of ctx, or of a plan that
// cannot run; what was found until then is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &programme{Options: o, shelf: shelf.New("", 1, nil), began: time.Now(),
		report: Report{From: o.From, Watched: map[string]uint64{}}, failures: map[uint64]Failure{}}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed, ok := p.next(); ok && ctx.Err() == nil; seed, ok = p.next() {
				if err := p.drill(ctx, seed); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return p.summary(), context.Cause(ctx)
}

// programme is one under way.
type programme struct {
	Options
	shelf *shelf.Shelf
	began time.Time

	mu       sync.Mutex
	begun    uint64
	report   Report
	failures map[uint64]Failure
}

// next returns a seed that nobody has begun.
func (p *programme) next() (seed uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == p.Seeds || p.Time > 0 && time.Since(p.began) > p.Time {
		return 0, false
	}
	p.begun++
	return p.From + p.begun - 1, true
}

// drill drills the plan of a seed, and shrinks it if an invariant breaks.
func (p *programme) drill(ctx context.Context, seed uint64) error {
	c := New(seed)
	patience := cmp.Or(p.Patience, patience)
	verdicts, err := p.verdicts(ctx, &c, patience)
	if err != nil {
		return err
	}
	var failure *Failure
	for _, v := range verdicts {
		if v.Broken != "" {
			failure = &Failure{Seed: seed, Invariant: v.Name, How: v.Broken}
			if failure.Plan, err = p.shrink(ctx, c, v.Name, patience/10); err != nil {
				return err
			}
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Seeds++
	for _, v := range verdicts {
		if v.Watched {
			p.report.Watched[v.Name]++
		}
	}
	if failure != nil {
		p.failures[seed] = *failure
	}
	if p.Progress != nil {
		share := float64(p.report.Seeds) / float64(p.Seeds)
		if p.Time > 0 {
			share = max(share, min(float64(time.Since(p.began))/float64(p.Time), 1))
		}
		p.Progress(experiment.Progress{Done: int(p.report.Seeds), Total: int(p.Seeds), Share: share})
	}
	return nil
}

// patience is that of a programme: many times what its runs take.
const patience = 30 * time.Second

// errEndless is why the runs of a plan are ended.
var errEndless = errors.New("the runs of the plan do not end in good time")

// verdicts drills the plan of a case, whose runs may take this long.
func (p *programme) verdicts(ctx context.Context, c *Case, patience time.Duration) ([]drill.Verdict, error) {
	name := fmt.Sprintf("case-%d.yaml", c.Seed)
	parsed, err := experiment.Parse(name, []byte(c.YAML()))
	if err != nil {
		return nil, fmt.Errorf("seed %d: %w", c.Seed, err)
	}
	points, err := parsed.Points(p.Catalog)
	if err != nil {
		return nil, fmt.Errorf("seed %d: %w", c.Seed, err)
	}
	points[0].Late = time.Duration(c.Late) * time.Millisecond
	limited, cancel := context.WithTimeoutCause(ctx, patience, errEndless)
	defer cancel()
	w, err := drill.Make(limited, &points[0], p.shelf, c.Seed, drill.Options{Catalog: p.Catalog})
	switch {
	case errors.Is(err, errEndless):
		return []drill.Verdict{{Name: drill.Progress.Name, Watched: true, Broken: err.Error()}}, nil
	case err != nil:
		return nil, fmt.Errorf("seed %d: %w", c.Seed, err)
	}
	return drill.Check(w, p.Invariants...), nil
}

// shrink returns the plan of the smallest case that it finds in which an invariant breaks. Patience
// bounds the runs of each, and is short: if those of a plan do not end, those of most smaller ones
// do not either.
func (p *programme) shrink(ctx context.Context, c Case, invariant string, patience time.Duration) (string, error) {
	for found := true; found; {
		found = false
		for _, smaller := range c.Smaller() {
			verdicts, err := p.verdicts(ctx, &smaller, patience)
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			if err == nil && breaks(verdicts, invariant) {
				c, found = smaller, true
				break
			}
		}
	}
	return c.YAML(), nil
}

func breaks(verdicts []drill.Verdict, invariant string) bool {
	for _, v := range verdicts {
		if v.Name == invariant && v.Broken != "" {
			return true
		}
	}
	return false
}

// summary ends the report.
func (p *programme) summary() *Report {
	r := &p.report
	r.Wall = time.Since(p.began).Seconds()
	for seed := p.From; seed < p.From+p.begun; seed++ {
		if f, broken := p.failures[seed]; broken {
			r.Failures = append(r.Failures, f)
		}
	}
	return r
}

// Err names what broke; nil if nothing did.
func (r *Report) Err() error {
	if len(r.Failures) == 0 {
		return nil
	}
	f := &r.Failures[0]
	return fmt.Errorf("%d of %d plans broke an invariant; the first is seed %d: %s: %s", len(r.Failures), r.Seeds,
		f.Seed, f.Invariant, f.How)
}

// Write writes the report as text: what broke, with the plans and the commands that repeat it, and
// in how many plans each invariant was watched.
func (r *Report) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.Failures {
		fmt.Fprintf(w, "seed %d broke %s: %s\n\n%s\nrepeat it: gradwire drill --seeds 1 --from %d\n\n", f.Seed,
			f.Invariant, f.How, f.Plan, f.Seed)
	}
	fmt.Fprintf(w, "invariant\tplans that watched it\n")
	for _, i := range drill.Invariants() {
		fmt.Fprintf(w, "%s\t%d\n", i.Name, r.Watched[i.Name])
	}
	fmt.Fprintf(w, "\n%d plans, from seed %d, in %.1f s: %.1f a second; %d broke an invariant\n", r.Seeds, r.From,
		r.Wall, float64(r.Seeds)/r.Wall, len(r.Failures))
	return w.Flush()
}

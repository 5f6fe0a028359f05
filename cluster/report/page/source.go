package page

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/report/pairing"
)

// maxRuns is the most runs of all records of a page: with more, what is kept of each is
// too much for the memory, and no figure shows them.
const maxRuns = 20_000

// Source is a record that a page shows.
type Source struct {
	// Name is what the record is called beside others, Dir where it lies.
	Name, Dir string
	// Plan is the resolved plan's text.
	Plan string
	figure.Data
}

// Read reads the records of these folders, one run after the other: of each the curve,
// what was measured and the counts are kept, events are not looked at.
func Read(dirs []string) ([]*Source, error) {
	names, err := sourceNames(dirs)
	if err != nil {
		return nil, err
	}
	var all []*Source
	runs := 0
	for i, dir := range dirs {
		r, err := record.NewReader(dir)
		if err != nil {
			return nil, err
		}
		if runs += len(r.Summary.Runs); runs > maxRuns {
			return nil, fmt.Errorf("%s: with this record a page would have %d runs; at most %d are accepted",
				dir, runs, maxRuns)
		}
		s, err := readSource(r)
		if err != nil {
			return nil, err
		}
		s.Name = names[i]
		all = append(all, s)
	}
	return all, nil
}

// sourceNames calls records by their folders, as far up as these must be told apart.
func sourceNames(dirs []string) ([]string, error) {
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if slices.Contains(paths[:i], path) {
			return nil, fmt.Errorf("%s is named twice", dir)
		}
		paths[i] = path
	}
	names := make([]string, len(dirs))
	for i, path := range paths {
		parts := strings.Split(filepath.ToSlash(path), "/")
		for n := 1; n <= len(parts); n++ {
			names[i] = strings.Join(parts[len(parts)-n:], "/")
			like := func(other string) bool { return strings.HasSuffix("/"+filepath.ToSlash(other), "/"+names[i]) }
			if slices.IndexFunc(paths, like) == i && !slices.ContainsFunc(paths[i+1:], like) {
				break
			}
		}
	}
	return names, nil
}

// Of makes a source of a record that has just been made, whose traces have not to be read again.
func Of(dir, plan string, summary record.Summary, traces []record.Trace) *Source {
	s := &Source{Name: filepath.Base(dir), Dir: dir, Plan: plan, Data: figure.Data{Summary: summary, Traces: traces}}
	w := s.workers()
	read := 0
	for i := range summary.Runs {
		if traces[i].Updates != nil {
			read++
		}
		w.add(&summary.Runs[i], traces[i].Updates)
	}
	if s.Work = w.sorted(); read < len(summary.Runs) {
		s.Note = fmt.Sprintf(" Of %d of %d runs; gradwire report draws all.", read, len(summary.Runs))
	}
	return s
}

// IncludeResumed makes comparisons include the runs that were resumed from a checkpoint.
func (s *Source) IncludeResumed() {
	for i := range s.Summary.Runs {
		s.Summary.Runs[i].ComparedIfResumed = true
	}
	s.Summary.Groups = record.GroupRuns(s.Summary.Runs, s.Summary.Target)
}

// Choose keeps the runs whose points meet conditions, see report.Where, and has the factors of
// their sweep shown as a view asks. It returns all sources as one, whose points begin with the
// record's name where there are several.
func Choose(sources []*Source, view report.View, conditions []string) (*Source, error) {
	for _, s := range sources {
		kept, err := report.Where(s.Summary, conditions)
		if err != nil {
			return nil, err
		}
		if len(kept) < len(s.Summary.Runs) {
			s.keep(kept)
		}
		s.View = view
	}
	all := join(sources)
	_, err := view.Arrange(all.Summary)
	return all, err
}

// keep keeps the runs at these places.
func (s *Source) keep(places []int) {
	before := s.Summary.Groups
	runs, traces := s.Summary.Runs, s.Traces
	s.Summary.Runs, s.Traces = nil, nil
	for _, i := range places {
		s.Summary.Runs, s.Traces = append(s.Summary.Runs, runs[i]), append(s.Traces, traces[i])
	}
	s.Summary.Groups = record.GroupRuns(s.Summary.Runs, s.Summary.Target)
	has := func(p record.Point) int {
		return slices.IndexFunc(s.Summary.Groups, func(g record.Group) bool { return slices.Equal(g.Point, p) })
	}
	s.Work = slices.DeleteFunc(s.Work, func(w *figure.Workload) bool { return has(before[w.Group].Point) < 0 })
	for _, w := range s.Work {
		w.Group = has(before[w.Group].Point)
	}
	s.Summary.Tunings = slices.DeleteFunc(slices.Clone(s.Summary.Tunings), func(t record.Tuning) bool {
		return has(t.Point) < 0
	})
}

// workers counts what the workers of a source did.
type workers struct {
	groups     map[string]int
	all        *figure.Workloads
	serverless []bool // by group
}

func (s *Source) workers() *workers {
	n := len(s.Summary.Groups)
	w := &workers{groups: map[string]int{}, all: figure.NewWorkloads(n), serverless: make([]bool, n)}
	for i, g := range s.Summary.Groups {
		w.groups[g.Point.Key()] = i
	}
	return w
}

func (w *workers) add(r *record.Run, updates []record.Update) {
	group := w.groups[r.Point.Key()]
	w.serverless[group] = w.serverless[group] || r.Serverless()
	w.all.Add(group, r.Duration, updates)
}

func (w *workers) sorted() []*figure.Workload {
	all := w.all.Sorted()
	for _, one := range all {
		if w.serverless[one.Group] && one.Staleness.Total() == 0 {
			one.Staleness, one.Serverless = nil, true
		}
	}
	return all
}

func readSource(r *record.Reader) (*Source, error) {
	s := &Source{Dir: r.Dir(), Plan: r.Plan, Data: figure.Data{Summary: r.Summary}}
	w, linked := s.workers(), make([]bool, len(s.Summary.Groups))
	for _, listed := range s.Summary.Runs {
		run, data, err := r.Run(listed.Number).Read()
		if err != nil {
			return nil, err
		}
		if err := r.Summary.CheckListed(&run); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Run(listed.Number).Path(), err)
		}
		trace := record.Trace{Curve: data.Curve, Measured: data.Measured}
		if group := w.groups[run.Point.Key()]; !linked[group] {
			linked[group], trace.Links = true, data.Links
		}
		s.Traces = append(s.Traces, trace)
		run.Models, run.Holders = listed.Models, listed.Holders
		w.add(&run, data.Updates)
	}
	s.Work = w.sorted()
	return s, nil
}

// join makes of several records one, whose points begin with the record's name and are compared
// with each other.
func join(sources []*Source) *Source {
	if len(sources) == 1 {
		return sources[0]
	}
	all := &Source{Name: "all", Data: figure.Data{View: sources[0].View}}
	key := "" // in which paired points differ: the record says that already
	if p := pairOf(sources); p != nil {
		key = p.Key
	}
	var names []string
	groups := 0
	all.Summary.Complete = true
	for _, s := range sources {
		names = append(names, s.Name)
		all.Summary.Complete = all.Summary.Complete && s.Summary.Complete
		all.Summary.RunsPlanned += s.Summary.RunsPlanned
		for _, w := range s.Work {
			moved := *w
			moved.Group += groups
			all.Work = append(all.Work, &moved)
		}
		groups += len(s.Summary.Groups)
		targets := map[string]*float64{}
		for _, g := range s.Summary.Groups {
			targets[g.Point.Key()] = g.Target
		}
		for _, r := range s.Summary.Runs {
			r.Target = targets[r.Point.Key()]
			r.Point = append(record.Point{{Key: report.RecordKey, Value: s.Name}}, pairing.Without(r.Point, key)...)
			all.Summary.Runs = append(all.Summary.Runs, r)
		}
		for _, t := range s.Summary.Tunings {
			t.Point = append(record.Point{{Key: report.RecordKey, Value: s.Name}}, pairing.Without(t.Point, key)...)
			all.Summary.Tunings = append(all.Summary.Tunings, t)
		}
		for _, t := range s.Traces {
			t.Links = nil // networks are shown of each record by itself
			all.Traces = append(all.Traces, t)
		}
	}
	all.Summary.Groups = record.GroupRuns(all.Summary.Runs, nil)
	if targets := report.Targets(all.Summary); len(targets) == 1 {
		all.Summary.Target = &targets[0]
	}
	all.Summary.Plan = strings.Join(names, ", ")
	return all
}

package page

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
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

func readSource(r *record.Reader) (*Source, error) {
	s := &Source{Dir: r.Dir(), Plan: r.Plan, Data: figure.Data{Summary: r.Summary}}
	groups := map[string]int{}
	for i, g := range s.Summary.Groups {
		groups[g.Point.Key()] = i
	}
	w := figure.NewWorkloads(len(s.Summary.Groups))
	linked, serverless := make([]bool, len(s.Summary.Groups)), make([]bool, len(s.Summary.Groups))
	for _, listed := range s.Summary.Runs {
		run, data, err := r.Run(listed.Number).Read()
		if err != nil {
			return nil, err
		}
		if !slices.Equal(run.Point, listed.Point) || run.Seed != listed.Seed {
			return nil, fmt.Errorf("%s: run %d is of %q, seed %d; summary.json says %q, seed %d",
				r.Run(listed.Number).Path(), run.Number, run.Point.String(), run.Seed, listed.Point.String(),
				listed.Seed)
		}
		trace := record.Trace{Curve: data.Curve, Measured: data.Measured}
		group := groups[run.Point.Key()]
		if !linked[group] {
			linked[group], trace.Links = true, data.Links
		}
		s.Traces = append(s.Traces, trace)
		serverless[group] = serverless[group] || listed.Serverless()
		w.Add(group, run.Duration, data.Updates)
	}
	s.Work = w.Sorted()
	for _, one := range s.Work {
		if serverless[one.Group] && one.Staleness.Total() == 0 {
			one.Staleness, one.Serverless = nil, true
		}
	}
	return s, nil
}

// sourceKey is the key that tells points of several records apart.
const sourceKey = "record"

// join makes of several records one, whose points begin with the record's name and are compared
// with each other.
func join(sources []*Source) *Source {
	if len(sources) == 1 {
		return sources[0]
	}
	all := &Source{Name: "all"}
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
			r.Point = append(record.Point{{Key: sourceKey, Value: s.Name}}, r.Point...)
			all.Summary.Runs = append(all.Summary.Runs, r)
		}
		for _, t := range s.Summary.Tunings {
			t.Point = append(record.Point{{Key: sourceKey, Value: s.Name}}, t.Point...)
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

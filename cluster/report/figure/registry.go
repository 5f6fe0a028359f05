// Package figure draws recorded runs as PNG, SVG and elements of a page.
//
// Its registry holds every kind of figure with its section, its title and what it needs ([Kind]);
// the commands run and report draw from it. A new kind of figure is a file that registers itself.
// [Probes] draws what links do without a run.
package figure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
)

// Section is the part of a report that a figure stands in.
type Section int

// The sections, in the order in which a report has them.
const (
	Accuracy Section = iota
	Target
	Work
	Network
)

// Need says what a figure is drawn from, beside the summary.
type Need int

// The needs, which can be added up.
const (
	Curves Need = 1 << iota
	Measurements
	Links
	Workers
)

// Data is what figures are drawn from.
type Data struct {
	Summary record.Summary
	// Traces has the curve, the measurements and the links of each of the summary's runs. Of the
	// runs of a point, the first alone needs links.
	Traces []record.Trace
	// Work says what the workers of each group did; nil if nobody has counted it.
	Work []*Workload
	// View says which factors a reader asked for.
	View report.View
	// Note is added to the captions of figures of traces: which runs these are of.
	Note string
}

// layout gives each factor of the sweep its meaning. Whoever takes a View from a reader has told
// him what is wrong with it.
func (d *Data) layout() report.Layout {
	l, err := d.View.Arrange(d.Summary)
	if err != nil {
		l, _ = report.View{}.Arrange(d.Summary) // which has nothing to refuse
	}
	return l
}

// looks gives each point its look.
func (d *Data) looks() []look { return looksOf(d.Summary.Groups, d.layout()) }

// provides returns the needs that the data meet.
func (d *Data) provides() (met Need) {
	for _, t := range d.Traces {
		if len(t.Curve) > 0 {
			met |= Curves
		}
		if len(t.Measured) > 0 {
			met |= Measurements
		}
		if len(t.Links) > 0 {
			met |= Links
		}
	}
	if len(d.Work) > 0 {
		met |= Workers
	}
	return met
}

// Kind is an entry of the registry: one figure, or several alike. A file that draws a new one
// registers it in its init function; the commands run and report then draw it.
type Kind struct {
	// Name names the files of the figure.
	Name string
	// Numbered says that there can be several figures: the first one's files are called Name-1.
	Numbered bool
	Section  Section
	// Place orders the kinds of a section; where it is the same, their names do.
	Place int
	// Needs is what must be there; without it the figure is left out.
	Needs Need
	// Drawings returns the figures of this kind with their titles and how to draw them.
	Drawings func(d *Data) []Drawing
}

// Drawing is a figure that has not been drawn yet.
type Drawing struct {
	// Kind is the registered name, Name the name of the files. All fills in both, and Section.
	Kind, Name string
	Section    Section
	// Title is the figure's heading in a report.
	Title string
	// Draw returns nil if there is nothing to draw.
	Draw func() *Figure
}

// kinds are all kinds of figures in the order in which they are drawn.
var kinds []Kind

const kindTwice = "figure: two kinds have the same name"

// register adds a kind of figure. It is called by init functions alone.
func register(k Kind) {
	if slices.ContainsFunc(kinds, func(other Kind) bool { return other.Name == k.Name }) {
		panic(kindTwice)
	}
	kinds = append(kinds, k)
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Name, b.Name))
	})
}

// single is for a kind of one figure.
func single(title func(record.Summary) string, draw func(*Data) *Figure) func(*Data) []Drawing {
	return func(d *Data) []Drawing {
		return []Drawing{{Title: title(d.Summary), Draw: func() *Figure { return draw(d) }}}
	}
}

// titled is the title of a figure that has the same for every summary.
func titled(title string) func(record.Summary) string {
	return func(record.Summary) string { return title }
}

// All returns the figures that the data have what is needed for, in the order of the registry.
func All(d *Data) (all []Drawing) {
	provided := d.provides()
	for _, k := range kinds {
		if k.Needs&^provided != 0 {
			continue
		}
		for i, one := range k.Drawings(d) {
			one.Kind, one.Name, one.Section = k.Name, k.Name, k.Section
			if k.Numbered {
				one.Name = fmt.Sprintf("%s-%d", k.Name, i+1)
			}
			all = append(all, one)
		}
	}
	return all
}

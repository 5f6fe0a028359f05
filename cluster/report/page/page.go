// Package page writes one or several records as a page of HTML with figures, tables and plans. It
// also writes the figures and tables as files beside the page.
package page

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/report/pivot"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// maxRows is how many rows of a table a page has; its CSV file has all.
const maxRows = 1000

// page is what is shown.
type page struct {
	Title    string
	Headline []string // who won, and how sure that is
	Lead     []string
	Sections []*section
}

// section is a part of the page that can be folded up.
type section struct {
	ID, Title string
	Figures   []*shownFigure
	Tables    []*table
	Texts     []listing
	Notes     []string
}

type shownFigure struct {
	kind           string
	All            bool // has the whole width of the page
	Title, Caption string
	Wide, Narrow   string // svg elements
}

// table is a table; the first Labels columns are texts, the others numbers.
type table struct {
	Caption, Note string
	Folded        bool
	Labels        int
	keys          []string // of the settings of points that rows begin with
	Head          []string
	Rows          [][]string
}

type listing struct{ Title, Text string }

// Output says what Write has written.
type Output struct {
	// Page is the path of the page, Folder the path of the folder with its figures and tables.
	Page, Folder string
	// Figures counts the figures, each a PNG and an SVG; Tables are the names of the CSV files.
	Figures int
	Tables  []string
}

// Write shows records in a page of HTML that needs nothing else, no script and no
// network, and writes its figures as PNG and SVG and its tables as CSV into a folder
// beside it, which is named after it. Equal records give equal bytes.
func Write(out string, sources []*Source) (*Output, error) {
	return write(sources, &Output{Page: out, Folder: strings.TrimSuffix(out, filepath.Ext(out)) + "-files"}, true)
}

// WriteIn shows a record in the page index.html of a folder, and writes its figures beside it.
func WriteIn(dir string, s *Source) (*Output, error) {
	return write([]*Source{s}, &Output{Page: filepath.Join(dir, IndexName), Folder: dir}, false)
}

// IndexName is the page that a run leaves in its record.
const IndexName = "index.html"

func write(sources []*Source, o *Output, tables bool) (*Output, error) {
	b := &builder{output: o, sources: sources, all: join(sources)}
	if err := os.MkdirAll(o.Folder, 0o777); err != nil {
		return nil, err
	}
	p, err := b.page()
	if err != nil {
		return nil, err
	}
	if tables {
		if err := b.writeTables(); err != nil {
			return nil, err
		}
	}
	return o, record.WriteFile(o.Page, p.html())
}

// builder puts a page together.
type builder struct {
	output  *Output
	sources []*Source
	all     *Source
}

func (b *builder) several() bool { return len(b.sources) > 1 }

func (b *builder) page() (*page, error) {
	p := &page{Title: "Gradwire: " + b.all.Summary.Plan}
	what := report.Judged(b.all.Summary)
	if by := report.JudgedBy(b.all.Summary); by != "" {
		p.Title += ", " + by
	}
	target := "Time and epochs to the target" + report.JudgedSuffix(b.all.Summary)
	parts := []*section{
		{ID: "comparison", Title: "Comparison"}, {ID: "accuracy", Title: report.Capitalized(what)},
		{ID: "target", Title: target},
		{ID: "work", Title: "Staleness and waiting"}, {ID: "network", Title: "Network"}, {ID: "runs", Title: "Runs"},
		{ID: "plan", Title: "Plan and build"},
	}
	p.Headline = append(report.Headline(b.all.Summary), Paired(b.sources)...)
	for _, s := range b.sources {
		p.Lead = append(p.Lead, lead(s))
	}
	paired := pairOf(b.sources)
	if paired != nil {
		p.Lead = append(p.Lead, paired.lead())
		parts[0].Tables = append(parts[0].Tables, paired.table())
	}
	if len(report.Targets(b.all.Summary)) > 1 {
		p.Lead = append(p.Lead, b.targets())
	}
	b.comparison(parts[0])
	if err := b.figures(parts[0], map[figure.Section]*section{
		figure.Accuracy: parts[1], figure.Target: parts[2], figure.Work: parts[3], figure.Network: parts[4],
	}); err != nil {
		return nil, err
	}
	parts[3].Tables = append(parts[3].Tables, workTable(b.all))
	for _, s := range b.sources {
		parts[4].Tables = append(parts[4].Tables, linkTable(s, b.title("Links", s)))
		parts[6].Tables = append(parts[6].Tables, buildTable(&s.Summary, b.title("Build", s)))
		parts[6].Texts = append(parts[6].Texts, listing{b.title("The plan, with every default spelled out", s), s.Plan})
	}
	parts[5].Tables = append(parts[5].Tables, incidentTable(b.all), faultTable(b.all),
		runTable(b.all), measuredTable(b.all))
	for _, part := range parts {
		part.Tables = slices.DeleteFunc(part.Tables, func(t *table) bool { return len(t.Rows) == 0 })
		if len(part.Figures)+len(part.Tables)+len(part.Texts) > 0 {
			p.Sections = append(p.Sections, part)
		}
	}
	return p, nil
}

// targets says that points of different targets are not compared.
func (b *builder) targets() string {
	const apart = "Only points of one target are compared."
	if !b.several() {
		return apart
	}
	for _, target := range report.Targets(b.sources[0].Summary) {
		if !slices.ContainsFunc(b.sources[1:], func(s *Source) bool {
			return !slices.Contains(report.Targets(s.Summary), target)
		}) {
			return apart
		}
	}
	return "The records have no target in common. " + apart
}

// title adds the record's name where there are several.
func (b *builder) title(text string, s *Source) string {
	switch {
	case !b.several():
		return text
	case s == b.all:
		return text + ", all records"
	}
	return text + ", " + s.Name
}

// lead says in a sentence what a record is of.
func lead(s *Source) string {
	parts := []string{fmt.Sprintf("%s: %s of %s", s.Name, report.Count(len(s.Summary.Runs), "run"),
		report.Count(len(s.Summary.Groups), "point"))}
	if s.Summary.Plan != s.Name {
		parts = append(parts, "plan "+s.Summary.Plan)
	}
	if len(report.Targets(s.Summary)) > 0 {
		parts = append(parts, "target "+report.TargetName(s.Summary))
	}
	parts = append(parts, report.JudgedBy(s.Summary))
	parts = append(append(parts, report.Spoilt(s.Summary)...), s.Summary.Missing())
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, ", ") + "."
}

// comparison shows all points in one table, or each record's by itself where times to the
// target are not of one target. A sweep of several factors is pivoted first.
func (b *builder) comparison(part *section) {
	layout, err := b.all.View.Arrange(b.all.Summary)
	if err == nil && (len(layout.Facets) > 0 || layout.Dash != nil) {
		part.Tables = append(part.Tables, pivotTable(pivot.Of(b.all.Summary, layout)))
	}
	if err == nil {
		part.Tables = append(part.Tables, pivotTable(pivot.Ranks(b.all.Summary, layout)))
	}
	part.Tables = slices.DeleteFunc(part.Tables, func(t *table) bool { return t == nil })
	shown := []*Source{b.all}
	for _, s := range b.sources {
		if !slices.Equal(report.Targets(s.Summary), report.Targets(b.sources[0].Summary)) {
			shown = b.sources
		}
	}
	for _, s := range shown {
		means := summaryTable(s, b.title("Medians, and means of goodput, messages and MB", s))
		means.Folded = len(part.Tables) > 0 && len(means.Rows) > foldedRows
		part.Tables = append(part.Tables, means)
		part.Notes = slices.Concat(part.Notes, text.Notes(s.Summary), text.Method(s.Summary))
	}
}

// foldedRows is how many rows of means stand open below tables that say the same in short.
const foldedRows = 12

// first are the kinds of figures that stand beside the comparison: who won, and how.
var first = []string{"target-time", "accuracy-time"}

// figures draws what there is to draw: into the sections of the page, and
// into files. The first of the page stand beside the comparison.
func (b *builder) figures(comparison *section, sections map[figure.Section]*section) error {
	shown := b.sources
	if b.several() {
		shown = append([]*Source{b.all}, b.sources...)
	}
	var jobs []job
	for i, s := range shown {
		folder := b.output.Folder
		if b.several() {
			folder = filepath.Join(folder, fmt.Sprintf("%d-%s", i, fileName(s.Name)))
			if err := os.MkdirAll(folder, 0o777); err != nil {
				return err
			}
		}
		for _, d := range figure.All(&s.Data) {
			jobs = append(jobs, job{Drawing: d, source: s, folder: folder})
		}
	}
	b.drawAll(jobs)
	for _, j := range jobs {
		if j.err != nil {
			return fmt.Errorf("%s: drawing %s: %w", j.source.Dir, j.Name, j.err)
		}
		if j.figure != nil {
			part := sections[j.Section]
			if slices.Contains(first, j.Kind) && j.source == shown[0] {
				part = comparison
			}
			part.Figures = append(part.Figures, j.figure)
			b.output.Figures++
		}
	}
	var kinds []string
	for _, j := range jobs {
		if !slices.Contains(kinds, j.Kind) {
			kinds = append(kinds, j.Kind)
		}
	}
	for _, part := range sections {
		sideBySide(part, kinds)
	}
	sideBySide(comparison, first)
	return nil
}

// job is a drawing that is to be drawn.
type job struct {
	figure.Drawing
	source *Source
	folder string
	figure *shownFigure // nil if there is nothing to draw
	err    error
}

// drawnAtOnce is how many figures are drawn side by side: a core each, and some wait for the disk.
const drawnAtOnce = 4

// drawAll draws figures side by side.
func (b *builder) drawAll(jobs []job) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(drawnAtOnce, len(jobs)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(jobs); i = int(next.Add(1)) - 1 {
				b.draw(&jobs[i])
			}
		})
	}
	all.Wait()
}

// sideBySide puts figures of one kind next to each other, in the order of the kinds.
func sideBySide(part *section, kinds []string) {
	slices.SortStableFunc(part.Figures, func(x, y *shownFigure) int {
		return slices.Index(kinds, x.kind) - slices.Index(kinds, y.kind)
	})
}

// draw draws a figure, if there is anything to draw.
func (b *builder) draw(j *job) {
	f := j.Draw()
	if f == nil {
		return
	}
	j.figure = &shownFigure{kind: j.Kind, All: b.several() && j.source == b.all || f.Divided(),
		Title:   b.title(j.Title, j.source),
		Caption: f.Caption()}
	j.figure.Wide, j.figure.Narrow = f.Inline(j.figure.Title)
	j.err = f.Save(filepath.Join(j.folder, j.Name))
}

// fileName makes of a record's name one that any system takes.
func fileName(name string) string {
	safe := func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}
	return report.Cut(strings.Map(safe, name), 64)
}

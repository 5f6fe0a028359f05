package csv

import (
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
)

// Load reads the file train into Pool and, unless its name is empty, the file test into Test. The
// test file has the same columns and no other labels; a word that only it has is none of its
// column's, and is noted. Columns of numbers are Numeric; inputs are in the order of the columns.
// Labels, and the words of a column, are in ascending order: by value if all are numbers, as text
// otherwise.
func Load(train, test string, o Options) (*datasets.Source, error) {
	return LoadParts([]Part{{Path: train}}, test, o)
}

// Part is the file of a part of a table.
type Part struct {
	// Name is the part's, which its samples have as their group.
	Name string
	Path string
}

// LoadParts is Load of a table in several files, one after the other, with the same columns; labels
// and words are those of all of them. Unless the options name a column, the parts are the groups.
func LoadParts(parts []Part, test string, o Options) (*datasets.Source, error) {
	if separators[o.Separator] == 0 {
		return nil, fmt.Errorf("separator %q; accepted are comma, semicolon, tab and bar", o.Separator)
	}
	tables, files, err := o.openParts(parts, nil)
	if err != nil {
		return nil, err
	}
	if origins := tables[0].needed(); origins != nil {
		if tables, files, err = o.openParts(parts, origins); err != nil {
			return nil, err
		}
	}
	source := &datasets.Source{Files: files}
	first := tables[0]
	if test != "" {
		first.joint = false
		second, file, err := o.open(test, first)
		if err != nil {
			return nil, err
		}
		source.Test, source.Files = second.set(test), append(source.Files, file)
	}
	if err := checkBudget(tables, parts); err != nil {
		return nil, err
	}
	source.Pool = first.set(parts[0].Path)
	if parts[0].Name != "" {
		source.Pool = join(source.Pool, tables[1:], parts)
	}
	return source, nil
}

// openParts reads the tables, whose columns are held as differences from the given origins.
func (o Options) openParts(parts []Part, origins []float64) (tables []*table, files []input.File, err error) {
	o.origins = origins
	for _, part := range parts {
		var like *table
		if len(tables) > 0 {
			like = tables[0]
			like.joint = true
		}
		t, file, err := o.open(part.Path, like)
		if err != nil {
			return nil, nil, err
		}
		tables, files = append(tables, t), append(files, file)
	}
	return tables, files, checkFirstLines(tables)
}

// needed are the origins that the columns need; nil for none.
func (t *table) needed() []float64 {
	columns := make([]datasets.Precision, len(t.columns))
	for i, c := range t.columns {
		columns[i] = *c.precision
	}
	return datasets.Origins(columns)
}

// checkBudget checks that the samples of several files can be written out with the words of all.
func checkBudget(tables []*table, parts []Part) error {
	var need, budget int64
	for i, t := range tables {
		need += 2*t.labels.Bytes() + 2*t.groups.Bytes() + t.values.Bytes() + 4*int64(t.labels.Len())*int64(t.inputs())
		if budget += t.text.Budget(); need > budget {
			return fmt.Errorf("%s: samples of %d inputs, with the words of all files, take %d bytes so far; accepted "+
				"are %d", parts[i].Path, t.inputs(), need, budget)
		}
	}
	return nil
}

// join puts the samples of the tables that are the other parts behind those of the first one.
func join(s *datasets.Set, others []*table, parts []Part) *datasets.Set {
	byColumn := s.Groups != nil
	for i, part := range parts {
		n := s.Len()
		if i > 0 {
			n = others[i-1].labels.Len()
			more := others[i-1].set(part.Path)
			s.X, s.Y = append(s.X, more.X...), append(s.Y, more.Y...)
			s.Groups, s.GroupNames = append(s.Groups, more.Groups...), more.GroupNames
		}
		if !byColumn {
			s.Groups = append(s.Groups, slices.Repeat([]int32{int32(i)}, n)...)
		}
	}
	if !byColumn {
		s.GroupNames = nil
		for _, part := range parts {
			s.GroupNames = append(s.GroupNames, part.Name)
		}
	}
	if len(others) > 0 {
		s.Name = fmt.Sprintf("%s and %d more", s.Name, len(others))
	}
	return s
}

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
	"github.com/gradwire/gradwire/datasets/published"
)

// sorted returns the words in ascending order, and the position of each in it.
func (v *vocabulary) sorted() (words []string, position []int32) {
	numbers := make(map[string]float64, len(v.words))
	for _, w := range v.words {
		if x, err := parse([]byte(w)); err == nil {
			numbers[w] = float64(x.narrow)
		}
	}
	words = slices.Clone(v.words)
	slices.SortFunc(words, func(a, b string) int {
		if len(numbers) == len(words) {
			return cmp.Or(cmp.Compare(numbers[a], numbers[b]), strings.Compare(a, b))
		}
		return strings.Compare(a, b)
	})
	position = make([]int32, len(words))
	for i, w := range words {
		position[v.index[w]] = int32(i)
	}
	return words, position
}

// place is where a column of numbers or words begins among the inputs.
type place struct {
	first    int
	position []int32 // nil for numbers
}

// places are where the columns of numbers and words begin, in the order of this table, given where
// those of the training table do.
func (t *table) places(starts []place) (places []place) {
	for _, c := range t.columns {
		if c.role == number || c.role == word {
			places = append(places, starts[c.at])
		}
	}
	return places
}

// originsOf are the origins of that many inputs; nil for none.
func (t *table) originsOf(order []column, starts []place, inputs int) (origins []float64) {
	if t.origins == nil {
		return nil
	}
	origins = make([]float64, inputs)
	for i, c := range order {
		if c.role == number {
			origins[starts[i].first] = t.origins[c.at]
		}
	}
	return origins
}

// set writes the samples out, words in their order. It leaves the table empty.
func (t *table) set(name string) *datasets.Set {
	order := t.columns
	if t.other != nil {
		order = t.like.columns
	}
	starts := make([]place, len(order))
	s := &datasets.Set{Name: name, Numeric: []int{}, Gaps: t.options.Missing == Mean}
	var labels []int32
	for i, c := range order {
		switch c.role {
		case number:
			s.Numeric = append(s.Numeric, s.Inputs)
			starts[i] = place{first: s.Inputs}
			s.Columns = append(s.Columns, c.name)
			s.Inputs++
		case word:
			words, position := c.words.sorted()
			for _, w := range words {
				s.Columns = append(s.Columns, c.name+"="+w)
			}
			starts[i] = place{s.Inputs, position}
			s.Inputs += len(position)
		case label:
			s.Classes, labels = c.words.sorted()
		}
	}
	s.Origin = t.originsOf(order, starts, s.Inputs)
	s.Layout = t.layout()
	n := t.labels.Len()
	s.X = make([]float32, n*s.Inputs)
	places := t.places(starts)
	i, row := 0, s.X
	t.values.Each(func(part []float32) {
		for _, v := range part {
			if p := places[i]; p.position == nil {
				row[p.first] = v
			} else if v != noWord {
				row[p.first+int(p.position[int(v)])] = 1
			}
			if i++; i == len(places) {
				i, row = 0, row[s.Inputs:]
			}
		}
	})
	s.Y = t.labels.Slice()
	for i, y := range s.Y {
		s.Y[i] = labels[y]
	}
	if t.by > 0 {
		var position []int32
		s.GroupNames, position = t.group.sorted()
		s.Groups = t.groups.Slice()
		for i, g := range s.Groups {
			s.Groups[i] = position[g]
		}
	}
	return s
}

// LoadSpambase reads Spambase (Hopkins, Reeber, Forman & Suermondt, UCI Machine Learning
// Repository, 1999) from dir/spambase or dir, without or with .gz: 57 numeric inputs, the classes
// ham and spam. It has no published test set.
func LoadSpambase(dir string) (*datasets.Source, error) {
	const inputs = 57
	t, file, err := published.Open(dir, "spambase", "spambase.data", Options{Label: Last, Header: Absent}.read(nil))
	if err != nil {
		return nil, err
	}
	s := t.set("spambase")
	if s.Inputs != inputs || !slices.Equal(s.Classes, []string{"0", "1"}) {
		return nil, fmt.Errorf("%s: %d inputs and the classes %q; %d and the classes 0 and 1 are expected", file.Path,
			s.Inputs, s.Classes, inputs)
	}
	s.Classes = []string{"ham", "spam"}
	return &datasets.Source{Pool: s, Files: []input.File{file}}, nil
}

package csv

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
)

// roles are the words for the roles in a layout.
var roles = map[role]string{number: datasets.Number, word: datasets.Word, label: datasets.Label,
	ignored: datasets.Ignored}

// layout describes the columns.
func (t *table) layout() *datasets.Layout {
	l := &datasets.Layout{Header: t.headed}
	for _, c := range t.columns {
		about := datasets.Column{Name: c.name, Use: roles[c.role]}
		if c.words != nil {
			about.Words, _ = c.words.sorted()
		}
		l.Columns = append(l.Columns, about)
	}
	return l
}

// other is what is asked of a table that is neither trained nor tested on.
type other struct {
	labelled bool
	rows     []int32 // under missing: drop, of the samples that are not left out, from 0
	total    int     // samples so far
}

// take counts the sample that the table has taken.
func (o *other) take(t *table) {
	if !o.labelled {
		t.labels.Append(0)
	}
	if t.options.Missing == Drop {
		o.rows = append(o.rows, int32(o.total))
	}
	o.total++
}

// ReadOther reads the table of another file by the layout of the one that was trained on. Where
// that had a header so must this one, and its columns are found by their names, in any order; those
// that are ignored need not be there. Without a header the columns are as many in the same
// order, except that the label's need not be there. Where a word is not one of the layout's, all
// inputs of its column are 0.
func ReadOther(o datasets.Other, options Options) (*datasets.Others, error) {
	if o.Layout == nil {
		return nil, errors.New("the model does not say which columns its inputs were: it was saved by an earlier " +
			"version, or they are too many; train it again")
	}
	like, err := tableOf(o, options)
	if err != nil {
		return nil, err
	}
	like.other = &other{labelled: o.Labelled}
	if options.Header = Absent; like.headed {
		options.Header = Present
	}
	options.By = ""
	t, err := datasets.ReadOther(o, options.read(like))
	if err != nil {
		return nil, err
	}
	set := t.set(o.Path)
	if set.Inputs != o.Inputs {
		return nil, fmt.Errorf("the layout's columns are %d inputs; the model takes %d", set.Inputs, o.Inputs)
	}
	set.Classes = slices.Clone(o.Classes)
	others := &datasets.Others{Set: set, Total: like.other.total, Unknown: t.words}
	t.words = nil
	others.Notes = t.notes()
	if set.Len() < others.Total {
		others.Rows = like.other.rows
	}
	return others, nil
}

// tableOf is the table that a layout describes, without samples.
func tableOf(o datasets.Other, options Options) (*table, error) {
	t := &table{options: options, headed: o.Layout.Header}
	labels, at := 0, 0
	origins := make([]float64, len(o.Layout.Columns))
	for i, about := range o.Layout.Columns {
		c := column{name: about.Name, at: i}
		for r, name := range roles {
			if name == about.Use {
				c.role = r
			}
		}
		if roles[c.role] != about.Use {
			return nil, fmt.Errorf("the layout's column %d is %s; accepted are number, word, label and ignored", i+1,
				input.Quote(about.Use))
		}
		switch c.role {
		case number, word:
			t.kept++
			if c.role == number && o.Origin != nil {
				origins[i], at = o.Origin[at], at+1
			} else {
				at += len(about.Words)
			}
		case label:
			if labels++; len(about.Words) != len(o.Classes) {
				return nil, fmt.Errorf("the layout has %d labels for %d classes", len(about.Words), len(o.Classes))
			}
		}
		if c.role == word || c.role == label {
			c.words = &vocabulary{words: about.Words, index: map[string]int32{}, fixed: true}
			for k, w := range about.Words {
				c.words.index[w] = int32(k)
			}
		}
		t.columns = append(t.columns, c)
	}
	if labels != 1 {
		return nil, fmt.Errorf("the layout has %d columns of labels; 1 is needed", labels)
	}
	if o.Origin != nil {
		t.origins = origins
	}
	return t, nil
}

// match finds the columns of the training file among those of this one.
func (t *table) match(columns []column) error {
	all := t.like.columns
	if !t.headed {
		return t.matchByPlace(len(columns))
	}
	at := make(map[string]int, len(all))
	for k, c := range all {
		at[c.name] = k
	}
	there := make([]bool, len(all))
	for i := range columns {
		k, known := at[columns[i].name]
		if !known {
			return fmt.Errorf("column %d is named %s, which the training file has not; accepted are %s", i+1,
				input.Quote(columns[i].name), t.accepted())
		}
		there[k] = true
		columns[i] = t.asked(all[k])
	}
	for k, c := range all {
		if c = t.asked(c); !there[k] && c.role != ignored {
			return fmt.Errorf("there is no column %s; accepted are %s", input.Quote(c.name), t.accepted())
		}
	}
	t.columns, t.kept = columns, t.like.kept
	return nil
}

// matchByPlace takes the n columns of a file without a header for those of the training file.
func (t *table) matchByPlace(n int) error {
	for _, c := range t.like.columns {
		if c.role != label || n == len(t.like.columns) || t.other.labelled {
			t.columns = append(t.columns, t.asked(c))
		}
	}
	if t.kept = t.like.kept; n == len(t.columns) {
		return nil
	}
	t.columns = nil
	if t.other.labelled {
		return fmt.Errorf("%d columns; the training file has %d", n, len(t.like.columns))
	}
	return fmt.Errorf("%d columns; the training file has %d, and %d without the label", n, len(t.like.columns),
		len(t.like.columns)-1)
}

// asked is a column of the training file as this one is read.
func (t *table) asked(c column) column {
	if c.role == label && !t.other.labelled {
		c.role = ignored
	}
	return c
}

// accepted lists the columns of the training file, with those that may be left out.
func (t *table) accepted() string {
	var needed, free []string
	for _, c := range t.like.columns {
		if t.asked(c).role == ignored {
			free = append(free, c.name)
		} else {
			needed = append(needed, c.name)
		}
	}
	text := input.List(needed)
	if len(free) > 0 {
		text += " and, if they are there, " + input.List(free)
	}
	return text
}

// ReadOtherSpambase reads other samples in the format of Spambase.
func ReadOtherSpambase(o datasets.Other) (*datasets.Others, error) {
	return ReadOther(o, Options{Label: Last, Header: Absent})
}

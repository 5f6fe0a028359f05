package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// leastLabel is the number of columns of text to which labels are cut where nothing else is left to
// leave out.
const leastLabel = 4

// narrow fits columns to a width by leaving out as few as it can, in their order, and then
// intervals, and returns those that stay and the headings of the others.
func narrow(columns []column, width int) (kept []column, left []string) {
	last := 0
	for i := range columns {
		last = max(last, columns[i].leave)
	}
	for _, bare := range []bool{false, true} {
		for gone := range last + 1 {
			kept, left = nil, nil
			for i := range columns {
				c := columns[i]
				if c.leave > 0 && c.leave <= gone {
					name, _, _ := strings.Cut(c.forms[0].title(), ",") // without its unit
					left = append(left, name)
					continue
				}
				if bare && c.bare != nil {
					c.forms = []form{*c.bare}
				}
				kept = append(kept, c.copied())
			}
			if fitWidth(kept, width); totalWidth(kept) <= width {
				return kept, left
			}
		}
	}
	cut(kept, width, leastLabel, true)
	return kept, left
}

// copied is a column whose cells can be cut without harm to c's.
func (c column) copied() column {
	c.forms = slices.Clone(c.forms)
	for i := range c.forms {
		c.forms[i].cells = slices.Clone(c.forms[i].cells)
	}
	return c
}

// totalWidth is how many columns of text a table takes.
func totalWidth(columns []column) int {
	n := -2
	for i := range columns {
		n += columns[i].width() + 2
	}
	return n
}

// cut cuts labels to a least width, the widest first, and then, if all may be, whatever is widest,
// until the table is narrow enough.
func cut(columns []column, width, least int, all bool) {
	for {
		over, widest := totalWidth(columns)-width, 0
		for i := range columns {
			c, w := &columns[i], &columns[widest]
			if room, most := c.room(least), w.room(least); room > most || room == most && c.width() > w.width() {
				widest = i
			}
		}
		c := &columns[widest]
		room := c.room(least)
		if over <= 0 || room == 0 && !all || c.width() == 1 {
			return
		}
		c.cut(c.width() - min(over, max(room, 1)))
	}
}

// room is how far a label can be cut before it says too little.
func (c *column) room(least int) int {
	if !c.label {
		return 0
	}
	return max(0, c.width()-least)
}

// wrap breaks lines between words where they are longer than the width.
func wrap(lines []string, width int) (out []string) {
	for _, line := range lines {
		row := ""
		for _, word := range strings.Fields(line) {
			switch longer := row + " " + word; {
			case row == "":
				row = word
			case utf8.RuneCountInString(longer) <= width:
				row = longer
			default:
				out, row = append(out, row), word
			}
		}
		out = append(out, row)
	}
	return out
}

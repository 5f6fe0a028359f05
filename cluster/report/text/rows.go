package text

import (
	"io"
	"strings"
	"unicode/utf8"
)

// columnGap is the number of spaces between two columns of rows.
const columnGap = 2

// Rows writes rows whose cells, with tabs between them in the text, stand below each other. If w
// has a method Columns() int, as a terminal should, no line is wider than it says: cells are
// continued on further lines, between words as long as that is possible. Elsewhere a row is one
// line, however long.
func Rows(w io.Writer, text string) error {
	var rows [][]string
	var widths, words []int // of the widest cell and word of each column
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i, cell := range cells {
			if i == len(widths) {
				widths, words = append(widths, 0), append(words, 1)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			for word := range strings.FieldsSeq(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
		rows = append(rows, cells)
	}
	if screen, ok := w.(interface{ Columns() int }); ok {
		squeeze(widths, words, screen.Columns())
		squeeze(widths, make([]int, len(widths)), screen.Columns())
	}
	var b strings.Builder
	for _, cells := range rows {
		writeRow(&b, cells, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// squeeze takes from the widest columns what is too much for a width, but leaves each its least.
func squeeze(widths, least []int, width int) {
	over := -columnGap - width
	for _, w := range widths {
		over += w + columnGap
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > max(1, least[i]) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// writeRow writes the cells of a row, each continued below itself where it is wider than its
// column.
func writeRow(b *strings.Builder, cells []string, widths []int) {
	parts, height := make([][]string, len(cells)), 1
	for i, cell := range cells {
		parts[i] = wrapped(cell, widths[i])
		height = max(height, len(parts[i]))
	}
	for line := range height {
		text, gap := "", 0
		for i := range parts {
			if line < len(parts[i]) && parts[i][line] != "" {
				text += strings.Repeat(" ", gap) + parts[i][line]
				gap = -utf8.RuneCountInString(parts[i][line])
			}
			gap += widths[i] + columnGap
		}
		b.WriteString(text + "\n")
	}
}

// wrapped breaks a text into lines of at most a width, between words where that is possible.
// Further lines are indented as the first.
func wrapped(text string, width int) (lines []string) {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	words := strings.TrimLeft(text, " ")
	indent := text[:min(len(text)-len(words), width-1)]
	line := indent
	for _, word := range strings.Fields(words) {
		if line != indent && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width {
			line += " " + word
			continue
		}
		if line != indent {
			lines, line = append(lines, line), indent
		}
		letters := []rune(word)
		for room := width - len(indent); len(letters) > room; letters = letters[room:] {
			lines = append(lines, indent+string(letters[:room]))
		}
		line += string(letters)
	}
	return append(lines, line)
}

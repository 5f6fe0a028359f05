package pivot

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/report"
)

// Formats are the formats of Write.
var Formats = []string{"markdown", "latex", "csv"}

// Write writes the table in one of the Formats. A missing value is empty in CSV and a dash
// elsewhere.
func (t *Table) Write(w io.Writer, format string) error {
	text := map[string]func() string{"markdown": t.markdown, "latex": t.latex, "csv": t.csv}[format]()
	_, err := io.WriteString(w, text)
	return err
}

// shown are the rows with a dash where a value is missing.
func (t *Table) shown() [][]string {
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		for _, cell := range row {
			if cell == "" {
				cell = report.NoValue
			}
			rows[i] = append(rows[i], cell)
		}
	}
	return rows
}

func (t *Table) csv() string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(t.Head)
	_ = w.WriteAll(t.Rows) // a buffer takes everything
	return b.String()
}

// markdown aligns the columns in the source, labels to the left and values to the right.
func (t *Table) markdown() string {
	escape := strings.NewReplacer("|", "\\|", "\n", " ", "*", "\\*", "<", "&lt;")
	rows := append([][]string{t.Head}, t.shown()...)
	widths := make([]int, len(t.Head))
	for i := range rows {
		cells := make([]string, len(rows[i]))
		for k, cell := range rows[i] {
			cells[k] = escape.Replace(cell)
			widths[k] = max(widths[k], utf8.RuneCountInString(cells[k]), 3)
		}
		rows[i] = cells
	}
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("|")
		for k, cell := range row {
			gap := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell))
			if k < t.Labels {
				b.WriteString(" " + cell + gap + " |")
			} else {
				b.WriteString(" " + gap + cell + " |")
			}
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString(t.rule(widths))
		}
	}
	b.WriteString("\n" + escape.Replace(t.Caption+". "+t.Note) + "\n")
	return b.String()
}

// rule is the line below the heading of a table in Markdown.
func (t *Table) rule(widths []int) string {
	line := "|"
	for k, width := range widths {
		if k < t.Labels {
			line += " :" + strings.Repeat("-", width-1) + " |"
		} else {
			line += " " + strings.Repeat("-", width-1) + ": |"
		}
	}
	return line + "\n"
}

// latex writes a table of the package booktabs.
func (t *Table) latex() string {
	escape := strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`,
		"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">",
		`\textgreater{}`, report.NoValue, "--",
		"∞", `$\infty$`, "±", `$\pm$`, "×", `$\times$`, "→", `$\to$`)
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n")
	b.WriteString("\\begin{table}\n  \\caption{" + escape.Replace(t.Caption+". "+t.Note) + "}\n  \\begin{tabular}{" +
		strings.Repeat("l", t.Labels) + strings.Repeat("r", len(t.Head)-t.Labels) + "}\n    \\toprule\n")
	for i, row := range append([][]string{t.Head}, t.shown()...) {
		for k, cell := range row {
			b.WriteString([...]string{"    ", " & "}[min(k, 1)] + protect(escape.Replace(cell)))
		}
		b.WriteString(" \\\\\n")
		if i == 0 {
			b.WriteString("    \\midrule\n")
		}
	}
	b.WriteString("    \\bottomrule\n  \\end{tabular}\n\\end{table}\n")
	return b.String()
}

// protect keeps a row that begins with a bracket from being read as the space after the row before.
func protect(cell string) string {
	if strings.HasPrefix(cell, "[") || strings.HasPrefix(cell, "*") {
		return "{}" + cell
	}
	return cell
}

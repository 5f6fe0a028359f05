package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
)

//go:embed page.css
var style string

// markup is HTML as it is written. No library of templates writes it: one that finds methods by
// their names at run time keeps every method of every type in the program, a fifth of the binary.
type markup struct{ bytes.Buffer }

// add writes HTML in which each %s stands for a text, which is escaped.
func (m *markup) add(form string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, text := range texts {
		escaped[i] = html.EscapeString(text)
	}
	fmt.Fprintf(m, form, escaped...)
}

// html is the page as a file of HTML.
func (p *page) html() []byte {
	m := &markup{}
	m.add(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>
`, p.Title)
	m.WriteString(style)
	m.add("</style>\n</head>\n<body>\n<header>\n<h1>%s</h1>\n", p.Title)
	for _, sentence := range p.Headline {
		m.add("<p class=\"headline\">%s</p>\n", sentence)
	}
	for _, lead := range p.Lead {
		m.add("<p class=\"lead\">%s</p>\n", lead)
	}
	m.add("</header>\n<nav aria-label=\"Contents\"><ul>\n")
	for _, s := range p.Sections {
		m.add("<li><a href=\"#%s\">%s</a></li>\n", s.ID, s.Title)
	}
	m.add("</ul></nav>\n<main>\n")
	for _, s := range p.Sections {
		s.write(m)
	}
	m.add("</main>\n</body>\n</html>\n")
	return m.Bytes()
}

func (s *section) write(m *markup) {
	m.add("<section id=\"%s\" aria-labelledby=\"%s-title\">\n<details open>\n", s.ID, s.ID)
	m.add("<summary><h2 id=\"%s-title\">%s</h2></summary>\n", s.ID, s.Title)
	if len(s.Figures) > 0 {
		m.add("<div class=\"figures\">\n")
		for _, f := range s.Figures {
			f.write(m)
		}
		m.add("</div>\n")
	}
	for _, t := range s.Tables {
		t.writeCard(m)
	}
	for _, note := range s.Notes {
		m.add("<p class=\"note\">%s</p>\n", note)
	}
	for _, l := range s.Texts {
		m.add("<div class=\"card\"><details><summary>%s</summary>\n", l.Title)
		m.add("<pre tabindex=\"0\" role=\"region\" aria-label=\"%s\">%s</pre></details></div>\n", l.Title, l.Text)
	}
	m.add("</details>\n</section>\n")
}

func (f *shownFigure) write(m *markup) {
	class := ""
	if f.All {
		class = ` class="all"`
	}
	m.WriteString("<figure" + class + ">\n")
	m.add("<h3>%s</h3>\n<div class=\"scroll\">", f.Title)
	m.WriteString(f.Wide + f.Narrow) // their texts are escaped where they are drawn
	m.add("</div>\n<figcaption>%s</figcaption>\n</figure>\n", f.Caption)
}

// writeCard writes the table with what frames it.
func (t *table) writeCard(m *markup) {
	m.add("<div class=\"card\">\n")
	if t.Folded {
		m.add("<details><summary>%s</summary>\n", t.Caption)
	}
	t.write(m)
	if t.Note != "" {
		m.add("<p class=\"note\">%s</p>\n", t.Note)
	}
	if t.Folded {
		m.add("</details>\n")
	}
	m.add("</div>\n")
}

func (t *table) write(m *markup) {
	m.add("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>\n", t.Caption)
	if !t.Folded {
		m.add("<caption>%s</caption>\n", t.Caption)
	}
	m.add("<thead><tr>")
	for i, cell := range t.Head {
		m.add("<th scope=\"col\""+t.class(i)+">%s</th>", cell)
	}
	m.add("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		m.add("<tr>")
		for i, cell := range row {
			if i == 0 && t.Labels > 0 {
				m.add("<th scope=\"row\" class=\"label\">%s</th>", cell)
				continue
			}
			m.add("<td"+t.class(i)+">%s</td>", cell)
		}
		m.add("</tr>\n")
	}
	m.add("</tbody>\n</table></div>\n")
}

// class is the attribute of a column's cells.
func (t *table) class(column int) string {
	if column < t.Labels {
		return ` class="label"`
	}
	return ""
}

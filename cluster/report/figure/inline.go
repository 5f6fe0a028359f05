package figure

import (
	"fmt"
	"html"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The formats of a figure within a page: for a column that is wide enough for a legend
// beside it, and for one of a telephone, where text must not shrink.
const (
	wideWidth, wideHeight     = vg.Length(680), vg.Length(400)
	narrowWidth, narrowHeight = vg.Length(350), vg.Length(320)

	// dividedWidth is the width of a figure of several panels, which has a page's whole width.
	dividedWidth = vg.Length(1080)
)

// fontStyle is what vgsvg writes at every text, and a page's style sheet says once.
const fontStyle = fontFamily + "font-variant:normal;font-weight:normal;font-style:normal;"

// Caption is the figure's explanation in a sentence or two.
func (f *Figure) Caption() string { return f.caption }

// Divided reports whether the figure has several panels.
func (f *Figure) Divided() bool { return len(f.panels) > 1 }

// Inline draws the figure as two svg elements for a page: a wide one with its legend beside it, and
// a narrow one for a telephone. Their alternative text begins with the title.
func (f *Figure) Inline(title string) (wide, narrow string) {
	alternative := f.alternative(title)
	large, small := layout{width: wideWidth}, layout{width: narrowWidth, below: true}
	if f.Divided() {
		large.width = dividedWidth
	}
	legend := vg.Point{}
	if len(f.names) > 0 {
		legend = f.legend.Rectangle(draw.New(vgsvg.New(large.width, wideHeight))).Size()
		legend.X, legend.Y = legend.X+20, legend.Y+legendHeading
	}
	large.height = max(f.heightFor(large.width-2*margin-legend.X, wideHeight), legend.Y+2*margin+40)
	small.height = f.heightFor(small.width-2*margin, narrowHeight) + legend.Y
	return f.element(large, "wide", alternative), f.element(small, "narrow", alternative)
}

// alternative says in words what the figure shows.
func (f *Figure) alternative(title string) string {
	text := title + ". " + f.caption
	if len(f.names) > 0 {
		text += " Lines or boxes: " + strings.Join(f.names, "; ") + "."
	}
	if f.rows != nil {
		text += " Rows: " + strings.Join(f.rows, "; ") + "."
	}
	for i, p := range f.panels {
		text += [...]string{" Panels: ", "; "}[min(i, 1)] + p.heading
	}
	return text
}

// element draws the figure as an svg element. Its texts are escaped where it is drawn.
func (f *Figure) element(l layout, class, alternative string) string {
	_, drawing, _ := strings.Cut(drawSVG(l, f.drawPage), "<g ") // without the header that a file has
	open := fmt.Sprintf("<svg class=\"%s\" viewBox=\"0 0 %g %g\" width=\"%g\" role=\"img\" aria-label=\"%s\">",
		class, l.width.Points(), l.height.Points(), l.width.Points(), html.EscapeString(alternative))
	return open + "<g " + strings.ReplaceAll(drawing, fontStyle, "")
}

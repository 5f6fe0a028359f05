package figure

import (
	"image/color"
	"regexp"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how a group is drawn.
type look struct {
	color color.NRGBA
	width vg.Length
	dash  []vg.Length
	glyph draw.GlyphDrawer
	shape draw.GlyphDrawer // of runs; nil where shapes mean nothing
}

var (
	// okabeIto are colours that people with any common colour vision tell apart
	// (Okabe and Ito, Color Universal Design, 2008), without the yellow, too light for a line.
	okabeIto = [...]color.NRGBA{
		{0x00, 0x72, 0xB2, 255}, {0xD5, 0x5E, 0x00, 255}, {0x00, 0x9E, 0x73, 255}, {0xCC, 0x79, 0xA7, 255},
		{0xE6, 0x9F, 0x00, 255}, {0x56, 0xB4, 0xE9, 255}, {0x40, 0x40, 0x40, 255},
	}
	// viridis is a scale of even lightness steps (van der Walt and Smith, 2015), without its last
	// quarter, too light for a line on white and, inverted, too dark for one on black.
	viridis = [...]color.NRGBA{
		{0x44, 0x01, 0x54, 255}, {0x46, 0x33, 0x7E, 255}, {0x36, 0x5C, 0x8D, 255}, {0x27, 0x7F, 0x8E, 255},
		{0x1F, 0xA1, 0x87, 255}, {0x3B, 0xB7, 0x75, 255}, {0x5E, 0xC9, 0x62, 255},
	}
	dashes = [...][]vg.Length{nil, {7, 3}, {2, 2}, {9, 3, 2, 3}}
	glyphs = [...]draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{},
		draw.TriangleGlyph{},
	}
	black = color.NRGBA{A: 255}
	white = color.NRGBA{255, 255, 255, 255}
	dark  = color.NRGBA{0x33, 0x33, 0x33, 255}
	grey  = color.NRGBA{0x66, 0x66, 0x66, 255}
	pale  = color.NRGBA{0xE4, 0xE4, 0xE4, 255}
)

// looksOf gives each point its own look: the layout's By chooses the colour, its Dash the dashes
// and shapes. Values that are a rising or falling row of numbers run along a scale of colours, and one
// without a number is the black reference. Other values take the colours of a set. If there are more
// values than colours, the next values take darker colours of the set, and other dashes unless Dash
// chooses these.
func looksOf(groups []record.Group, l report.Layout) []look {
	all := make([]look, len(groups))
	numbered, scaled := scale(l.By)
	for i, g := range groups {
		all[i] = look{color: okabeIto[0], width: 1.8, glyph: glyphs[0]}
		if l.By == nil {
			continue
		}
		level := l.By.Level(g.Point)
		all[i].glyph = glyphs[level%len(glyphs)]
		switch k := slices.Index(numbered, level); {
		case scaled && k < 0:
			all[i].color, all[i].width, all[i].glyph = black, 2.4, nil
		case scaled:
			all[i].color = along(float64(k) / float64(len(numbered)-1))
			all[i].dash = dashes[k%2]
		default:
			round := level / len(okabeIto)
			all[i].color = darkened(okabeIto[level%len(okabeIto)], round)
			all[i].dash = dashes[round%len(dashes)]
		}
		if l.Dash != nil {
			dash := l.Dash.Level(g.Point)
			all[i].dash, all[i].glyph, all[i].shape = dashes[dash], glyphs[dash], glyphs[dash]
		}
	}
	return all
}

// dot is the shape of a run of a point.
func (l look) dot() draw.GlyphDrawer {
	if l.shape != nil {
		return l.shape
	}
	return draw.CircleGlyph{}
}

var number = regexp.MustCompile(`[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

// scale returns the levels of a factor whose values hold a number, if at least five do, all but one
// of the others at most do not, and the numbers rise or fall.
func scale(f *report.Factor) (numbered []int, ok bool) {
	if f == nil {
		return nil, false
	}
	var values []float64
	for i, value := range f.Values {
		v, err := strconv.ParseFloat(number.FindString(value), 64)
		if err == nil {
			numbered, values = append(numbered, i), append(values, v)
		}
	}
	if len(numbered) < 5 || len(f.Values)-len(numbered) > 1 {
		return nil, false
	}
	rising, falling := true, true
	for i := 1; i < len(values); i++ {
		rising = rising && values[i] > values[i-1]
		falling = falling && values[i] < values[i-1]
	}
	return numbered, rising || falling
}

// along returns the colour at a share of the scale.
func along(share float64) color.NRGBA {
	position := share * float64(len(viridis)-1)
	i := min(int(position), len(viridis)-2)
	part := position - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + part*(float64(b)-float64(a)) + 0.5) }
	a, b := viridis[i], viridis[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// darkened halves the channels of a colour a number of times.
func darkened(c color.NRGBA, times int) color.NRGBA {
	for range times {
		c.R, c.G, c.B = c.R/2, c.G/2, c.B/2
	}
	return c
}

// faded returns a colour of the given opacity.
func faded(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}

package figure

import (
	"image/color"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// looks gives each group its own. Where the labels are a rising or falling row of
// numbers, colours run along a scale and a label without a number is the black
// reference; elsewhere colours come from a set, then from the set again with other dashes.
// Where two settings vary, one chooses the colour and the other dashes and marks.
func looks(groups []record.Group) []look {
	all := make([]look, len(groups))
	if numbered, ok := scale(groups); ok {
		steps := len(numbered) - 1
		for i := range all {
			all[i] = look{color: black, width: 2.4}
		}
		for k, i := range numbered {
			all[i] = look{color: along(float64(k) / float64(steps)), width: 1.8, dash: dashes[k%2],
				glyph: glyphs[k%len(glyphs)]}
		}
		return all
	}
	if crossed(groups, all) {
		return all
	}
	for i := range all {
		all[i] = look{
			color: okabeIto[i%len(okabeIto)], width: 1.8,
			dash: dashes[i/len(okabeIto)%len(dashes)], glyph: glyphs[i%len(glyphs)],
		}
	}
	return all
}

var number = regexp.MustCompile(`[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

// scale returns the groups whose labels hold a number, if at least five do, all but
// one of the others at most do not, and the numbers rise or fall.
func scale(groups []record.Group) (numbered []int, ok bool) {
	var values []float64
	for i, g := range groups {
		if len(g.Point) != 1 {
			return nil, false
		}
		text := number.FindString(g.Point[0].Value)
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, false
		}
		numbered, values = append(numbered, i), append(values, v)
	}
	if len(numbered) < 5 || len(groups)-len(numbered) > 1 {
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

// faded returns a colour of the given opacity.
func faded(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}

// crossed gives groups of two settings their looks: the setting of more values has the
// colours. It reports false where colours or dashes are too few.
func crossed(groups []record.Group, all []look) bool {
	var values [2][]string
	places := make([][2]int, len(groups))
	for i, g := range groups {
		if len(g.Point) != 2 {
			return false
		}
		for k, setting := range g.Point {
			place := slices.Index(values[k], setting.Value)
			if place < 0 {
				place = len(values[k])
				values[k] = append(values[k], setting.Value)
			}
			places[i][k] = place
		}
	}
	hue, stroke := 0, 1
	if len(values[1]) > len(values[0]) {
		hue, stroke = 1, 0
	}
	if len(groups) == 0 || len(values[hue]) > len(okabeIto) || len(values[stroke]) > len(dashes) {
		return false
	}
	for i, p := range places {
		all[i] = look{color: okabeIto[p[hue]], width: 1.8, dash: dashes[p[stroke]], glyph: glyphs[p[stroke]]}
	}
	return true
}

// heading names the keys whose values the names of points are.
func heading(s record.Summary) string {
	return strings.Join(report.ShortKeys(report.SweptKeys(s)), ", ")
}

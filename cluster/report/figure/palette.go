package figure

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"
)

const (
	// paletteSize is how many colours a PNG with a palette has, a byte a pixel.
	paletteSize = 256
	// commonColors is how many of them are the most frequent colours; the rest are the colours
	// farthest from all others.
	commonColors = 160
)

// encodePNG returns an opaque image as a PNG of a palette. Figures are flat areas and letters with
// smooth edges: each of the thousands of shades that the palette leaves out has one beside it that
// the eye does not tell from it, and the file has a quarter of the size. Equal images give equal
// bytes.
func encodePNG(drawn image.Image) []byte {
	m, ok := drawn.(*image.RGBA)
	if !ok {
		m = image.NewRGBA(drawn.Bounds())
		draw.Draw(m, m.Bounds(), drawn, m.Bounds().Min, draw.Src)
	}
	counts := map[color.RGBA]int{}
	eachSpan(m, func(_ int, c color.RGBA, length int) { counts[c] += length })
	all := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G),
			cmp.Compare(a.B, b.B), cmp.Compare(a.A, b.A))
	})
	palette, nearest := choosePalette(all)
	paletted := image.NewPaletted(m.Bounds(), palette)
	eachSpan(m, func(at int, c color.RGBA, length int) {
		index := nearest[c]
		for i := range length {
			paletted.Pix[at+i] = index
		}
	})
	var b bytes.Buffer
	_ = png.Encode(&b, paletted) // which takes everything
	return b.Bytes()
}

// eachSpan visits the runs of pixels of one colour in an image, row by row, with the place of their
// first pixel.
func eachSpan(m *image.RGBA, visit func(at int, c color.RGBA, length int)) {
	width := m.Bounds().Dx()
	for y := range m.Bounds().Dy() {
		row := m.Pix[y*m.Stride : y*m.Stride+4*width]
		for x := 0; x < width; {
			pixel := [4]uint8(row[4*x:])
			end := x + 1
			for end < width && [4]uint8(row[4*end:]) == pixel {
				end++
			}
			visit(y*width+x, color.RGBA{pixel[0], pixel[1], pixel[2], pixel[3]}, end-x)
			x = end
		}
	}
}

// choosePalette chooses a palette of colours, the most frequent first, and says which of it stands
// for each.
func choosePalette(all []color.RGBA) (color.Palette, map[color.RGBA]uint8) {
	palette := make(color.Palette, 0, paletteSize)
	nearest := make(map[color.RGBA]uint8, len(all))
	distance, place := make([]int, len(all)), make([]uint8, len(all))
	for i := range distance {
		distance[i] = 1 << 30
	}
	take := func(c color.RGBA) {
		for i, other := range all {
			if d := squaredDistance(c, other); d < distance[i] {
				distance[i], place[i] = d, uint8(len(palette)) //nolint:gosec // below paletteSize
			}
		}
		palette = append(palette, c)
	}
	for _, c := range all[:min(len(all), commonColors)] {
		take(c)
	}
	for len(palette) < min(len(all), paletteSize) {
		farthest := 0
		for i, d := range distance {
			if d > distance[farthest] {
				farthest = i
			}
		}
		if distance[farthest] == 0 {
			break
		}
		take(all[farthest])
	}
	for i, c := range all {
		nearest[c] = place[i]
	}
	return palette, nearest
}

// squaredDistance is the square of the distance of two colours.
func squaredDistance(a, b color.RGBA) int {
	red, green, blue := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return red*red + green*green + blue*blue
}

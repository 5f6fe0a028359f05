package figure

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

func TestPaletteKeepsColoursThatFewPixelsHave(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 300, 300))
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	// A gradient of many common shades, and lone pixels of colours that are in none of them.
	for y := 20; y < 300; y++ {
		for x := range 300 {
			m.SetRGBA(x, y, color.RGBA{uint8(x * 255 / 300), uint8(y * 255 / 300), 128, 255})
		}
	}
	rare := []color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {255, 255, 0, 255}, {0, 0, 0, 255}}
	for i, c := range rare {
		m.SetRGBA(10*i, 5, c)
	}
	written := encodePNG(m)
	if !bytes.Equal(written, encodePNG(m)) {
		t.Error("equal images give different bytes")
	}
	read, err := png.Decode(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	for y := range 300 {
		for x := range 300 {
			got, want := color.RGBAModel.Convert(read.At(x, y)).(color.RGBA), m.RGBAAt(x, y)
			if d := squaredDistance(got, want); d > 24*24 {
				t.Fatalf("pixel %d, %d is %v, drawn was %v", x, y, got, want)
			}
		}
	}
	for i, c := range rare {
		if got := color.RGBAModel.Convert(read.At(10*i, 5)); got != c {
			t.Errorf("a lone pixel of %v became %v", c, got)
		}
	}
}

func TestImageOfFewColoursIsWrittenExactly(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 16, 16))
	for i := range 256 {
		m.SetRGBA(i%16, i/16, color.RGBA{uint8(i), uint8(255 - i), 7, 255})
	}
	read, err := png.Decode(bytes.NewReader(encodePNG(m)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 256 {
		if got := color.RGBAModel.Convert(read.At(i%16, i/16)); got != m.RGBAAt(i%16, i/16) {
			t.Fatalf("colour %d is %v, want %v", i, got, m.RGBAAt(i%16, i/16))
		}
	}
}

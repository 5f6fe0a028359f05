package reporttest

import (
	"encoding/xml"
	"os"
	"strings"
	"testing"
)

// Vector returns the path of the SVG beside a PNG.
func Vector(path string) string { return strings.TrimSuffix(path, ".png") + ".svg" }

// ReadFile returns the content of a file.
func ReadFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Texts reads an SVG and returns what is written in it.
func Texts(t *testing.T, image []byte) []string {
	t.Helper()
	var svg element
	if err := xml.Unmarshal(image, &svg); err != nil {
		t.Fatal(err)
	}
	return svg.texts()
}

type element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Inner   []element `xml:",any"`
}

func (e *element) texts() (all []string) {
	if e.XMLName.Local == "text" {
		all = append(all, e.Text)
	}
	for i := range e.Inner {
		all = append(all, e.Inner[i].texts()...)
	}
	return all
}

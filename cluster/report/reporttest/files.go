package reporttest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
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
func Texts(t *testing.T, image []byte) (all []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(image))
	inside := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local == "text"
		case xml.CharData:
			if inside {
				all = append(all, string(token))
			}
		case xml.EndElement:
			inside = false
		}
	}
}

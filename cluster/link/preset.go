package link

import (
	"bytes"
	"embed"
	"fmt"
)

//go:embed presets/*.csv
var presetFiles embed.FS

// Preset is a network that somebody has measured and published.
type Preset struct {
	Name string
	// Doc says what was measured, by whom and when.
	Doc string
}

// Presets are the networks that come with Gradwire.
func Presets() []Preset {
	return []Preset{
		{"regions-aws-2024", "regions of AWS by their airports: round trips of cloudping.co, 19 April 2024, the mean " +
			"of both directions, which differ by up to 4.6 ms"},
		{"regions-ibm-2026", "regions of IBM Cloud: round trips of ibm-cloud-docs/vpc, 18 July to 16 August 2026, " +
			"whose directions differ by up to 10 ms; none measured within a region"},
	}
}

// Matrix is the delays of the preset. It panics if there is no preset of that name.
func (p Preset) Matrix() *Matrix {
	file := p.Name + ".csv"
	text, err := presetFiles.ReadFile("presets/" + file)
	if err == nil {
		var m *Matrix
		if m, err = ReadMatrix(bytes.NewReader(text), file); err == nil {
			return m
		}
	}
	panic(fmt.Sprintf("link: preset %q: %v", p.Name, err))
}

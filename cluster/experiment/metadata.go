package experiment

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/datasets"
)

// maxDescribed bounds the inputs whose names and scaling a model's file has, so that its header
// stays below the 16 MiB that are read back.
const maxDescribed = 1 << 16

// scaling is how metadata say what became of the numeric columns: parameters in the order of the
// columns. Without columns there is one offset and one width, for all inputs alike.
type scaling struct {
	Kind    datasets.Scaling `json:"kind"`
	Formula string           `json:"formula"`
	Columns []int            `json:"columns,omitempty"`
	Offset  []float64        `json:"offset,omitempty"`
	Width   []float64        `json:"width,omitempty"`
	// Omitted counts columns whose parameters are too many.
	Omitted int `json:"omitted,omitempty"`
}

var formulas = map[datasets.Scaling]string{
	datasets.NoScaling: "x",
	datasets.MinMax:    "(x - offset) / width, 0 where width is 0",
	datasets.Standard:  "(x - offset) / width, 0 where width is 0",
	datasets.LogMinMax: "(sign(x) * log(1 + |x|) - offset) / width, 0 where width is 0",
}

// filling is how metadata say what is put where the value of a numeric column is missing: values in
// the order of the columns.
type filling struct {
	Kind    string    `json:"kind"` // "mean"
	Columns []int     `json:"columns,omitempty"`
	Values  []float64 `json:"values,omitempty"`
	// Omitted counts columns whose values are too many.
	Omitted int `json:"omitted,omitempty"`
}

// metadata says, in JSON, what somebody needs who uses the model of a run elsewhere: "model" and
// "data" as the resolved plan has them, "classes", the names of the outputs in their order,
// "inputs", the names of the inputs where they have any, "input_shape" of a sample, what is
// put where values are "missing", if that depends on the samples, and the "scaling" that inputs go
// through then.
func (p *Point) metadata(shelf *Shelf, seed uint64) (map[string]string, error) {
	data, err := shelf.samples(&p.Spec.Data, seed)
	if err != nil {
		return nil, err
	}
	model, err := p.Spec.Plan.Model.JSON()
	if err != nil {
		return nil, err
	}
	read, err := shelf.source(&p.Spec.Data)
	if err != nil {
		return nil, err
	}
	source, err := withoutFolders(p.Spec.Plan.Data.Without("split", "delivery"), read.Files).JSON()
	if err != nil {
		return nil, err
	}
	about := map[string]string{"model": string(model), "data": string(source)}
	shape := data.train.Shape
	if shape == nil {
		shape = []int{data.train.Inputs}
	}
	values := map[string]any{"classes": data.train.Classes, "input_shape": shape, "scaling": scalingOf(data.scaler)}
	if names := data.train.Columns; len(names) > 0 && len(names) <= maxDescribed {
		values["inputs"] = names
	}
	if data.filler != nil {
		values["missing"] = fillingOf(data.filler)
	}
	for key, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		about[key] = string(text)
	}
	return about, nil
}

// withoutFolders returns a section in which the files that were read are called by their names
// alone, wherever they lay.
func withoutFolders(section *syntax.Node, files []datasets.File) *syntax.Node {
	section = section.Clone()
	for _, f := range section.Fields {
		name := filepath.Base(f.Value.Text)
		if f.Value.Kind == syntax.Scalar && slices.ContainsFunc(files,
			func(file datasets.File) bool { return file.Name == name }) {
			f.Value.Text = name
		}
	}
	return section
}

// scalingOf describes a scaler; nil stands for samples as they were read.
func scalingOf(sc *datasets.Scaler) scaling {
	if sc == nil {
		return scaling{Kind: datasets.NoScaling, Formula: formulas[datasets.NoScaling]}
	}
	s := scaling{Kind: sc.Scaling(), Formula: formulas[sc.Scaling()]}
	if offset, width, ok := sc.Alike(); ok {
		s.Offset, s.Width = []float64{offset}, []float64{width}
	}
	columns := sc.Columns()
	if len(columns) > maxDescribed {
		s.Omitted = len(columns)
		return s
	}
	for _, c := range columns {
		s.Columns, s.Offset, s.Width = append(s.Columns, c.Column), append(s.Offset, c.Offset), append(s.Width, c.Width)
	}
	return s
}

func fillingOf(f *datasets.Filler) filling {
	columns := f.Columns()
	about := filling{Kind: "mean"}
	if len(columns) > maxDescribed {
		about.Omitted = len(columns)
		return about
	}
	for _, c := range columns {
		about.Columns, about.Values = append(about.Columns, c.Column), append(about.Values, c.Value)
	}
	return about
}

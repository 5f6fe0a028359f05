package saved

import (
	"encoding/json"

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

// maxLayout bounds the layout of a table in bytes of JSON, for the same reason.
const maxLayout = 1 << 20

// Describe says, in JSON, what somebody needs to give the samples of a set to its model elsewhere:
// "classes", the names of the outputs in their order, "inputs", the names of the inputs where they
// have any, "input_shape" of a sample, "layout", how the columns of a table become inputs, what is
// put where values are "missing", if that depends on the samples, and the "scaling" that inputs go
// through then. A nil filler or scaler stands for samples without gaps or as they were read.
func Describe(set *datasets.Set, f *datasets.Filler, sc *datasets.Scaler) (map[string]string, error) {
	shape := set.Shape
	if shape == nil {
		shape = []int{set.Inputs}
	}
	values := map[string]any{"classes": set.Classes, "input_shape": shape, "scaling": scalingOf(sc)}
	if names := set.Columns; len(names) > 0 && len(names) <= maxDescribed {
		values["inputs"] = names
	}
	if set.Layout != nil {
		values["layout"] = set.Layout
	}
	if f != nil {
		values["missing"] = fillingOf(f)
	}
	about := map[string]string{}
	for key, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if key != "layout" || len(text) <= maxLayout {
			about[key] = string(text)
		}
	}
	return about, nil
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

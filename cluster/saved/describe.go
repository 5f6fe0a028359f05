package saved

import (
	"encoding/json"
	"fmt"

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

// origin is how metadata say what is subtracted, in float64, from inputs, before values that are
// missing are put there and before they are scaled. Only a logarithm is of the input itself.
type origin struct {
	Columns []int     `json:"columns"`
	Values  []float64 `json:"values"`
	// Omitted counts inputs whose origins are too many.
	Omitted int `json:"omitted,omitempty"`
}

// of returns the origin of each input; nil for none.
func (o origin) of(inputs int) ([]float64, error) {
	if len(o.Columns) != len(o.Values) {
		return nil, fmt.Errorf("%d columns have %d values", len(o.Columns), len(o.Values))
	}
	if len(o.Columns) == 0 {
		return nil, nil
	}
	all := make([]float64, inputs)
	for i, c := range o.Columns {
		if c < 0 || c >= inputs {
			return nil, fmt.Errorf("column %d is none of the %d inputs", c, inputs)
		}
		all[c] = o.Values[i]
	}
	return all, nil
}

func originOf(origins []float64) (about origin) {
	for i, o := range origins {
		if o != 0 {
			about.Columns, about.Values = append(about.Columns, i), append(about.Values, o)
		}
	}
	if len(about.Columns) > maxDescribed {
		about = origin{Omitted: len(about.Columns)}
	}
	return about
}

// maxLayout bounds the layout of a table in bytes of JSON, for the same reason.
const maxLayout = 1 << 20

// Describe says, in JSON, what somebody needs to give the samples of a set to its model elsewhere:
// "classes", the names of the outputs in their order, "inputs", the names of the inputs where they
// have any, "input_shape" of a sample, "layout", how the columns of a table become inputs, what is
// subtracted from inputs before all else ("origin"), what is put where values are "missing", if
// that depends on the samples, and the "scaling" that inputs go through then. A nil filler or scaler stands for samples without gaps or as they were read.
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
	if origins := sc.Origins(); origins != nil {
		values["origin"] = originOf(origins)
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

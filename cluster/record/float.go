package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Float is a float64 that survives JSON: NaN is written as null, the infinities
// as "Inf" and "-Inf". Losses of diverged runs are such values.
type Float float64

// MarshalJSON writes a number, null, "Inf" or "-Inf".
func (f Float) MarshalJSON() ([]byte, error) {
	if v := float64(f); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return json.Marshal(v)
	}
	return appendFloat(nil, float64(f)), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Float) UnmarshalJSON(text []byte) error {
	switch {
	case bytes.Equal(text, []byte("null")):
		*f = Float(math.NaN())
		return nil
	case bytes.Equal(text, []byte(`"Inf"`)):
		*f = Float(math.Inf(1))
		return nil
	case bytes.Equal(text, []byte(`"-Inf"`)):
		*f = Float(math.Inf(-1))
		return nil
	}
	var v float64
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf(`%.40s is no number: a number, null, "Inf" or "-Inf" is accepted`, text)
	}
	*f = Float(v)
	return nil
}

// String writes NaN, Inf, -Inf, or the shortest decimal that reads back as the same float64. The
// CSV files have the same, but nothing for NaN.
func (f Float) String() string {
	if math.IsInf(float64(f), 1) {
		return "Inf"
	}
	return strconv.FormatFloat(float64(f), 'g', -1, 64)
}

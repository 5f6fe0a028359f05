package collective

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestQuotientHasTheBitsOfADivision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOfN(rapid.Uint32(), 1, 50).Draw(t, "bits")
		divisor := rapid.SampledFrom([]float32{2, 4, 1 << 20, 0.5, 3, 1.5, 7.25, 1 << 70, 1e-30, float32(math.Inf(1))}).Draw(t, "divisor")
		values, got := make([]float32, len(bits)), make([]float32, len(bits))
		for i, b := range bits {
			values[i] = math.Float32frombits(b)
		}
		quotient(got, values, divisor)
		for i, x := range values {
			if want := x / divisor; math.Float32bits(got[i]) != math.Float32bits(want) && !(got[i] != got[i] && want != want) {
				t.Fatalf("%v ÷ %v is %v, want %v", x, divisor, got[i], want)
			}
		}
	})
}

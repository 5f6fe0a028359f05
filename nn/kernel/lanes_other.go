//go:build noasm || !amd64

package kernel

// maxPairs and routePairs tell that there is no assembly for them.
func maxPairs([]float32, []uint16, []float32, []float32, int, int, bool) bool { return false }
func routePairs([]float32, []uint16, []float32, []float32, int, int) bool     { return false }

func copySixteens(to []float32, pitch int, from []float32, step, rows, width int) {
	copySixteensPortable(to, pitch, from, step, rows, width)
}

func (s *Spread) piece(o0, o1, t0, t1 int) { s.gather(o0, o1, t0, t1) }

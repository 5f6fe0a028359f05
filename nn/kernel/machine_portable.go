//go:build noasm || !(amd64 || arm64)

package kernel

var active = portable

func (p *product) multiply() { p.multiplyPortable() }

func (r *Rake) compute() { r.computePortable() }

func offered() []instructions { return []instructions{portable} }

// Nobody calls these: there is no assembly.
func axpy(_ float32, _, _, _ *float32, _ int)            {}
func scal(float32, *float32, int)                        {}
func sum(_ float32, _, _, _ *float32, _ int)             {}
func axpby(_, _ float32, _, _, _ *float32, _ int)        {}
func rectify(_, _ *float32, _ int)                       {}
func stepMomentum(*momentumStep)                         {}
func stepAdam(*adamStep)                                 {}
func transpose([]float32, int, []float32, int, int, int) {}

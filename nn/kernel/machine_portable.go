//go:build noasm || !(amd64 || arm64)

package kernel

var active = portable

func (p *product) multiply() { p.multiplyPortable() }

func (r *Rake) compute() { r.computePortable() }

func axpy(alpha float32, x, y []float32) { axpyPortable(alpha, x, y) }

func scal(alpha float32, x []float32) { scalPortable(alpha, x) }

func sum(alpha float32, x, y, z []float32) { sumPortable(alpha, x, y, z) }

func offered() []instructions { return []instructions{portable} }

func rectify(y, x *float32, n int) {}

package kernel

import "math"

// stepLanes divides the elements that a step in assembly takes.
const stepLanes = 8

// Momentum is what a step of gradient descent with momentum computes with; package optim has the
// formulas.
type Momentum struct {
	Rate, Mu, Decay float32
	Nesterov        bool
}

// Step writes to z what an update by the gradient g makes of the parameters p, and updates the
// velocity v, whose subnormals become 0. z may be p. Every operation is rounded by itself. It
// panics if the four differ in length.
func (m *Momentum) Step(z, v, p, g []float32) {
	if len(v) != len(z) || len(p) != len(z) || len(g) != len(z) {
		panic(badLength)
	}
	if n := len(z) &^ (stepLanes - 1); n > 0 && active != portable {
		s := momentumStep{z: &z[0], v: &v[0], p: &p[0], g: &g[0], n: n, rate: m.Rate, mu: m.Mu, decay: m.Decay}
		if m.Nesterov {
			s.nesterov = ^uint32(0)
		}
		stepMomentum(&s)
		z, v, p, g = z[n:], v[n:], p[n:], g[n:]
	}
	m.portable(z, v, p, g)
}

// momentumStep is the work of stepMomentum.
type momentumStep struct {
	z, v, p, g      *float32
	n               int
	rate, mu, decay float32
	nesterov        uint32 // all ones or 0
}

func (m *Momentum) portable(z, v, p, g []float32) {
	v, p, g = v[:len(z)], p[:len(z)], g[:len(z)]
	for i, pi := range p {
		gi := g[i] + float32(m.Decay*pi)
		vi := float32(m.Mu*v[i]) + gi
		v[i] = Flush(vi)
		if m.Nesterov {
			vi = gi + float32(m.Mu*vi)
		}
		z[i] = pi - float32(m.Rate*vi)
	}
}

// Adam is what a step of Adam computes with; package optim has the formulas. Size is the rate, and
// Root the factor of the second moment's root, both with the correction of the bias.
type Adam struct {
	Beta1, Beta2, Rest1, Rest2 float32 // Rest1 is 1 − Beta1, Rest2 is 1 − Beta2
	Size, Root, Epsilon, Decay float32
}

// Step writes to z what an update by the gradient g makes of the parameters p, and updates the
// moments m and v, whose subnormals become 0. z may be p. Every operation is rounded by itself. It
// panics if the five differ in length.
func (a *Adam) Step(z, m, v, p, g []float32) {
	if len(m) != len(z) || len(v) != len(z) || len(p) != len(z) || len(g) != len(z) {
		panic(badLength)
	}
	if n := len(z) &^ (stepLanes - 1); n > 0 && active != portable {
		stepAdam(&adamStep{z: &z[0], m: &m[0], v: &v[0], p: &p[0], g: &g[0], n: n, Adam: *a})
		z, m, v, p, g = z[n:], m[n:], v[n:], p[n:], g[n:]
	}
	a.portable(z, m, v, p, g)
}

// adamStep is the work of stepAdam.
type adamStep struct {
	z, m, v, p, g *float32
	n             int
	Adam
}

func (a *Adam) portable(z, m, v, p, g []float32) {
	m, v, p, g = m[:len(z)], v[:len(z)], p[:len(z)], g[:len(z)]
	for i, pi := range p {
		gi := g[i] + float32(a.Decay*pi)
		mi := float32(a.Beta1*m[i]) + float32(a.Rest1*gi)
		vi := float32(a.Beta2*v[i]) + float32(float32(a.Rest2*gi)*gi)
		m[i], v[i] = Flush(mi), Flush(vi)
		root := float32(math.Sqrt(float64(vi)))
		z[i] = pi - float32(a.Size*(mi/(float32(root*a.Root)+a.Epsilon)))
	}
}

// Flush returns x, or 0 if x is subnormal. A method's memory of a gradient that no longer occurs,
// for instance for a rare one-hot input, decays to the smallest subnormal and would stay there,
// where each operation costs a hundred times as much.
func Flush(x float32) float32 {
	if math.Float32bits(x)&0x7f800000 == 0 {
		return 0
	}
	return x
}

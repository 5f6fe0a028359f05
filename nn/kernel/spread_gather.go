//go:build noasm || !amd64

package kernel

func (s *Spread) piece(o0, o1, t0, t1 int) { s.gather(o0, o1, t0, t1) }

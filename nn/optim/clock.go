package optim

// Clocked is a schedule whose counts are epochs or samples of a whole run instead of the steps of
// its optimizer: its rate at step s is that of Of at s·PerStep. Epochs are counted in
// [EpochParts]. PerStep is 0 until [Clock] sets it, because how many samples the run processes from
// one step of an optimizer to the next depends on the architecture, the number of workers and the
// data.
type Clocked struct {
	Of      Schedule
	Epochs  bool // else samples
	PerStep float64
}

// EpochParts are the counts that make an epoch for [Clocked].
const EpochParts = 1_000_000

// Rate implements [Schedule].
func (s Clocked) Rate(step int) float64 { return s.Of.Rate(int(float64(step) * s.PerStep)) }

// Validate names the first field that makes no sense.
func (s Clocked) Validate() error { return check(s, "Of", s.Of) }

// Rated is a method whose schedule can be looked at and replaced.
type Rated interface {
	Method
	// Schedule is that of the rate.
	Schedule() Schedule
	// WithSchedule is the same method with another one.
	WithSchedule(s Schedule) Method
}

// Clock sets what the schedule of a method counts, if it is [Clocked], by the samples that a run
// processes from one step of the optimizer to the next, and those of an epoch.
func Clock(m Method, samples, epoch float64) Method {
	r, rated := m.(Rated)
	if !rated {
		return m
	}
	s, clocked := r.Schedule().(Clocked)
	if !clocked {
		return m
	}
	if s.PerStep = samples; s.Epochs {
		s.PerStep = samples / epoch * EpochParts
	}
	return r.WithSchedule(s)
}

// Schedule implements [Rated].
func (m SGD) Schedule() Schedule { return m.Rate }

// WithSchedule implements [Rated].
func (m SGD) WithSchedule(s Schedule) Method {
	m.Rate = s
	return m
}

// Schedule implements [Rated].
func (m Momentum) Schedule() Schedule { return m.Rate }

// WithSchedule implements [Rated].
func (m Momentum) WithSchedule(s Schedule) Method {
	m.Rate = s
	return m
}

// Schedule implements [Rated].
func (m Adam) Schedule() Schedule { return m.Rate }

// WithSchedule implements [Rated].
func (m Adam) WithSchedule(s Schedule) Method {
	m.Rate = s
	return m
}

// Schedule implements [Rated].
func (m Adaptive) Schedule() Schedule { return m.Rate }

// WithSchedule implements [Rated].
func (m Adaptive) WithSchedule(s Schedule) Method {
	m.Rate = s
	return m
}

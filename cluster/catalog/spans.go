package catalog

import (
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// An architecture counts the steps between two exchanges. A plan may also give them in epochs or in
// samples of all workers together. The number of steps follows from the number of samples: until
// that is known, [Spec] has an architecture with an assumed number; [Spec.Resolve] makes the one that
// runs.

// Counted is a setting of an architecture that counts steps, rounds or another unit.
type Counted struct {
	field.Count
	// At is the setting in the plan; nil if the plan does not give it. Value is its value, in steps if the
	// plan gives a span (Spans), and in seconds if Unit is time.
	At    *syntax.Node
	Value float64
	// Wanted is the number of steps of a span before it is rounded to steps that the architecture accepts;
	// 0 if the plan gives steps, or if the samples are not known yet.
	Wanted float64
	// Given is true if the plan or a preset states the value, and false for a default.
	Given bool
}

// spans converts spans to steps, and collects the settings that count steps or another unit.
type spans struct {
	// epoch is the number of samples of an epoch. step is the number of samples that all workers
	// process while each makes one step. 0 means not known yet.
	epoch, step float64
	found       bool // a span has been read
	counted     []Counted
}

// Sizes assumed until the samples are known.
const (
	assumedEpoch = 50_000
	assumedStep  = 128
)

// steps yields the numbers of steps to try for a span, the nearest first. An architecture may refuse
// a number: fragments must divide it. Once the samples of an epoch and of a step are known, every
// number is between half and twice the span.
func (s *spans) steps(span unit.Span) iter.Seq[float64] {
	const most = 1024 // tries
	want, known := s.exact(span)
	first := max(1, math.Round(want))
	return func(yield func(float64) bool) {
		if !yield(first) || span.Steps > 0 {
			return
		}
		for off := 1.0; off < most; off++ {
			for _, n := range []float64{first + off, first - off} {
				if n >= 1 && (!known || n >= want/2 && n <= 2*max(want, 1)) && !yield(n) {
					return
				}
			}
		}
	}
}

// exact converts a span to steps, without rounding. known is false if the conversion needs a number of
// samples that is unknown.
func (s *spans) exact(span unit.Span) (steps float64, known bool) {
	step, known := s.step, true
	if step == 0 {
		step, known = assumedStep, span.Steps > 0
	}
	switch {
	case span.Samples > 0:
		return float64(span.Samples) / step, known
	case span.Epochs > 0 && s.epoch == 0:
		return span.Epochs * assumedEpoch / step, false
	case span.Epochs > 0:
		return span.Epochs * s.epoch / step, known
	}
	return float64(span.Steps), known
}

// spanOf is a span in a section, and how to put a number of steps in its place.
type spanOf struct {
	span unit.Span
	put  func(steps float64)
}

// settle copies a section of settings of a type, and returns the spans in the copy, which can be
// replaced by steps.
func (s *spans) settle(section *syntax.Node, of reflect.Type) (plain *syntax.Node, all []spanOf, err error) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if section.Kind != syntax.Map || of.Kind() != reflect.Struct {
		return section, nil, nil
	}
	copied := *section
	copied.Fields = slices.Clone(section.Fields)
	for _, t := range field.Tags(of) {
		i := slices.IndexFunc(copied.Fields, func(f syntax.Field) bool { return f.Key == t.Key })
		if i < 0 || t.Node {
			continue
		}
		value := copied.Fields[i].Value
		if t.Counts == nil || !t.Counts.Spans {
			inner, more, err := s.settle(value, of.FieldByIndex(t.Index).Type)
			if err != nil {
				return nil, nil, err
			}
			copied.Fields[i].Value, all = inner, append(all, more...)
			continue
		}
		span, is, err := spanAt(value)
		if err != nil {
			return nil, nil, err
		}
		if !is && len(t.Words) == 0 && unlikeNumber(value) {
			_, err := unit.ParseSpan(value.Text)
			return nil, nil, syntax.Errorf(value, "%w", err)
		}
		if is {
			all = append(all, spanOf{span, func(steps float64) { copied.Fields[i].Value = number(steps, value) }})
		}
	}
	return &copied, all, nil
}

// unlikeNumber reports whether a scalar has characters that no number has.
func unlikeNumber(n *syntax.Node) bool {
	return n.Kind == syntax.Scalar && !n.Quoted && strings.Trim(n.Text, "0123456789.+-eE_") != ""
}

// note collects the counting settings of a section, and restores its spans as written.
func (s *spans) note(resolved, written *syntax.Node, of reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if resolved.Kind != syntax.Map || of.Kind() != reflect.Struct {
		return
	}
	for _, t := range field.Tags(of) {
		i := slices.IndexFunc(resolved.Fields, func(f syntax.Field) bool { return f.Key == t.Key })
		if i < 0 || t.Node {
			continue
		}
		was, given := written.Get(t.Key)
		if t.Counts == nil {
			s.note(resolved.Fields[i].Value, was, of.FieldByIndex(t.Index).Type)
			continue
		}
		c := Counted{Count: *t.Counts, At: was, Given: given}
		if c.Unit == "time" {
			d, _ := unit.ParseDuration(resolved.Fields[i].Value.Text)
			c.Value = time.Duration(d).Seconds()
		} else {
			c.Value, _ = strconv.ParseFloat(resolved.Fields[i].Value.Text, 64)
		}
		c.Spans = false
		if given && t.Counts.Spans {
			if span, is, err := spanAt(was); err == nil && is {
				resolved.Fields[i].Value = was.Clone()
				c.Spans = span.Steps == 0
				if steps, known := s.exact(span); known && c.Spans {
					c.Wanted = steps
				}
				s.found = s.found || c.Spans
			}
		}
		s.counted = append(s.counted, c)
	}
}

// make builds a kind from a section, with each span replaced by the nearest number of steps that the
// kind accepts, and returns the kind's settings.
func (k Kind[T]) make(
	c *Catalog,
	counting *spans,
	section *syntax.Node,
	besides []string,
) (value T, chosen any, err error) {
	build := func(section *syntax.Node) (value T, chosen any, err error) {
		chosen = k.settings()
		if err = settings.Decode(section, chosen, besides...); err == nil {
			if value, err = k.build(c, chosen); err != nil {
				err = Located(section, err)
			}
		}
		return value, chosen, err
	}
	plain, all, err := counting.settle(section, reflect.TypeOf(k.settings()))
	if err != nil {
		return value, nil, err
	}
	if len(all) == 0 {
		return build(section)
	}
	for _, other := range all[1:] {
		for steps := range counting.steps(other.span) {
			other.put(steps)
			break
		}
	}
	var first error
	for steps := range counting.steps(all[0].span) {
		all[0].put(steps)
		if value, chosen, err = build(plain); err == nil {
			return value, chosen, nil
		}
		if first == nil {
			first = err
		}
	}
	return value, nil, first
}

// Resolve returns the spec with the architecture that runs where an epoch has so many samples, and
// all workers process so many while each makes a step; 0 for what is not known yet. It is the spec
// itself where the plan gives no interval of the architecture in epochs or samples.
func (s *Spec) Resolve(epoch, step float64) (*Spec, error) {
	if !s.spans.found {
		return s, nil
	}
	section := s.ArchitectureSection
	if s.Choice != nil {
		section = section.Clone()
		if err := section.Set(s.Choice.Key, syntax.NewScalar(s.Choice.Word)); err != nil {
			return nil, err
		}
	}
	c := *s.catalog
	c.reading, c.spans = nil, &spans{epoch: epoch, step: step}
	one := *s
	var err error
	if one.Architecture, _, err = c.Architectures.read(&c, section, "kind", rolesKey, deliveryKey); err != nil {
		return nil, err
	}
	one.Counted = c.spans.counted
	return &one, one.teams()
}

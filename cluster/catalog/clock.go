package catalog

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/nn/optim"
)

// scheduleTags are the tags of all schedules.
func scheduleTags() []field.Tag {
	return slices.Concat(field.Tags(reflect.TypeFor[optim.Step]()), field.Tags(reflect.TypeFor[optim.Exponential]()),
		field.Tags(reflect.TypeFor[optim.Inverse]()), field.Tags(reflect.TypeFor[optim.Cosine]()),
		field.Tags(reflect.TypeFor[optim.Warmup]()))
}

// countsInSchedule reports whether a key of a schedule counts steps, or another unit.
func countsInSchedule(key string) bool {
	return slices.ContainsFunc(scheduleTags(), func(t field.Tag) bool { return t.Key == key && t.Counts != nil })
}

// Rounded is the largest change by rounding that needs no note, as a fraction of the interval.
const Rounded = 0.1

const (
	inSteps   = "steps"
	inEpochs  = "epochs"
	inSamples = "samples"
)

// clocked returns a schedule with its counts as whole numbers, and the unit that all of them have;
// empty if it counts nothing.
func (c *Catalog) clocked(n *syntax.Node) (plain *syntax.Node, in string, err error) {
	plain = n.Clone()
	for i, f := range plain.Fields {
		var own string
		switch {
		case f.Key == "then" && f.Value.Kind == syntax.Map:
			plain.Fields[i].Value, own, err = c.clocked(f.Value)
		case f.Value.Kind == syntax.Scalar && countsInSchedule(f.Key):
			plain.Fields[i].Value, own, err = c.count(f.Value)
		}
		if err != nil {
			return nil, "", err
		}
		if own != "" && in != "" && own != in {
			return nil, "", syntax.Errorf(
				f.Value,
				"this counts %s, and the schedule counts %s before; give all its counts "+
					"in one unit",
				own,
				in,
			)
		}
		if own != "" {
			in = own
		}
	}
	return plain, in, nil
}

// count reads 100, 100 steps, 2 epochs or 4000 samples; epochs in [optim.EpochParts].
func (c *Catalog) count(n *syntax.Node) (*syntax.Node, string, error) {
	span, is, err := spanAt(n)
	switch {
	case err != nil:
		return nil, "", err
	case !is && unlikeNumber(n):
		_, err := unit.ParseSpan(n.Text)
		return nil, "", syntax.Errorf(n, "%w", err)
	case !is:
		return n, inSteps, nil // the schedule's own reader says whether it is a number
	case span.Epochs > 0:
		exact := span.Epochs * optim.EpochParts
		parts := max(1, math.Round(exact))
		if math.Abs(parts-exact) > Rounded*exact {
			c.warn(n, "a schedule counts in parts of %g epochs; this becomes %g epochs", 1/float64(optim.EpochParts),
				parts/optim.EpochParts)
		}
		return number(parts, n), inEpochs, nil
	case span.Samples > 0:
		return number(float64(span.Samples), n), inSamples, nil
	}
	return number(float64(span.Steps), n), inSteps, nil
}

// spanAt reads a span that has a unit; otherwise it is none.
func spanAt(n *syntax.Node) (span unit.Span, is bool, err error) {
	if n.Kind != syntax.Scalar || !strings.Contains(n.Text, " ") {
		return unit.Span{}, false, nil
	}
	span, err = unit.ParseSpan(n.Text)
	if err != nil {
		return unit.Span{}, false, syntax.Errorf(n, "%w", err)
	}
	return span, true, nil
}

// number is a number in the place of n.
func number(v float64, n *syntax.Node) *syntax.Node {
	return syntax.NewScalar(strconv.FormatFloat(v, 'f', -1, 64)).Placed(n)
}

// asWritten puts the counts of a schedule back as the plan has them.
func asWritten(resolved, written *syntax.Node) {
	for i, f := range resolved.Fields {
		was, given := written.Get(f.Key)
		switch {
		case !given:
		case f.Key == "then" && f.Value.Kind == syntax.Map:
			asWritten(f.Value, was)
		case countsInSchedule(f.Key):
			resolved.Fields[i].Value = was
		}
	}
}

// schedule reads a schedule of a rate whose counts are steps, epochs or samples.
func (c *Catalog) schedule(n *syntax.Node) (optim.Schedule, *syntax.Node, error) {
	plain, in, err := c.clocked(n)
	if err != nil {
		return nil, nil, err
	}
	s, resolved, err := c.Schedules.read(c, plain, "kind")
	if err != nil {
		return nil, nil, err
	}
	asWritten(resolved, n)
	if in == inEpochs || in == inSamples {
		s = optim.Clocked{Of: s, Epochs: in == inEpochs}
	}
	return s, resolved, nil
}

// ownSteps refuses an outer optimizer whose schedule counts something else than its own steps.
func ownSteps(m optim.Method) error {
	if r, rated := m.(optim.Rated); rated {
		if _, clocked := r.Schedule().(optim.Clocked); clocked {
			return About(
				"outer",
				field.Errorf(m, "Rate", "a schedule in steps, of which an outer optimizer makes one in "+
					"each round; epochs and samples are for train.optimizer"),
			)
		}
	}
	return nil
}

package catalog

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/nn/optim"
)

// counted are the keys of schedules that count steps, or another unit.
var counted = []string{"every", "half", "steps"}

const (
	inSteps   = "steps"
	inEpochs  = "epochs"
	inSamples = "samples"
)

// clocked returns a schedule with its counts as whole numbers, and the unit that all of them have;
// empty if it counts nothing.
func clocked(n *syntax.Node) (plain *syntax.Node, in string, err error) {
	plain = n.Clone()
	for i, f := range plain.Fields {
		var own string
		switch {
		case f.Key == "then" && f.Value.Kind == syntax.Map:
			plain.Fields[i].Value, own, err = clocked(f.Value)
		case f.Value.Kind == syntax.Scalar && slices.Contains(counted, f.Key):
			plain.Fields[i].Value, own, err = count(f.Value)
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

// count reads 100, 100 steps, 2 epochs or 4000 samples.
func count(n *syntax.Node) (*syntax.Node, string, error) {
	number, in, _ := strings.Cut(n.Text, " ")
	whole := func(v float64) *syntax.Node { return syntax.NewScalar(strconv.FormatFloat(v, 'f', -1, 64)).Placed(n) }
	switch strings.TrimSpace(in) {
	case "epochs", "epoch":
		every, err := unit.ParseInterval(n.Text)
		if err != nil {
			return nil, "", syntax.Errorf(n, "%w", err)
		}
		return whole(max(1, math.Round(every.Epochs*optim.EpochParts))), inEpochs, nil
	case "samples", "sample":
		v, err := strconv.ParseUint(number, 10, 48)
		if err != nil || v == 0 {
			return nil, "", syntax.Errorf(
				n,
				"%s is not a whole number of samples; write 4000 samples",
				syntax.Quote(n.Text),
			)
		}
		return whole(float64(v)), inSamples, nil
	case "steps", "step":
		return syntax.NewScalar(number).Placed(n), inSteps, nil
	}
	return n, inSteps, nil // whatever else it is, the schedule's own reader says
}

// asWritten puts the counts of a schedule back as the plan has them.
func asWritten(resolved, written *syntax.Node) {
	for i, f := range resolved.Fields {
		was, given := written.Get(f.Key)
		switch {
		case !given:
		case f.Key == "then" && f.Value.Kind == syntax.Map:
			asWritten(f.Value, was)
		case slices.Contains(counted, f.Key):
			resolved.Fields[i].Value = was
		}
	}
}

// schedule reads a schedule of a rate whose counts are steps, epochs or samples.
func (c *Catalog) schedule(n *syntax.Node) (optim.Schedule, *syntax.Node, error) {
	plain, in, err := clocked(n)
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

// countSchema lets counts be texts with a unit.
func countSchema(s *settings.Schema) *settings.Schema {
	for _, kind := range s.AllOf {
		for i, p := range kind.Then.Properties {
			if slices.Contains(counted, p.Name) {
				either := *p.Schema
				either.Type = settings.Types{"integer", "string"}
				either.Pattern = `^[0-9.]+ +(steps?|epochs?|samples?)$`
				kind.Then.Properties[i].Schema = &either
			}
		}
	}
	return s
}

package catalog

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/datasets/input"
)

// Fits returns an error unless the model has as many inputs and classes as a data set.
func (s *Spec) Fits(set string, inputs int, classes []string) error {
	if n := s.Model.Inputs(); n != inputs {
		return syntax.Errorf(s.ModelSection, "the model takes %d inputs, data set %s has %d%s", n, set, inputs,
			s.otherInputs(inputs)+s.fewerInputs(inputs))
	}
	if n := s.Model.Classes(); n != len(classes) {
		hints := s.otherClasses(len(classes)) + s.otherLabel()
		if quantities(classes) {
			hints = s.otherLabel() + s.otherClasses(len(classes))
		}
		return syntax.Errorf(s.ModelSection, "the model tells %d classes apart, data set %s has %d, %s%s", n, set,
			len(classes), input.List(classes), hints)
	}
	return nil
}

// quantities reports whether labels look like quantities, such as prices: many, and all of them numbers.
func quantities(labels []string) bool {
	const many = 50
	return len(labels) > many && !slices.ContainsFunc(labels, func(l string) bool {
		_, err := strconv.ParseFloat(l, 64)
		return err != nil
	})
}

// otherInputs returns a hint: the setting of the model that accepts this number of inputs, or the models
// that have such a setting.
func (s *Spec) otherInputs(inputs int) string {
	switch s.ModelSection.At("kind").Text {
	case "mlp":
		return "; accepted is " + s.withLayer(0, inputs)
	case "linear":
		return fmt.Sprintf("; accepted is inputs: %d", inputs)
	case "network":
		return fmt.Sprintf("; accepted is an input whose channels × height × width are %d", inputs)
	}
	return "; the models mlp, linear and network take any number"
}

// fewerInputs returns a hint if the data set has more inputs than the model: the setting that leaves
// columns out. It is empty for data sets without one.
func (s *Spec) fewerInputs(inputs int) string {
	if s.Data.Section.At("set").Text != "csv" || inputs < s.Model.Inputs() {
		return ""
	}
	return "; if a column is no input, such as an index, data.ignore leaves it out"
}

// otherClasses returns a hint: the setting of the model that accepts this number of classes, or the models
// that have such a setting.
func (s *Spec) otherClasses(classes int) string {
	switch s.ModelSection.At("kind").Text {
	case "mlp":
		return "; accepted is " + s.withLayer(len(s.ModelSection.At("layers").Items)-1, classes)
	case "network":
		return fmt.Sprintf("; accepted are layers of which the last one has outputs: %d", classes)
	}
	return "; the models mlp and network tell any number apart"
}

// withLayer returns the layers of a perceptron, as a plan writes them, with one width replaced.
func (s *Spec) withLayer(at, width int) string {
	layers := s.ModelSection.At("layers").Clone()
	layers.Items[at] = syntax.NewScalar(strconv.Itoa(width))
	return "layers: " + layers.Flow()
}

// otherLabel returns a hint: the setting of the data set that chooses the labels. It is empty for data
// sets without one.
func (s *Spec) otherLabel() string {
	at := s.Data.Section
	switch at.At("set").Text {
	case "csv":
		column := "last"
		if n, given := at.Get("label"); given {
			column = n.Text
		}
		return fmt.Sprintf("; if these are not the classes, data.label names the column that has them, now %s", column)
	case "npy", "npz":
		return "; if these are not the classes, data.y names the array that has them"
	case "idx":
		return "; if these are not the classes, data.labels names the file that has them"
	}
	return ""
}

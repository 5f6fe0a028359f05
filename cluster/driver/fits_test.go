package driver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

// An error about a model that does not fit a table states the numbers of both, and the setting to change.
func TestAModelThatDoesNotFitItsDataIsToldWithTheSettingToChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	table := func(classes, inputs int) {
		var text strings.Builder
		text.WriteString(strings.Repeat("x,", inputs) + "label\n")
		for i := range 2 * classes {
			text.WriteString(strings.Repeat("1.5,", inputs) + fmt.Sprintf("c%02d\n", i%classes))
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		classes, inputs int
		model, want     string
	}{
		{3, 2, "{kind: mlp, layers: [2, 2]}", `has 3, ["c00" "c01" "c02"]; accepted is layers: [2, 3]; if these are not ` +
			"the classes, data.label names the column that has them, now last"},
		{2, 2, "{kind: mlp, layers: [2, 5, 3]}", `has 2, ["c00" "c01"]; accepted is layers: [2, 5, 2]; if these`},
		{12, 2, "{kind: mlp, layers: [2, 2]}", `"c07"] and 4 more; accepted is layers: [2, 12]; if these`},
		{3, 2, "{kind: linear, inputs: 2}", "tells 2 classes apart, data set " + path + ` has 3, ["c00" "c01" "c02"]; the ` +
			"models mlp and network tell any number apart; if these"},
		{3, 4, "{kind: network, input: [1, 2, 2], layers: [flatten, {kind: dense, outputs: 2}]}",
			`has 3, ["c00" "c01" "c02"]; accepted are layers of which the last one has outputs: 3; if these`},
		{2, 784, "{kind: small-cnn}", `tells 10 classes apart, data set ` + path + ` has 2, ["c00" "c01"]; the models mlp`},
		{2, 3, "{kind: mlp, layers: [2, 2]}", "the model takes 2 inputs, data set " + path + " has 3; accepted is " +
			"layers: [3, 2]"},
		{2, 3, "{kind: linear, inputs: 2}", "has 3; accepted is inputs: 3; if a column is no input, such as an index, " +
			"data.ignore leaves it out"},
		{2, 3, "{kind: network, input: [1, 2, 2], layers: [flatten, {kind: dense, outputs: 2}]}",
			"has 3; accepted is an input whose channels × height × width are 3"},
		{2, 3, "{kind: small-cnn}", "has 3; the models mlp, linear and network take any number"},
	} {
		table(c.classes, c.inputs)
		text := strings.Replace(fmt.Sprintf(unequal, path, path), "{kind: mlp, layers: [2, 2]}", c.model, 1)
		p, err := driver.Parse("unequal.yaml", []byte(text))
		if err == nil {
			_, err = try(t, p, driver.Options{})
		}
		expectInput(t, err, c.want)
		expectInput(t, err, "unequal.yaml:5:8: model: the model ")
	}
}

// Many numeric labels, such as prices, suggest that the label column is wrong, not the model.
func TestPricesForLabelsAreToldWithTheLabelFirst(t *testing.T) {
	for name, c := range map[string]struct{ label, want string }{
		"prices": {"%d", "and 52 more; if these are not the classes, data.label names the column that has them, now last; " +
			"accepted is layers: [2, 60]"},
		"words": {"c%d", "and 52 more; accepted is layers: [2, 60]; if these are not the classes"},
	} {
		path, text := filepath.Join(t.TempDir(), "t.csv"), "a,b,label\n"
		for i := range 120 {
			text += fmt.Sprintf("1.5,2.5,"+c.label+"\n", 100+i%60)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(name, err)
		}
		p, err := driver.Parse("unequal.yaml", fmt.Appendf(nil, unequal, path, path))
		if err == nil {
			_, err = try(t, p, driver.Options{})
		}
		expectInput(t, err, c.want)
	}
}

// A plan can declare that a usual mark of missing values is a class. The resolved plan of the record
// keeps the declaration.
func TestNoMarksAreMarksOfNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte("a,b,label\n1,2,None\n2,1,x\n1,2,None\n2,1,x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(unequal, path, path)
	p, err := driver.Parse("unequal.yaml", []byte(text))
	if err == nil {
		_, err = try(t, p, driver.Options{})
	}
	expectInput(t, err, path+`:2: column 3 (label): the label "None" stands for a missing value in most tables; `+
		`marks: [`)
	p = load(t, text, "data.marks=[]")
	resolved, err := p.Resolved(nil)
	if err != nil || !strings.Contains(resolved, "marks: []") {
		t.Errorf("resolved: %v\n%s", err, resolved)
	}
	run(t, load(t, resolved), driver.Options{})
}

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/turns"
)

// validator compiles a schema as a validator reads it, which knows nothing of Gradwire.
func validator(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plan.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("plan.schema.json") // checks the schema against its dialect's
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate checks a plan's text by a schema.
func validate(t testing.TB, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

func ownSchema(t testing.TB) *jsonschema.Schema {
	code, text, errs := gradwire(t, "plan", "schema")
	expectCode(t, cli.ExitDone, code, errs)
	return validator(t, text)
}

// programs are the examples that add to the catalog, and the plans that need them.
var programs = map[string][]string{
	"allreduce":       {"allreduce/plan.yaml"},
	"custom-actor":    {"custom-actor/plan.yaml"},
	"message-filter":  {"message-filter/plan.yaml"},
	"sparse-logistic": {"sparse-logistic/plan.yaml"},
}

func TestTheExamplesAreValidByTheSchema(t *testing.T) {
	const root = "../../examples"
	schema := ownSchema(t)
	files, err := filepath.Glob(root + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob(root + "/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ofPrograms := 0
	for _, file := range append(files, deeper...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(root, file)
		own := false
		for _, plans := range programs {
			own = own || slices.Contains(plans, filepath.ToSlash(name))
		}
		if own {
			ofPrograms++
			continue
		}
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(files)+len(deeper) < 12 || ofPrograms != 4 {
		t.Errorf("%d examples, %d of programs of their own", len(files)+len(deeper), ofPrograms)
	}
}

func TestAProgramsOwnArchitecturesAreInItsSchema(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	schemas := map[string]string{}
	for program := range programs { // before the tests' own commands hide the home of go's caches
		//nolint:gosec // of this module
		out, err := exec.Command("go", "run", "../../examples/"+program, "plan", "schema").Output()
		if err != nil {
			t.Fatal(err)
		}
		schemas[program] = string(out)
	}
	without := ownSchema(t)
	for program, plans := range programs {
		schema := validator(t, schemas[program])
		for _, plan := range plans {
			text, err := os.ReadFile(filepath.Join("../../examples", plan))
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, schema, text); err != nil {
				t.Errorf("%s: %v", plan, err)
			}
			if validate(t, without, edited(text)) == nil {
				t.Errorf("%s names an architecture that the schema without it accepts", plan)
			}
		}
	}
}

// edited is a plan without its sweep, whose values no schema checks.
func edited(text []byte) []byte {
	text, _, _ = bytes.Cut(text, []byte("\nsweep:"))
	return text
}

func TestPlansThatAreShownAreValidByTheSchema(t *testing.T) {
	schema := ownSchema(t)
	for _, plan := range []string{"quickstart", "architectures", "all-reduce-algorithms"} {
		code, text, errs := gradwire(t, "plan", "show", "../../examples/"+plan+".yaml")
		expectCode(t, cli.ExitDone, code, errs)
		if err := validate(t, schema, []byte(text)); err != nil {
			t.Errorf("%s: %v", plan, err)
		}
	}
}

func TestTheSchemaRefusesWhatNoPlanMaySay(t *testing.T) {
	schema := ownSchema(t)
	if err := validate(t, schema, []byte(small)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"kind: mlp, ", "kind: mpl, "}, {"layers: [93, 8, 5]", "layer: [93, 8, 5]"}, {", layers: [93, 8, 5]", ""},
		{"layers: [93, 8, 5]", "layers: 93"},
		{"set: synthetic-traffic", "set: synthetic-trffic"}, {"samples: 1500", "samples: 15"},
		{"samples: 1500", "encoding: 100"},
		{"samples: 1500", "test: all"}, {"samples: 1500", "test: 100"}, {"samples: 1500", "split: iid"},
		{"samples: 1500", "split: {kind: dirichlet}"},
		{"batch: 32", "batch: 0"}, {"batch: 32", "bacth: 32"}, {"rate: 0.1", "rate: -0.1"},
		{"rate: 0.1", "rate: {kind: step, first: 0.1}"}, {"kind: sgd", "kind: sdg"},
		{"kind: parameter-server", "kind: parameter-server, scale: max"},
		{"kind: parameter-server", "kind: gossip, choose: {kind: near}"},
		{"kind: parameter-server", "kind: d-psgd, matrix: [0.5, 0.5]"},
		{"kind: parameter-server", "kind: d-psgd, lead: -1"},
		{"delay: 1ms", "delay: 1"}, {"delay: 1ms", "delay: {kind: uniform, range: 1s-5s}"},
		{"delay: 1ms", "delay: {kind: uniform}"}, {"delay: 1ms", "delay: {range: 1s..5s}"},
		{"links:", "topology: rign\n  links:"}, {"links:", "topology: random-regular\n  links:"},
		{"links:", "topology: {kind: ring, degree: 2}\n  links:"},
		{"stop: {epochs: 2}", "stop: {}"}, {"stop: {epochs: 2}", "stop: {time: 0s}"},
	} {
		text := edit(t, small, change[0], change[1])
		if validate(t, schema, []byte(text)) == nil {
			t.Errorf("%s in place of %s is valid", change[1], change[0])
		}
	}
	if err := validate(t, schema, []byte(edit(t, small, "architecture: {kind: parameter-server}\n",
		"")+"sweep: {architecture: [{kind: gossip}]}\n")); err != nil {
		t.Errorf("what the sweep says need not be said twice: %v", err)
	}
}

func TestTheSchemaIsWrittenToAFile(t *testing.T) {
	enter(t, small)
	_, printed, _ := gradwire(t, "plan", "schema")
	for range 2 { // the second time over the first
		code, out, errs := gradwire(t, "plan", "schema", "--out", "s.json")
		expectCode(t, cli.ExitDone, code, errs)
		if written, err := os.ReadFile("s.json"); err != nil || string(written) != printed ||
			out != "schema in s.json\n" {
			t.Errorf("%q: %v", out, err)
		}
	}
	code, _, _ := gradwire(t, "plan", "schema", "--out", "no/such/folder.json")
	expectCode(t, cli.ExitInput, code, "")
}

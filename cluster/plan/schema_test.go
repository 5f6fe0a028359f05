package plan

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// anything is what the sections of a plan hold that somebody else reads.
func anything() (defs settings.Properties) {
	for _, name := range []string{"data", "model", "train", "architecture", "topology"} {
		defs = append(defs, settings.Property{Name: name,
			Schema: &settings.Schema{Not: &settings.Schema{Type: settings.Types{"null"}}}})
	}
	scalarOrMap := func(scalar *settings.Schema) *settings.Schema {
		return &settings.Schema{AnyOf: []*settings.Schema{scalar, {Type: settings.Types{"object"}}}}
	}
	return append(defs,
		settings.Property{Name: "delay", Schema: scalarOrMap(settings.SchemaOf(new(unit.Duration)))},
		settings.Property{Name: Rate{}.Unit(), Schema: scalarOrMap(settings.SchemaOf(new(unit.ByteRate)))})
}

// compile makes a validator of what a schema is written as.
func compile(t testing.TB, s *settings.Schema) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plan.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// values reads YAML as a validator of JSON wants it, without this package.
func values(src []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(src, &v); err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}

func TestGoodPlansAreValidBySchema(t *testing.T) {
	schema := compile(t, Document("plan", anything()))
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	resolved, err := filepath.Glob("testdata/resolved/*.yaml")
	if err != nil || len(resolved) < 3 {
		t.Fatal(resolved, err)
	}
	for _, file := range append(files, resolved...) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := values(src)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// beyondSchemas are the bad plans that no schema can refuse, each with the reason.
var beyondSchemas = map[string]string{
	"group-and-node": twice, "node-twice": twice, "link-to-itself": twice,
	"available-and-schedule": other, "available-too-late": twice, "available-without-end": sections,
	"network-none": "what goes with a network that is none stands under other keys",
	"outage-ratio": twice, "outage-short": "a schema cannot compare durations, which have units",
	"early-without-target": "the target stands here or in another section",
	"unknown-node":         other, "schedule-node-unknown": other,
	"schedule-crash-twice": order, "schedule-join-twice": order, "schedule-leave-before-join": order,
	"schedule-node-at-once":         order,
	"schedule-pause-of-who-is-gone": order, "schedule-preempt-joined": order, "schedule-restart-overlaps": order,
	"schedule-cut-both-sides": other, "schedule-cut-unknown": other, "schedule-cut-everyone": other,
	"faults-without-end": sections, "faults-cut-nothing": sections, "faults-by-sites": sections,
	"faults-many":             "a schema cannot compute",
	"faults-sigma-of-years":   "a schema cannot compare durations, which have units",
	"schedule-slow-native":    "what happens stands elsewhere than how a node computes",
	"schedule-topology-twice": order,
	"sweep-huge":              sweeps, "sweep-into-scalar": sweeps, "sweep-nowhere": sweeps, "sweep-same-label": sweeps,
	"sweep-undone":      sweeps,
	"sweep-unknown-key": sweeps, "sweep-value": sweeps,
	"sites-node": other, "wander-from-outside": twice, "threads-cores": twice, "schedule-pause-without-end": twice,
	"schedule-preempt-notice-without-end": twice, "schedule-preempt-without-end": twice,
	"faults-sigma-without-end": twice,
	"faults-back-without-end":  twice, "faults-notice-without-end": twice, "faults-swizzle-without-end": twice,
	"faults-until-without-end": "a schema cannot compare durations, which have units",
}

const (
	twice    = "a schema cannot compare the values of two keys"
	other    = "a schema does not know the names that a plan gives its nodes"
	order    = "a schema cannot follow the order of time"
	sections = "what goes with it stands in another section"
	sweeps   = "what a sweep puts somewhere is checked where it is put"
)

func TestBadPlansAreInvalidBySchemaWhereOneCanSayWhy(t *testing.T) {
	schema := compile(t, Document("plan", anything()))
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatal(len(files), err)
	}
	var refused []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := syntax.Parse(file, src); err != nil {
			continue // what is wrong is its YAML, which is not a schema's affair
		}
		v, err := values(src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		reason, beyond := beyondSchemas[name]
		switch err := schema.Validate(v); {
		case err != nil && beyond:
			t.Errorf("%s is invalid, although %s: %v", name, reason, err)
		case err == nil && !beyond:
			t.Errorf("%s is valid", name)
		case err != nil:
			refused = append(refused, name)
		}
	}
	if len(refused) < 50 {
		t.Errorf("only %d bad plans are invalid: %v", len(refused), refused)
	}
}

func TestEveryKeyOfAPlanSaysWhatItMeans(t *testing.T) {
	keys := 0
	Document("plan", anything()).Walk("", func(path string, s *settings.Schema) {
		_, name, definition := strings.Cut(path, ".plan.")
		if !definition {
			return
		}
		keys++
		if s.Description == "" {
			t.Errorf("%s has no description: give its field a tag doc", name)
		}
		if s.Type == nil && s.Ref == "" && s.AnyOf == nil && s.Const == nil {
			t.Errorf("%s says nothing of its value: its type reads itself and needs a method PlanSchema", name)
		}
	})
	if keys < 100 {
		t.Errorf("only %d keys were seen", keys)
	}
}

// each is one of the units, with texts at their edges and beyond.
func TestUnitsMatchTheirPatternExactlyWhenTheyAreParsed(t *testing.T) {
	texts := []string{
		"5ms", "1.5s", "1m30s", "1h0m0.5s", "5 ms", "5  ms", "1m 30s", "100us", "100µs", "1.s", ".5s", "5", "", "-1s",
		"5msec", "1s.5s", "0s", "1e3s",
		"1s..5s", "1s .. 5s", "5 ms..6 ms", "1s..", "..5s", "1s...5s",
		"10 steps", "1 step", "0.5 epochs", "1 epoch", "1e-3 epochs", "5 rounds", "5steps", "1.5 steps", "2  epochs",
		"94%", "94 %", "100%", "100.0%", "101%", "0%", "00.5%", ".5%", "5.%", "-1%", "1e1%", "99.99%", "%",
		"10 Mbit/s", "10Mbit/s", "1.5 MB/s", "unlimited", "10 mbit/s", "10", "1..5 B/s", "8 bit/s", "5. kB/s",
		"10 KiB/s x",
		"10 GFLOP/s", "1 FLOP/s", "10 GFLOPS", "64 KiB", "0 B", "1 MB", "1.5 KiB", "12 b",
	}
	parsers := map[string]func(s string) error{
		"duration":       func(s string) error { _, err := unit.ParseDuration(s); return err },
		"duration-range": func(s string) error { _, err := unit.ParseDurationRange(s); return err },
		"interval":       func(s string) error { _, err := unit.ParseInterval(s); return err },
		"fraction":       func(s string) error { _, err := unit.ParseFraction(s); return err },
		"byte-rate":      func(s string) error { _, err := unit.ParseByteRate(s); return err },
		"throughput":     func(s string) error { _, err := unit.ParseThroughput(s); return err },
		"speed":          func(s string) error { _, err := unit.ParseSpeed(s); return err },
		"size":           func(s string) error { _, err := unit.ParseSize(s); return err },
	}
	if len(settings.Units()) != len(parsers) {
		t.Fatalf("%d units, %d parsers", len(settings.Units()), len(parsers))
	}
	for _, u := range settings.Units() {
		schema := compile(t, u.Schema)
		accepted := 0
		for _, text := range texts {
			parsed, valid := parsers[u.Name](text) == nil, schema.Validate(text) == nil
			if parsed {
				accepted++
			}
			// that an interval is above 0 is said where it is used
			if parsed != valid && (!valid || text != "0s" || u.Name != "interval") {
				t.Errorf("%s %q: parsed %v, valid %v", u.Name, text, parsed, valid)
			}
		}
		if accepted < 2 {
			t.Errorf("%s: only %d texts are accepted", u.Name, accepted)
		}
	}
}

func TestASchemaAgreesWithDecodingOnQuantitiesThatAreNothing(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	document := Document("plan", anything())
	for name, v := range map[string]any{"stop": &Stop{}, "loss": &Loss{}, "outage": &Outage{},
		"evaluate": &Evaluate{}} {
		document.Defs = append(document.Defs, settings.Property{Name: "own." + name, Schema: settings.SchemaOf(v)})
		own := *document
		own.If, own.Then, own.Else, own.Ref = nil, nil, nil, settings.Definition("own."+name)
		schemas[name] = compile(t, &own)
	}
	for _, x := range []struct {
		name, text string
		good       bool
	}{
		{"stop", "{time: 0s}", false}, {"stop", "{time: 0.0s}", false}, {"stop", "{time: 0m0s}", false},
		{"stop", "{time: 0 s}", false},
		{"stop", "{time: 0h30m}", true}, {"stop", "{time: 0m0.5s}", true}, {"stop", "{time: 00.5s}", true},
		{"stop", "{time: 10m0s}", true},
		{"loss", "{bursts: {p: 0, r: 25%}}", false}, {"loss", "{bursts: {p: 0.0, r: 0.25}}", false},
		{"loss", "{bursts: {p: .0 %, r: 0.25}}", false},
		{"loss", "{bursts: {p: 0.02, r: 0.25}}", true}, {"loss", "{bursts: {p: 2%, r: 1}}", true},
		{"loss", "{bursts: {p: 0.5%, r: 100%}}", true},
		{"loss", "{probability: 0, bursts: {p: 2%, r: 25%}}", true},
		{"loss", "{probability: 0%, bursts: {p: 2%, r: 25%}}", true},
		{"loss", "{probability: 0.1, bursts: {p: 2%, r: 25%}}", false},
		{"loss", "{probability: 10%, bursts: {p: 2%, r: 25%}}", false},
		{"outage", "{from: 0s, for: 0s}", false}, {"outage", "{from: 0s, for: 0m1s}", true},
		{"evaluate", "{every: 0 epochs}", false}, {"evaluate", "{every: 0e5 epochs}", false},
		{"evaluate", "{every: 0 steps}", false},
		{"evaluate", "{every: 1e-3 epochs}", true}, {"evaluate", "{every: 10 steps}", true},
	} {
		n, err := syntax.Parse("p", []byte("at: "+x.text))
		if err != nil {
			t.Fatal(err)
		}
		v, err := values([]byte(x.text))
		if err != nil {
			t.Fatal(err)
		}
		into := map[string]any{"stop": &Stop{}, "loss": &Loss{}, "outage": &Outage{}, "evaluate": &Evaluate{}}[x.name]
		decoded, valid := settings.Decode(n.At("at"), into), schemas[x.name].Validate(v)
		if (valid == nil) != x.good || decoded != nil && x.good {
			t.Errorf("%s %s: decoding says %v, the schema %v", x.name, x.text, decoded, valid)
		}
	}
}

func TestASchemaAgreesWithDecodingOnTags(t *testing.T) {
	type tagged struct {
		Word  string  `plan:"word" words:"sum|mean"`
		Size  int     `plan:"size" words:"93|122"`
		Count *int    `plan:"count" range:"2..5"`
		Share float64 `plan:"share" range:">0"`
		Steps uint    `plan:"steps" range:"0.."`
		Decay float64 `plan:"decay" range:"0..<1"`
		Sigma float64 `plan:"sigma" range:">0..10"`
		X     string  `plan:"x,omitzero" with:"y"`
		Y     string  `plan:"y,omitzero" with:"x"`
	}
	schema := compile(t, settings.SchemaOf(&tagged{Word: "sum", Size: 93, Share: 1, Sigma: 1}))
	for text, good := range map[string]bool{
		"{}": true, "{word: mean, size: 122}": true, "{word: max}": false, "{word: 5}": false, "{size: 94}": false,
		"{size: '93'}": false,
		"{count: 2}":   true, "{count: 5}": true, "{count: 1}": false, "{count: 6}": false, "{count: 2.5}": false,
		"{share: 0.1}": true, "{share: 0}": false, "{share: -1}": false, "{steps: 0}": true, "{steps: -1}": false,
		"{other: 1}": false,
		"{decay: 0}": true, "{decay: 0.99}": true, "{decay: 1}": false, "{decay: -0.1}": false,
		"{sigma: 0}": false, "{sigma: 10}": true, "{sigma: 10.5}": false,
		"{x: a}": false, "{x: a1}": false, "{y: b}": false, "{x: a, y: b}": true, "{x: ''}": true,
	} {
		n, err := syntax.Parse("p", []byte("at: "+text))
		if err != nil {
			t.Fatal(err)
		}
		v, err := values([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var into tagged
		decoded, valid := settings.Decode(n.At("at"), &into), schema.Validate(v)
		if (decoded == nil) != good || (valid == nil) != good {
			t.Errorf("%s: decoding says %v, the schema %v", text, decoded, valid)
		}
	}
}

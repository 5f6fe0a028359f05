package catalog

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// timeless are numbers of architectures that count no steps, rounds or the like, though some docs
// speak of these.
var timeless = regexp.MustCompile(`\.(virtual-nodes|shard|slack|replicas|backup|epoch-share|segment|fragments|mix|` +
	`sparse|slots|values|share|count|population|spare|proximal|attackers|keep|scale|quorum|mads|buffer|power|slope|` +
	`candidates|floor|cache|capacity|reactivity|group|outer\.rate|outer\.momentum|gaia\.rate|first|last|factor|decay|` +
	`weight-decay|momentum|beta1|beta2|epsilon|tau|rank|block|bits|levels|clip)$`)

// checkCounts also refuses optional shares that accept 0 %: decoding cannot tell 0 % from an absent key. Only
// for mix and floor do both mean the same.
func checkCounts(t *testing.T, of reflect.Type, path string, spans map[string]bool) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	for _, tag := range field.Tags(of) {
		f := of.FieldByIndex(tag.Index).Type
		where := path + "." + tag.Key
		number := f.Kind() >= reflect.Int && f.Kind() <= reflect.Float64 && !strings.HasSuffix(f.String(), "Duration")
		if number && !tag.Node && tag.Counts == nil && !timeless.MatchString(where) && tag.Key != "rate" {
			t.Errorf("%s says neither what it counts nor that it counts nothing", where)
		}
		share := tag.Unit == "fraction" && tag.OmitZero && tag.Key != "mix" && tag.Key != "floor"
		if share && (tag.Range == nil || !tag.Range.Above) {
			t.Errorf("%s: 0%% is read as if it were left out; its range must be more than 0%%", where)
		}
		if tag.Counts != nil && tag.Counts.Spans {
			spans[where] = true
		}
		checkCounts(t, f, where, spans)
	}
}

func checkCountsOf[T any](t *testing.T, ks *Kinds[T], spans map[string]bool) {
	for _, k := range ks.All() {
		checkCounts(t, reflect.TypeOf(k.settings()), k.Name, spans)
	}
}

func TestEveryNumberOfAnArchitectureSaysWhatItCounts(t *testing.T) {
	c, spans := Default(), map[string]bool{}
	checkCountsOf(t, &c.Architectures, spans)
	checkCountsOf(t, &c.Consistencies, spans)
	checkCountsOf(t, &c.Schedules, spans)
	checkCountsOf(t, &c.Optimizers, spans)
	checkCountsOf(t, &c.Compressors, spans)
	for _, want := range []string{"all-reduce.every", "parameter-server.every", "gossip.every", "noloco.every",
		"federated.local.steps"} {
		if !spans[want] {
			t.Errorf("%s takes no epochs and samples", want)
		}
	}
}

func readArchitecture(t *testing.T, architecture, rest string) (*Spec, error) {
	t.Helper()
	root, err := syntax.Parse(
		"plan.yaml",
		[]byte("data: {set: synthetic-traffic}\nmodel: {kind: mlp, layers: [93, 5]}\n"+
			"architecture: "+architecture+"\nnodes: [{name: p, count: 4, compute: {step: 5ms}}]\nstop: {epochs: 1}\n"+rest),
	)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.ReadPlan(root)
	if err != nil {
		t.Fatal(err)
	}
	return Default().Read(p)
}

func TestIntervalsInEpochsAndSamplesAreTheNearestStepsThatAreAccepted(t *testing.T) {
	for architecture, want := range map[string]int{
		"{kind: all-reduce, every: 512 samples}":                                 13,
		"{kind: noloco, every: 0.1 epochs}":                                      3,
		"{kind: gossip, every: 10 samples}":                                      1,
		"{kind: gossip, every: 7 steps}":                                         7,
		"{kind: all-reduce, reduce: models, every: 0.1 epochs, fragments: 4}":    4,
		"{kind: parameter-server, roles: {server: added}, every: 400 samples}":   10,
		"{kind: federated, roles: {server: added}, local: {steps: 400 samples}}": 10,
		"{kind: all-reduce, preset: streaming-diloco, every: 1 epochs}":          24,
	} {
		s, err := readArchitecture(t, architecture, "")
		if err != nil {
			t.Errorf("%s: %v", architecture, err)
			continue
		}
		if s, err = s.Resolve(1000, 40); err != nil {
			t.Errorf("%s: %v", architecture, err)
			continue
		}
		v := reflect.ValueOf(s.Architecture)
		got := v.FieldByName("Every")
		if !got.IsValid() {
			got = v.FieldByName("Local").FieldByName("Steps")
		}
		if int(got.Int()) != want {
			t.Errorf("%s: %v steps, want %d", architecture, got, want)
		}
	}
	if _, err := readArchitecture(t, "{kind: gossip, every: 5 weeks}", ""); err == nil ||
		!strings.Contains(err.Error(), "0.1 epochs or 4000 samples") {
		t.Errorf("got %v", err)
	}
}

func TestRandomWalksWithoutABoundAreToldWhereverTheyStand(t *testing.T) {
	const walk = "{kind: random-walk, first: 1s..5s, step: 500ms, min: 50ms"
	for _, place := range []string{
		"network: {default: {delay: %}}", "network: {links: [{between: [p1, p2], delay: %}]}",
		"schedule: [{at: 1s, link: [p1, p2], delay: %}]",
	} {
		for end, want := range map[string]bool{"}": true, ", max: 9s}": false, ", draw: link}": false} {
			s, err := readArchitecture(t, "{kind: gossip}", strings.Replace(place, "%", walk+end, 1)+"\n")
			if err != nil {
				t.Fatalf("%s: %v", place, err)
			}
			told := strings.Join(s.Notes, "\n")
			if strings.Contains(told, "has no max") != want || want && !strings.Contains(told, "max: 10s") {
				t.Errorf("%s%s: told %q", place, end, told)
			}
		}
	}
}

// besides lists the settings that an architecture requires beside an interval.
var besides = map[string]string{
	"parameter-server": "roles: {server: added}", "federated": "roles: {server: added}",
	"in-network": "roles: {switch: added}", "gaia": "roles: {server: added}",
}

// Each interval that accepts epochs and samples records its number of steps before rounding.
func TestEveryRoundedIntervalKnowsItsExactSteps(t *testing.T) {
	spans := map[string]bool{}
	checkCountsOf(t, &Default().Architectures, spans)
	tried := 0
	for path := range spans {
		kind, key, _ := strings.Cut(path, ".")
		for _, text := range []string{"10 samples", "0.01 epochs"} {
			value := text
			for _, piece := range slices.Backward(strings.Split(key, ".")) {
				value = "{" + piece + ": " + value + "}"
			}
			section := "{kind: " + kind + ", " + strings.TrimPrefix(value, "{")
			if more := besides[kind]; more != "" {
				section = strings.TrimSuffix(section, "}") + ", " + more + "}"
			}
			s, err := readArchitecture(t, section, "")
			if err == nil {
				s, err = s.Resolve(1000, 40)
			}
			if err != nil {
				t.Errorf("%s: %v", section, err)
				continue
			}
			found := false
			for _, c := range s.Counted {
				found = found || c.At != nil && c.At.Text == text && c.Wanted == 0.25 && c.Value >= 1
			}
			if !found {
				t.Errorf("%s: no interval of 0.25 steps that became more among %+v", section, s.Counted)
			}
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("%d settings tried", tried)
	}
}

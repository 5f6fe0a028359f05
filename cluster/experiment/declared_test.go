package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/world/worldtest"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/turns"
)

// played runs a plan in virtual time. It replaces actors before a share of their messages, and returns
// a digest of the run and the number of replacements.
func played(t *testing.T, often float64, set ...string) (hash string, times int) {
	t.Helper()
	p, err := Parse("plan.yaml", []byte(steady), set...)
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := points[0].stageFor(shelf.New("", 1, nil), 1, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := worldtest.Replace(t, s.Deployment, often)
	result, err := (Virtual{}).Play(context.Background(), s)
	if err != nil {
		t.Fatalf("%v: %v", set, err)
	}
	led := s.result
	led.Models, led.Average = nil, nil
	return fmt.Sprintf("%s, events %x, result %+v", digest(*result.Digest, s.result.Models), r.Events.Sum64(), led),
		r.Times
}

// declaredCases holds settings by architecture that bring its actors into further states.
// A case that sets the architecture itself runs once.
var declaredCases = map[string][][]string{}

// Replacing any actor, at any time, by a new actor with its restored state leaves the messages and
// events of the run the same, to the bit.
func TestARestoredActorGoesOnAsItself(t *testing.T) {
	for k, kind := range slices.Sorted(maps.Keys(variants)) {
		for v, variant := range variants[kind] {
			t.Run(variant, func(t *testing.T) {
				t.Parallel()
				all := append([][]string{
					nil,
					{"train.optimizer={kind: adam, rate: 0.01}", "network.default.loss={probability: 5%, kind: drop}"},
					{"schedule=[{at: 300ms, node: w2, do: crash}, {at: 500ms, node: w2, do: join}]"},
				}, declaredCases[kind]...)
				for i, more := range all {
					if v > 0 && len(more) > 0 && strings.HasPrefix(more[0], "architecture=") {
						continue
					}
					t.Run(strings.Join(more, " "), func(t *testing.T) {
						turns.Row(t, i+v+k, len(all), 6)
						goesOnAsItself(t, append([]string{"architecture=" + variant, "stop={time: 1s}"}, more...)...)
					})
				}
			})
		}
	}
}

// goesOnAsItself compares a run with the same run in which actors are replaced.
func goesOnAsItself(t *testing.T, set ...string) {
	t.Helper()
	want, _ := played(t, 0, set...)
	for _, often := range []float64{0.02, 1} {
		got, times := played(t, often, set...)
		if got != want || times == 0 {
			t.Errorf("%v: digest %s after %d substitutions, want %s", set, got, times, want)
		}
	}
}

package field_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

type inner struct {
	Kind  string  `plan:"kind" words:"near|far"`
	Floor float64 `plan:"floor,omitzero" unit:"fraction" with:"kind=far"`
}

type settings struct {
	Deep   inner         `plan:",inline"`
	Drop   bool          `plan:"lost" words:"again|never"`
	After  time.Duration `plan:"after,omitzero" range:"0s..8760h" with:"lost=never"`
	Every  int           `plan:"every,omitzero" range:"1..9" either:"every|period"`
	Period time.Duration `plan:"period,omitzero" range:">1ms" either:"every|period"`
	Choice inner         `plan:"choose"`
	Lead   int           `plan:"lead" range:"0.." none:"-1"`
	Moved  float64       `plan:"moved" range:"0.."`
	Part   float64       `plan:"part,omitzero" unit:"fraction" range:">0%..100%"`
	Decay  float64       `plan:"decay" range:"0..<1"`
	Tries  int           `plan:"tries,omitzero" range:">1..<4"`
}

func TestTheFirstFieldThatItsTagsDoNotAcceptIsNamed(t *testing.T) {
	good := settings{Deep: inner{Kind: "near"}, Every: 1, Choice: inner{Kind: "near"}, Lead: -1, Part: 1, Tries: 3}
	if err := field.Check(good); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(s *settings){
		"Every is 10: must be 1 to 9":                        func(s *settings) { s.Every = 10 },
		"Every is 0: must be given where period is not":      func(s *settings) { s.Every = 0 },
		"Every is 1: must be left out where period is given": func(s *settings) { s.Period = time.Second },
		"Period is 1ms: must be more than 1ms": func(s *settings) {
			s.Every, s.Period = 0, time.Millisecond
		},
		`Choice.Kind is "last": must be near or far`:              func(s *settings) { s.Choice.Kind = "last" },
		"Choice.Floor is 0.5: must be left out without kind: far": func(s *settings) { s.Choice.Floor = 0.5 },
		"Choice.Floor is 2: must be from 0 to 1":                  func(s *settings) { s.Choice.Floor = 2 },
		`Deep.Kind is "off": must be near or far`:                 func(s *settings) { s.Deep.Kind = "off" },
		"After is 1s: must be left out without lost: never":       func(s *settings) { s.After = time.Second },
		"After is 8760h0m0.000000001s: must be 0s to 8760h": func(s *settings) {
			s.Drop, s.After = true, 8760*time.Hour+1 // of which a float64 has not all digits
		},
		"Lead is -2: must be 0 or more":                  func(s *settings) { s.Lead = -2 },
		"Moved is +Inf: must be 0 or more":               func(s *settings) { s.Moved = math.Inf(1) },
		"Part is -0.5: must be more than 0%, up to 100%": func(s *settings) { s.Part = -0.5 },
		"Part is 1.5: must be more than 0%, up to 100%":  func(s *settings) { s.Part = 1.5 },
		"Decay is 1: must be 0 or more, below 1":         func(s *settings) { s.Decay = 1 },
		"Tries is 1: must be more than 1, below 4":       func(s *settings) { s.Tries = 1 },
		"Tries is 4: must be more than 1, below 4":       func(s *settings) { s.Tries = 4 },
		"Moved is NaN: must be 0 or more":                func(s *settings) { s.Moved = math.NaN() },
	} {
		s := good
		spoil(&s)
		var wrong *field.Error
		if err := field.Check(s); !errors.As(err, &wrong) || wrong.Error() != want || len(wrong.Keys) == 0 {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

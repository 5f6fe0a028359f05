package settings

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

type inner struct {
	Delay unit.Duration `plan:"delay"`
	Rate  float64       `plan:"rate"`
}

func (i *inner) SetDefaults() { i.Rate = 9 }

type embedded struct {
	Flag bool `plan:"flag"`
}

type everything struct {
	embedded
	Embedded
	Text    string            `plan:"text"`
	Small   int8              `plan:"small"`
	Large   uint64            `plan:"large"`
	Single  float32           `plan:"single"`
	Nested  inner             `plan:"nested"`
	Pointer *inner            `plan:"pointer"`
	List    []inner           `plan:"list"`
	Words   []string          `plan:"words"`
	Map     map[string]inner  `plan:"map"`
	Numbers map[string]*int   `plan:"numbers"`
	Raw     *syntax.Node      `plan:"raw"`
	Hidden  map[string]string `plan:"hidden,omitzero"`
	Here    *syntax.Node      `plan:",node"`
	Untold  int
}

// Embedded is exported, as an embedded struct must be for reflection to set it.
type Embedded struct {
	Flag bool `plan:"inlined"`
}

func TestDecodeKeepsWhatIsAbsentAndFillsWhatIsGiven(t *testing.T) {
	root := mustParse(t, `
text: 12
small: -128
large: 18446744073709551615
single: 1.5
inlined: true
nested: {delay: 5ms}
pointer: {delay: 1s}
list: [{delay: 1s, rate: 2}, {}]
words: [a, "1", 2]
map: {x: {delay: 2s}, y: {rate: 1e3}}
numbers: {one: 1, none: null}
raw: {any: [thing]}
`)
	one := 1
	got := everything{Nested: inner{Delay: 7, Rate: 3}, Pointer: &inner{Rate: 4}, Words: []string{"before"}, Untold: 5}
	shared := got.Pointer
	if err := Decode(root, &got); err != nil {
		t.Fatal(err)
	}
	second, ms := unit.Duration(time.Second), unit.Duration(time.Millisecond)
	want := everything{
		Embedded: Embedded{Flag: true}, Text: "12", Small: -128, Large: 1<<64 - 1, Single: 1.5,
		Nested: inner{5 * ms, 3}, Pointer: &inner{second, 4},
		List: []inner{{second, 2}, {0, 9}}, Words: []string{"a", "1", "2"},
		Map:     map[string]inner{"x": {2 * second, 9}, "y": {0, 1000}},
		Numbers: map[string]*int{"one": &one, "none": nil}, Raw: root.At("raw"), Here: root, Untold: 5,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(everything{}, embedded{})); diff != "" {
		t.Error(diff)
	}
	if shared.Delay != 0 {
		t.Error("the default that the pointer had was written to")
	}
	tree, err := Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	var back everything
	if err := Decode(mustParse(t, tree.YAML()), &back); err != nil {
		t.Fatalf("%v\n%s", err, tree.YAML())
	}
	want.Untold = 0
	back.Here = root
	if diff := cmp.Diff(want, back, cmp.AllowUnexported(everything{}, embedded{})); diff != "" {
		t.Errorf("after encoding: %s", diff)
	}
}

func TestDecodeCollectsEveryMismatch(t *testing.T) {
	root := mustParse(t, `
text: [a]
small: 128
large: -1
single: 1e39
inlined: yes
nested: 5
pointer: [x]
list: {a: b}
numbers: {one: 0x10}
words: [[a], null]
other: 1
`)
	var v everything
	err := Decode(root, &v)
	var all syntax.Errors
	if !errors.As(err, &all) || len(all) != syntax.MaxErrors {
		t.Fatalf("%d errors: %v", len(all), err)
	}
	for i, line := range []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11} {
		if all[i].Pos.Line != line {
			t.Errorf("error %d stands in line %d, want %d: %v", i, all[i].Pos.Line, line, all[i])
		}
	}
}

var errOwn = errors.New("own error")

type picky struct{}

func (p *picky) UnmarshalPlan(n *syntax.Node) error {
	return errors.Join(errOwn, syntax.Errorf(n, "second"))
}

func TestErrorsOfUnmarshalersKeepTheirCauseAndGetAPlace(t *testing.T) {
	var v struct {
		P *picky `plan:"p"`
	}
	err := Decode(mustParse(t, "a: 1\np: x\n").Without("a"), &v)
	var e *syntax.Error
	if !errors.Is(err, errOwn) || !errors.As(err, &e) || e.Pos.Line != 2 || e.Path != "p" {
		t.Errorf("error: %v", err)
	}
}

func TestProgrammersMistakesPanic(t *testing.T) {
	n := mustParse(t, "a: 1\n")
	for name, f := range map[string]func(){
		"no pointer":  func() { _ = Decode(n, everything{}) },
		"nil pointer": func() { _ = Decode(n, (*everything)(nil)) },
		"channel": func() {
			_ = Decode(n, &struct {
				A chan int `plan:"a"`
			}{})
		},
		"encoding": func() { _, _ = Encode(make(chan int)) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "settings: ") {
					t.Errorf("%s: no clear panic", name)
				}
			}()
			f()
		}()
	}
	if _, err := Encode(math.Inf(1)); err == nil {
		t.Error("an infinite number was written")
	}
	if err := Decode(nil, &everything{}); err == nil {
		t.Error("nothing was decoded")
	}
}

func mustParse(t *testing.T, text string) *syntax.Node {
	t.Helper()
	n, err := syntax.Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestATruthValueIsOneOfTwoWords(t *testing.T) {
	type lost struct {
		Drop bool `plan:"kind" words:"retransmit|drop"`
	}
	for text, want := range map[string]bool{"{}": false, "{kind: drop}": true, "{kind: retransmit}": false} {
		var got lost
		if err := Decode(mustParse(t, "at: "+text).At("at"), &got); err != nil || got.Drop != want {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
		written, err := Encode(got)
		if again := (lost{}); err != nil || Decode(written, &again) != nil || again != got {
			t.Errorf("%+v is written as %s and read as %+v (%v)", got, written.Flow(), again, err)
		}
	}
	err := Decode(mustParse(t, "at: {kind: true}").At("at"), &lost{})
	if err == nil || !strings.Contains(err.Error(), `unknown kind "true" (accepted: retransmit, drop)`) {
		t.Error(err)
	}
	if kind := SchemaOf(&lost{}).Properties.Get("kind"); len(kind.Enum) != 2 || kind.Default.Text != "retransmit" {
		t.Errorf("the schema is %+v", kind)
	}
}

func TestKeysThatSomebodyElseReadsAreAmongThoseAccepted(t *testing.T) {
	var got struct {
		Rate float64 `plan:"rate"`
	}
	err := Decode(mustParse(t, "rat: 1"), &got, "kind", "seed")
	if err == nil || !strings.Contains(err.Error(), "did you mean rate? (accepted: kind, rate, seed)") {
		t.Error(err)
	}
}

func TestAFractionInThePlaceOfAMapIsToldHowToWrite(t *testing.T) {
	var link struct {
		Loss struct {
			Kind        string  `plan:"kind"`
			Probability float64 `plan:"probability" unit:"fraction"`
		} `plan:"loss"`
	}
	err := Decode(mustParse(t, "loss: 1%"), &link)
	if err == nil || !strings.Contains(err.Error(), "did you mean {probability: 1%}?") {
		t.Error(err)
	}
}

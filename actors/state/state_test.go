package state_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
	"github.com/gradwire/gradwire/protos"
)

// account has an exported field of each kind that Of accepts, and no method State.
type account struct {
	Open    bool
	Count   int
	Small   int8
	Large   uint64
	Share   float32
	Balance float64
	Owner   string
	Secret  []byte
	Weights []float32
	Steps   []int32
	Grid    [2][3]uint16
	Shares  map[string]float64
	Ages    map[int]string
	Within  *account
	Lines   []line
	Unused  func() `state:"-"`
	hidden  int
}

type line struct {
	Text string
	At   *int
}

func save(t *testing.T, v any) *state.Saved {
	t.Helper()
	d, err := state.Of(v)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := state.Save(d)
	if err != nil {
		t.Fatal(err)
	}
	return statetest.Written(t, saved)
}

func restore(saved *state.Saved, v any) error {
	d, err := state.Of(v)
	if err != nil {
		return err
	}
	return saved.Restore(d, state.Into{Pool: &protos.TensorPool{}})
}

// plain replaces empty lists and maps by nil, as restoring does.
func plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 && v.CanSet() {
			v.SetZero()
		}
		for i := 0; v.Kind() == reflect.Slice && i < v.Len(); i++ {
			plain(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			plain(v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			plain(v.Elem())
		}
	}
}

func TestExportedFieldsComeBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	round := func(a, before account) bool {
		a.hidden, before.hidden = random.Int(), random.Int()
		if err := restore(save(t, &a), &before); err != nil {
			t.Error(err)
			return false
		}
		a.hidden = before.hidden
		plain(reflect.ValueOf(&a))
		return reflect.DeepEqual(a, before)
	}
	for range 300 {
		if a, b := drawn(random, 2), drawn(random, 2); !round(a, b) {
			t.Fatalf("%+v", a)
		}
	}
}

// drawn returns a random account.
func drawn(r *rand.Rand, deep int) account {
	a := account{
		Open:    r.IntN(2) == 0,
		Count:   int(r.Int64()) * (1 - 2*r.IntN(2)),
		Small:   int8(r.IntN(256) - 128),
		Large:   r.Uint64(),
		Share:   float32(r.NormFloat64()),
		Balance: math.Inf(1 - 2*r.IntN(2)),
		Owner:   fmt.Sprint("é\x00", r.Int()),
		Shares:  map[string]float64{},
		Ages:    map[int]string{},
	}
	for range r.IntN(4) {
		a.Secret = append(a.Secret, byte(r.Int()))
		a.Weights = append(a.Weights, float32(r.NormFloat64()))
		a.Steps = append(a.Steps, int32(r.Int()))
		a.Shares[strings.Repeat("x", r.IntN(3))] = r.Float64()
		a.Ages[r.IntN(9)-4] = "z"
		n := r.Int()
		a.Lines = append(a.Lines, line{"", nil}, line{"b", &n})
	}
	a.Grid[1][2] = uint16(r.Int())
	if deep > 0 && r.IntN(2) == 0 {
		within := drawn(r, deep-1)
		a.Within = &within
	}
	return a
}

func TestActorsThatDeclareNothingAreRefused(t *testing.T) {
	type (
		silent  struct{ count int }
		channel struct{ Count, Wake chan int }
		inner   struct{ Do func() }
		nested  struct{ Parts map[string][]inner }
		keyed   struct{ By map[[2]int]int }
		open    struct{ Any any }
		empty   struct{}
	)
	for _, c := range []struct {
		actor any
		want  string
	}{
		{&silent{count: 1}, "declares no state"},
		{silent{}, "no pointer to a struct"},
		{new(int), "no pointer to a struct"},
		{&channel{}, "channel.Count: a chan int cannot be saved"},
		{&nested{}, "nested.Parts: Do: a func() cannot be saved"},
		{&keyed{}, "keys of a map"},
		{&open{}, "a interface {} cannot be saved"},
	} {
		if _, err := state.Of(c.actor); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: got %v, want %q", c.actor, err, c.want)
		}
	}
	if _, err := state.Of(&silent{}); !errors.Is(err, state.ErrUndeclared) {
		t.Errorf("got %v", err)
	}
	if _, err := state.Of(&empty{}); err != nil {
		t.Errorf("an actor without fields: %v", err)
	}
}

// overriding is an actor with a method State in place of the inherited one.
type overriding struct {
	*holder
	count int
}

func (o overriding) State(s *state.State) {
	s.Part("holder", o.holder)
	state.Int(s, "count", &o.count)
}

func TestActorsThatInheritStateAndHaveOtherFieldsAreRefused(t *testing.T) {
	type (
		alone   struct{ *holder }
		pointer struct {
			*holder
			count int
		}
		value struct {
			count int
			holder
		}
		deep struct {
			count int
			alone
		}
		face struct {
			state.Declared
			count int
		}
	)
	for field, actors := range map[string][]any{
		"holder":   {&pointer{count: 1}, pointer{}, &value{count: 1}},
		"alone":    {&deep{count: 1}},
		"Declared": {&face{count: 1}},
		"":         {&alone{}, alone{}, &overriding{}, overriding{}, &holder{}},
	} {
		for _, a := range actors {
			want := fmt.Sprintf("a %T inherits the method State of its embedded %s, which omits its other fields: "+
				"declare State on it, with s.Part for the embedded value", a, field)
			if _, err := state.Of(a); field == "" && err != nil || field != "" && fmt.Sprint(err) != want {
				t.Errorf("%T: got %v, want %q", a, err, want)
			}
		}
	}
}

// older and newer are the same actor in two versions of a program.
type older struct{ Steps int }

type newer struct {
	Extra string
	Steps int64
}

func TestAnotherProgramReadsTheState(t *testing.T) {
	n := newer{Extra: "as made"}
	if err := restore(save(t, &older{Steps: 7}), &n); err != nil || n != (newer{"as made", 7}) {
		t.Errorf("%+v, %v", n, err)
	}
	err := restore(save(t, &newer{Extra: "x", Steps: 7}), &older{})
	if !errors.Is(err, state.ErrForeign) || !strings.Contains(err.Error(), `this program does not declare "Extra"`) {
		t.Errorf("an undeclared value: %v", err)
	}
	type narrow struct{ Steps int8 }
	if err := restore(save(t, &older{Steps: 300}), &narrow{}); !errors.Is(err, state.ErrForeign) {
		t.Errorf("a number that does not fit: %v", err)
	}
	type text struct{ Steps string }
	if err := restore(save(t, &older{Steps: 300}), &text{}); !errors.Is(err, state.ErrForeign) {
		t.Errorf("a number instead of a text: %v", err)
	}
}

// holder holds several references to one tensor.
type holder struct {
	model, same, view, part, none *protos.Tensor
	message                       any
	source                        *rand.PCG
}

func (h *holder) State(s *state.State) {
	s.Tensor("model", &h.model)
	s.Tensor("same", &h.same)
	s.Tensor("view", &h.view)
	s.Tensor("part", &h.part)
	s.Tensor("none", &h.none)
	s.Any("message", &h.message)
	s.Random("source", h.source)
}

func TestTensorsAreSharedAgain(t *testing.T) {
	pool := &protos.TensorPool{}
	model := pool.Copy([]float32{1, 2, 3, float32(math.NaN()), 5})
	view := model.View(1, 4)
	h := &holder{model: model, same: model.Retain(), view: view, part: view.View(1, 1), source: rand.NewPCG(3, 4),
		message: protos.NewMessage(&protos.Model{Step: 9}, model.Retain(), pool.Copy([]float32{7}))}
	h.source.Uint64()
	saved := save(t, h)
	again := &holder{none: pool.Get(3), source: rand.NewPCG(0, 0)}
	if err := saved.Restore(again, state.Into{Pool: pool}); err != nil {
		t.Fatal(err)
	}
	if got, want := again.source.Uint64(), h.source.Uint64(); got != want {
		t.Errorf("the stream goes on with %d, want %d", got, want)
	}
	if again.model != again.same || again.none != nil || len(again.part.Data) != 0 {
		t.Errorf("%+v", again)
	}
	if again.model.Data[0] = 8; &again.view.Data[0] != &again.model.Data[1] {
		t.Error("the view has other memory")
	}
	m := again.message.(*protos.Message)
	if m.Head.(*protos.Model).Step != 9 || m.Tensors[0] != again.model || m.Tensors[1].Data[0] != 7 {
		t.Errorf("%+v", m)
	}
	m.Release()
	again.part.Release()
	again.view.Release()
	if again.same.Release(); !again.model.Sole() {
		t.Error("somebody else holds the model")
	}
}

// Restoring a damaged state returns an error or yields other values. It never panics.
func TestDamagedStatesAreNoMoreThanErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	a := drawn(random, 3)
	pool := &protos.TensorPool{}
	model := pool.Copy([]float32{1, 2, 3})
	h := &holder{model: model, same: model.Retain(), view: model.View(0, 2), source: rand.NewPCG(3, 4),
		message: protos.NewMessage(&protos.Model{Step: 9}, model.Retain())}
	for _, saved := range []*state.Saved{save(t, &a), save(t, h)} {
		whole, err := proto.Marshal(saved.Root)
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			b := slices.Clone(whole)
			if random.IntN(4) == 0 {
				b = b[:random.IntN(len(b))]
			} else {
				for range 1 + random.IntN(3) {
					b[random.IntN(len(b))] ^= 1 << random.IntN(8)
				}
			}
			root := &protos.Declared{}
			if proto.Unmarshal(b, root) != nil {
				continue
			}
			damaged := &state.Saved{Root: root, Vectors: saved.Vectors[:random.IntN(len(saved.Vectors)+1)]}
			_ = restore(damaged, &account{})
			_ = damaged.Restore(&holder{source: rand.NewPCG(0, 0)}, state.Into{Pool: pool})
		}
	}
}

func TestSavingIsTheSameEachTime(t *testing.T) {
	if err := quick.Check(func(m map[string]float64, n map[int]string) bool {
		a := account{Shares: m, Ages: n}
		return proto.Equal(save(t, &a).Root, save(t, &a).Root)
	}, nil); err != nil {
		t.Error(err)
	}
}

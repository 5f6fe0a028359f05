package image_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/checkpoint/image"
)

type shape interface{ area() int }

type square struct{ side int }

func (s square) area() int { return s.side * s.side }

type circle struct{ radius *int }

func (c *circle) area() int { return 3 * *c.radius * *c.radius }

type node struct {
	Name  string
	next  *node
	Value *float32 // of a vector
	shape shape
}

// world has everything that an image is of.
type world struct {
	nodes   []node
	first   *node // one of nodes
	vector  []float32
	part    []float32 // of vector
	nothing []float32
	none    []float32 // empty, not nil
	byName  map[string]*node
	counts  map[square][]int
	any     []any
	random  *rand.Rand
	fixed   [3]struct{ text string }
	mu      sync.Mutex
	ask     func() int `image:"kept"`
	scratch []byte     `image:"-"`
	queue   []*node    `image:"loose"`
	samples []int
	row     []int // of samples
	self    *world
}

func fresh(samples []int) *world {
	w := &world{samples: samples, byName: map[string]*node{}, counts: map[square][]int{},
		random: rand.New(rand.NewPCG(1, 2)), nodes: make([]node, 2), nothing: []float32{1}}
	w.ask = func() int { return len(w.nodes) }
	w.byName["a"] = &w.nodes[0]
	return w
}

// live lets a world come into some state.
func live(w *world) {
	w.nodes = []node{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	w.vector = make([]float32, 5, 8)
	for i := range w.vector {
		w.vector[i] = float32(i)
	}
	w.part = w.vector[2:4]
	radius := 7
	w.nodes[0].next, w.nodes[1].next, w.nodes[2].next = &w.nodes[1], &w.nodes[2], &w.nodes[0]
	w.nodes[0].Value = &w.vector[3]
	w.nodes[0].shape, w.nodes[1].shape = square{4}, &circle{&radius}
	w.first = &w.nodes[1]
	w.nothing, w.none = nil, []float32{}
	w.byName = map[string]*node{"b": &w.nodes[1], "other": {Name: "other"}}
	w.counts[square{2}] = []int{1, 2}
	w.any = []any{1, "two", square{3}, w.first, nil, map[string]int{"x": 1}, []any{square{5}, &radius}, struct{}{}}
	w.random.Uint64()
	w.fixed[1].text = "text"
	w.mu.Lock()
	w.scratch = []byte("scratch")
	w.mu.Unlock()
	w.queue = []*node{w.first}
	w.row = w.samples[3:5]
	w.self = w
}

func given(t *testing.T, samples []int) *image.Given {
	t.Helper()
	g, err := image.NewGiven(&samples)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestValuesAreAsTheyWereWithWhatTheyShare(t *testing.T) {
	mine, yours := []int{9, 8, 7, 6, 5, 4}, []int{9, 8, 7, 6, 5, 4}
	before := fresh(mine)
	live(before)
	b, err := given(t, mine).Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	w := fresh(yours)
	if err := given(t, yours).Unmarshal(b, w); err != nil {
		t.Fatal(err)
	}
	for what, holds := range map[string]bool{
		"self":              w.self == w,
		"element":           w.first == &w.nodes[1] && w.nodes[2].next == &w.nodes[0],
		"element of floats": w.nodes[0].Value == &w.vector[3],
		"part":              &w.part[0] == &w.vector[2] && len(w.part) == 2 && cap(w.part) == cap(before.part),
		"capacity":          cap(w.vector) == cap(before.vector),
		"nil and empty":     w.nothing == nil && w.none != nil && len(w.none) == 0,
		"map of pointers":   len(w.byName) == 2 && w.byName["b"] == &w.nodes[1] && w.byName["other"].Name == "other",
		"map of slices":     slices.Equal(w.counts[square{2}], []int{1, 2}),
		"interface":         w.nodes[0].shape == shape(square{4}) && w.nodes[1].shape.area() == 3*49,
		"any":               w.any[0] == 1 && w.any[1] == "two" && w.any[2] == square{3} && w.any[3] == any(w.first),
		"any of maps":       w.any[5].(map[string]int)["x"] == 1 && w.any[4] == nil,
		"box in a box":      w.any[6].([]any)[0] == square{5},
		"pointer in a box":  w.any[6].([]any)[1] == any(w.nodes[1].shape.(*circle).radius),
		"random":            w.random.Uint64() == before.random.Uint64(),
		"array":             w.fixed[1].text == "text",
		"kept":              w.ask() == 3,
		"left out":          w.scratch == nil,
		"queue":             w.queue[0] == w.first,
		"given":             &w.samples[0] == &yours[0] && &w.row[0] == &yours[3],
	} {
		if !holds {
			t.Errorf("%s: not as it was: %+v", what, w)
		}
	}
	w.vector[3] = 77
	if *w.nodes[0].Value != 77 || w.part[1] != 77 {
		t.Error("what was shared is not")
	}
	if before.vector[3] == 77 {
		t.Error("it shares memory with what it is an image of")
	}
}

// An image of what an image was read into is the same again.
func TestImageOfAnImageIsEqual(t *testing.T) {
	samples := []int{9, 8, 7, 6, 5, 4}
	g := given(t, samples)
	before := fresh(samples)
	live(before)
	first, err := g.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	w := fresh(samples)
	if err := g.Unmarshal(first, w); err != nil {
		t.Fatal(err)
	}
	w.scratch = before.scratch
	second, err := g.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first, second) {
		t.Errorf("the first has %d bytes, the second %d, and they differ", len(first), len(second))
	}
}

func TestWhatCannotBeInAnImageIsNamed(t *testing.T) {
	type inner struct{ Done func() }
	type outer struct{ list []*inner }
	g := given(t, nil)
	for _, c := range []struct {
		of   any
		want string
	}{
		{&outer{[]*inner{{}, {Done: func() {}}}}, "inner.Done is a func"},
		{&struct{ wait chan int }{make(chan int)}, "wait is a chan"},
	} {
		if _, err := g.Marshal(c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %q", c.of, err, c.want)
		}
	}
	if _, err := g.Marshal(&outer{[]*inner{{}, nil}}); err != nil {
		t.Errorf("without functions: %v", err)
	}
}

func TestRootsAreApart(t *testing.T) {
	samples := []int{1, 2}
	g := given(t, samples)
	w := fresh(samples)
	for _, roots := range [][]any{{w, w}, {w, &samples[1]}} {
		if _, err := g.Marshal(roots...); err == nil || !strings.Contains(err.Error(), "a root of type") {
			t.Errorf("%T: %v", roots[1], err)
		}
	}
	b, err := g.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Unmarshal(b, &node{}); !errors.Is(err, image.ErrOther) {
		t.Errorf("into something else: %v", err)
	}
}

func TestNewObjectThatIsToKeepSomethingIsRefused(t *testing.T) {
	samples := []int{1, 2, 3, 4, 5}
	g := given(t, samples)
	type list struct{ worlds []*world }
	b, err := g.Marshal(&list{[]*world{fresh(samples)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Unmarshal(b, &list{}); !errors.Is(err, image.ErrOther) || !strings.Contains(err.Error(), "world.ask") {
		t.Errorf("a world without its function: %v", err)
	}
	if err := g.Unmarshal(b, &list{[]*world{fresh(samples)}}); err != nil {
		t.Error(err)
	}
}

func TestOtherImagesAreRefused(t *testing.T) {
	samples := []int{1, 2, 3, 4, 5, 6}
	g := given(t, samples)
	w := fresh(samples)
	live(w)
	b, err := g.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range [][]int{samples[1:], {1, 2, 3, 4, 5, 7}} {
		if err := given(t, other).Unmarshal(b, fresh(other)); !errors.Is(err, image.ErrOther) {
			t.Errorf("with samples %v: %v", other, err)
		}
	}
	for n := range len(b) {
		if err := g.Unmarshal(b[:n], fresh(samples)); !errors.Is(err, image.ErrOther) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	if err := g.Unmarshal(append(slices.Clone(b), 0), fresh(samples)); !errors.Is(err, image.ErrOther) {
		t.Errorf("with a byte too many: %v", err)
	}
}

// Memory of which several slices are parts is one object, however they overlap.
func TestOverlappingSlicesShareTheirMemory(t *testing.T) {
	type parts struct{ of [][]int }
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		memory := make([]int, 20)
		for i := range memory {
			memory[i] = random.Int()
		}
		var p parts
		var bounds [][2]int
		for range 1 + random.IntN(5) {
			low := random.IntN(20)
			high := low + 1 + random.IntN(20-low)
			bounds = append(bounds, [2]int{low, high})
			p.of = append(p.of, memory[low:high:high])
		}
		g := given(t, nil)
		b, err := g.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		var again parts
		if err := g.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p.of, again.of); diff != "" {
			t.Fatal(diff)
		}
		for i, a := range bounds {
			for k, c := range bounds {
				if low := max(a[0], c[0]); low < min(a[1], c[1]) && &again.of[i][low-a[0]] != &again.of[k][low-c[0]] {
					t.Fatalf("value %d of slices %v and %v is not shared", low, a, c)
				}
			}
		}
	}
}

// Objects are told by the places that lead to them, of which those of a queue are none: each keeps
// the function that it was made with.
func TestObjectsThatWaitInAQueueAreToldByTheirNames(t *testing.T) {
	type actor struct {
		state int
		own   func() string `image:"kept"`
	}
	type all struct {
		queue []*actor `image:"loose"` // comes first
		names map[string]*actor
	}
	made := func(order ...string) *all {
		a := &all{names: map[string]*actor{}}
		for _, name := range order {
			a.names[name] = &actor{own: func() string { return name }}
			a.queue = append(a.queue, a.names[name])
		}
		return a
	}
	before := made("a", "b", "c")
	for i, waits := range before.queue {
		waits.state = i + 1
	}
	g := given(t, nil)
	b, err := g.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	w := made("c", "a", "b")
	if err := g.Unmarshal(b, w); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c"} {
		if a := w.names[name]; a.own() != name || a.state != i+1 || w.queue[i] != a {
			t.Errorf("%s became %s, its state is %d, it waits at %d: %v", name, a.own(), a.state, i, w.queue[i] == a)
		}
	}
}

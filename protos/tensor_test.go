package protos_test

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/protos"
)

func expectPanic(t *testing.T, text string, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if reason, _ := recover().(string); !strings.Contains(reason, text) {
			t.Errorf("panic %q, want one with %q", reason, text)
		}
	}()
	do()
}

func TestOnlyTheHolderOfTheSoleReferenceIsSole(t *testing.T) {
	v := protos.NewTensor([]float32{1})
	if !v.Sole() {
		t.Error("a new tensor has another holder")
	}
	if v.Retain() != v || v.Sole() {
		t.Error("a retained tensor is sole")
	}
	v.Release()
	if !v.Sole() {
		t.Error("a tensor is not sole after the other reference was released")
	}
}

func TestTensorReleasedOrRetainedAfterItsLastReleasePanics(t *testing.T) {
	v := protos.NewTensor(nil)
	v.Release()
	expectPanic(t, "released more often", v.Release)
	w := (&protos.TensorPool{}).Get(3)
	w.Release()
	expectPanic(t, "retained after its last release", func() { w.Retain() })
}

func TestReleasedTensorIsHandedOutAgainForItsLengthOnly(t *testing.T) {
	var p protos.TensorPool
	v := p.Get(3)
	v.Retain().Release()
	if p.Get(3) == v {
		t.Error("a tensor with a reference left was handed out again")
	}
	v.Release()
	if w := p.Get(2); w == v || len(w.Data) != 2 {
		t.Error("a tensor was handed out for another length")
	}
	if w := p.Get(3); w != v || !w.Sole() {
		t.Error("a released tensor was not handed out again with one reference")
	}
}

func TestTensorOfNoPoolStaysWithItsOwner(t *testing.T) {
	data := []float32{1, 2}
	v := protos.NewTensor(data)
	v.Release()
	if data[0] != 1 || data[1] != 2 {
		t.Error("the data of a tensor of no pool were touched")
	}
}

func TestPoisonOverwritesWhatIsReleased(t *testing.T) {
	p := protos.TensorPool{Poison: true}
	v := p.Copy([]float32{1, 2, 3})
	late := v.Data
	v.Retain().Release()
	if late[0] != 1 {
		t.Error("poisoned while a reference is left")
	}
	v.Release()
	for i, x := range late {
		if !math.IsNaN(float64(x)) {
			t.Errorf("value %d is %v after the last release, want NaN", i, x)
		}
	}
}

func TestWritableCopiesOnlyWhatOthersHold(t *testing.T) {
	var p protos.TensorPool
	v := p.Copy([]float32{1, 2, 3})
	if p.Writable(v) != v {
		t.Error("a sole tensor was copied")
	}
	v.Retain()
	w := p.Writable(v)
	if w == v || !w.Sole() || !v.Sole() {
		t.Error("a shared tensor was not copied, or the reference to it not given back")
	}
	w.Data[0] = 7
	if v.Data[0] != 1 || w.Data[2] != 3 {
		t.Errorf("the original is %v and the copy %v", v.Data, w.Data)
	}
}

// The oracle counts the references of every tensor in a map.
func TestPoolNeverHandsOutATensorThatIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p protos.TensorPool
		held := map[*protos.Tensor]int{}
		var order []*protos.Tensor
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				v := p.Get(rapid.IntRange(0, 3).Draw(t, "length"))
				if held[v] > 0 {
					t.Fatal("handed out while it is held")
				}
				held[v] = 1
				order = append(order, v)
			},
			"retain": func(t *rapid.T) {
				if len(order) == 0 {
					t.Skip()
				}
				v := rapid.SampledFrom(order).Draw(t, "tensor")
				held[v.Retain()]++
				order = append(order, v)
			},
			"release": func(t *rapid.T) {
				if len(order) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(order)-1).Draw(t, "reference")
				v := order[i]
				order = append(order[:i], order[i+1:]...)
				held[v]--
				v.Release()
			},
			"": func(t *rapid.T) {
				for _, v := range order {
					if v.Sole() != (held[v] == 1) {
						t.Fatalf("sole is %v with %d references", v.Sole(), held[v])
					}
				}
			},
		})
	})
}

func TestReceiversOnManyGoroutinesGiveATensorBackOnce(t *testing.T) {
	const receivers, rounds = 8, 200
	p := protos.TensorPool{Poison: true}
	var group sync.WaitGroup
	for range rounds {
		v := p.Copy([]float32{1, 2, 3, 4})
		for range receivers {
			v.Retain()
			group.Go(func() {
				w := p.Writable(v)
				for i, x := range w.Data {
					if x != float32(i+1) {
						t.Errorf("value %d is %v", i, x)
					}
					w.Data[i] = -x
				}
				w.Release()
			})
		}
		v.Release()
	}
	group.Wait()
}

func TestTensorCycleAllocatesNothing(t *testing.T) {
	var p protos.TensorPool
	p.Get(100).Release()
	allocs := testing.AllocsPerRun(100, func() {
		v := p.Get(100)
		v.Retain().Release()
		p.Writable(v).Release()
	})
	if allocs != 0 {
		t.Errorf("%v allocations a cycle", allocs)
	}
}

func BenchmarkTensorCycle(b *testing.B) {
	var p protos.TensorPool
	b.ReportAllocs()
	for b.Loop() {
		p.Get(2084).Release()
	}
}

func TestViewHoldsWhatItIsAViewOf(t *testing.T) {
	p := protos.TensorPool{Poison: true}
	for _, whole := range []*protos.Tensor{p.Copy([]float32{1, 2, 3, 4}), protos.NewTensor([]float32{1, 2, 3, 4})} {
		v := whole.View(1, 3)
		if len(v.Data) != 2 || cap(v.Data) != 2 || &v.Data[0] != &whole.Data[1] {
			t.Fatalf("the view of values 1 and 2 is %v", v.Data)
		}
		if v.Sole() || whole.Sole() {
			t.Error("a view or what it is a view of may be written")
		}
		w := p.Writable(v.Retain())
		if w.Data[0] = 7; whole.Data[1] != 2 {
			t.Error("a view was written")
		}
		whole.Release()
		if v.Data[0] != 2 {
			t.Errorf("the view is %v after its whole was released", v.Data)
		}
		v.Release()
	}
	if p.Get(4).Data[0] == 1 {
		t.Error("the whole did not come back with the last view of it")
	}
	whole := p.Get(4)
	whole.View(0, 4).Release()
	if !whole.Sole() {
		t.Error("a released view still holds its whole")
	}
	if n := testing.AllocsPerRun(100, func() { whole.View(0, 2).Release() }); n != 0 {
		t.Errorf("%v allocations a view", n)
	}
}

// The oracle adds up what was released and not handed out again since the pool last forgot.
func TestPoolKeepsNoMoreThanItsBound(t *testing.T) {
	const bound = 4 * 100
	fresh := func(p *protos.TensorPool, n int) bool {
		v := p.Get(n)
		return testing.AllocsPerRun(1, func() { v.Release(); v = p.Get(n) }) > 0
	}
	p := protos.TensorPool{Bound: bound}
	if fresh(&p, 100) {
		t.Error("a tensor of the pool's bound is not kept")
	}
	if !fresh(&p, 101) {
		t.Error("a tensor beyond the pool's bound is kept")
	}
	var held []*protos.Tensor
	for n := range 40 {
		held = append(held, p.Get(10+n))
	}
	first := held[0]
	for _, v := range held {
		v.Release()
	}
	if p.Get(10) == first {
		t.Error("all lengths are kept, which are more than the bound together")
	}
	last := held[len(held)-1]
	if p.Get(len(last.Data)) != last {
		t.Error("what was released last is not kept")
	}
}

func TestAuditedPoolKnowsWhatNobodyGaveBack(t *testing.T) {
	p := &protos.TensorPool{Audited: true}
	held, back := p.Get(3), p.Get(4)
	view := p.Get(6).View(0, 2) // which alone holds the whole
	back.Release()
	for range 2 {
		p.Get(5)
	}
	p.Get(8).View(2, 3)
	if got := p.Forgotten(); !slices.Equal(got, []int{5, 5, 8}) {
		t.Errorf("forgotten are tensors of %v values", got)
	}
	if p.Get(4) != back {
		t.Error("a tensor that was given back is not handed out again")
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(view)
}

package safetensors

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTensorsThatDifferAreCountedByTheirBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1)), 0, 1e-45, 7}
	for range 200 {
		n := rng.IntN(40)
		a := make([]float32, n)
		for i := range a {
			a[i] = odd[rng.IntN(len(odd))]
		}
		b := append([]float32{}, a...)
		for range rng.IntN(4) {
			if n > 0 {
				b[rng.IntN(n)] = odd[rng.IntN(len(odd))]
			}
		}
		want, first := 0, -1
		for i := range a {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
				if want++; first < 0 {
					first = i
				}
			}
		}
		d, err := Diff(tensorsFile(t, a, nil), tensorsFile(t, b, nil))
		if err != nil || d.Elements != n || d.Differ != want || d.Equal() != (want == 0) || want > 0 &&
			d.First != first {
			t.Fatalf("%v and %v: %+v, %v; want %d, the first %d", a, b, d, err, want, first)
		}
	}
}

func tensorsFile(t *testing.T, params []float32, tensors []Tensor) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors, nil, params); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

func TestTensorsThatDifferAreNamed(t *testing.T) {
	two := []Tensor{{Name: "first", Shape: []int{2}}, {Name: "second", Shape: []int{3}, Offset: 2}}
	d, err := Diff(tensorsFile(t, []float32{1, 2, 3, 4, 5}, two), tensorsFile(t, []float32{1, 2, 3, 1, 7}, two))
	want := Difference{Elements: 5, Differ: 2, Largest: 3, First: 3, Tensor: "second", A: 4, B: 1}
	if diff := cmp.Diff(want, d); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	d, err = Diff(tensorsFile(t, make([]float32, 5), two), tensorsFile(t, make([]float32, 5), nil))
	if err != nil || d.Equal() || !strings.Contains(d.Shapes, `"first"`) {
		t.Errorf("other tensors: %+v, %v", d, err)
	}
}

func TestTensorsThatAreCutOffAreToldApart(t *testing.T) {
	whole := func() *bytes.Reader { return tensorsFile(t, make([]float32, 20_000), nil) }
	cut := func(n int64) *bytes.Reader {
		b := make([]byte, n)
		if _, err := whole().Read(b); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b)
	}
	for _, n := range []int64{4, 20, 200, 79_999} {
		if _, err := Diff(cut(n), whole()); err == nil || !strings.HasPrefix(err.Error(), "model A: ") {
			t.Errorf("A of %d bytes: %v", n, err)
		}
		if _, err := Diff(whole(), cut(n)); err == nil || !strings.HasPrefix(err.Error(), "model B: ") {
			t.Errorf("B of %d bytes: %v", n, err)
		}
	}
	long := bytes.NewReader(append(readBytes(t, whole()), 0))
	if _, err := Diff(whole(), long); err == nil ||
		!strings.Contains(err.Error(), "model B: there are bytes after") {
		t.Errorf("a model with something behind it: %v", err)
	}
}

func readBytes(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

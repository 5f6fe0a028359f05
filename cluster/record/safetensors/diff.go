package safetensors

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// Difference says how the parameters of two models differ.
type Difference struct {
	// Elements is how many the first model has; Differ how many have other bits in the second.
	Elements int
	Differ   int
	// Largest is the largest distance of two elements; NaN where one of them is none.
	Largest float64
	// Shapes says which tensors differ, where the models are not of one kind and nothing
	// else is compared.
	Shapes string
	// First is the index, in the flat vector, of the first element that differs, Tensor the name
	// of its tensor, and A and B are its values.
	First  int
	Tensor string
	A      float64
	B      float64
}

// Equal reports whether the models have the same tensors of the same bits.
func (d Difference) Equal() bool { return d.Shapes == "" && d.Differ == 0 }

// Diff compares two models by their bits, a piece at a
// time. Errors begin with "model A" or "model B".
func Diff(a, b io.Reader) (Difference, error) {
	one, errA := newReader(a)
	two, errB := newReader(b)
	if err := inModels(errA, errB); err != nil {
		return Difference{}, err
	}
	d := Difference{Elements: one.total, Shapes: differentShapes(one.tensors, two.tensors)}
	if d.Shapes != "" {
		return d, nil
	}
	for i := range one.total {
		x, errA := one.value(i)
		y, errB := two.value(i)
		if err := inModels(errA, errB); err != nil {
			return d, err
		}
		if x != y {
			d.add(one.tensors, i, math.Float32frombits(x), math.Float32frombits(y))
		}
	}
	return d, inModels(one.end(), two.end())
}

// inModels says which model the first of two errors is about.
func inModels(a, b error) error {
	switch {
	case a != nil:
		return fmt.Errorf("model A: %w", a)
	case b != nil:
		return fmt.Errorf("model B: %w", b)
	}
	return nil
}

// differentShapes names the first tensor that is not in both lists alike; empty if all are.
func differentShapes(a, b []Tensor) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("only B has tensor %q of shape %v", b[i].Name, b[i].Shape)
		case i >= len(b):
			return fmt.Sprintf("only A has tensor %q of shape %v", a[i].Name, a[i].Shape)
		case a[i].Name != b[i].Name || !slices.Equal(a[i].Shape, b[i].Shape):
			return fmt.Sprintf("tensor %d is %q of shape %v in A, %q of shape %v in B",
				i, a[i].Name, a[i].Shape, b[i].Name, b[i].Shape)
		}
	}
	return ""
}

// add counts a pair of elements of different bits.
func (d *Difference) add(tensors []Tensor, i int, x, y float32) {
	if d.Differ == 0 {
		d.First, d.A, d.B = i, float64(x), float64(y)
		for _, t := range tensors {
			if n, _ := size(t.Shape); i >= t.Offset && i < t.Offset+n {
				d.Tensor = t.Name
			}
		}
	}
	d.Differ++
	d.Largest = max(d.Largest, math.Abs(float64(x)-float64(y)))
}

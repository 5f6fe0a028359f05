package safetensors

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTensorsSurviveTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tensors []Tensor
		total := 0
		for i := range rapid.IntRange(1, 5).Draw(t, "tensors") {
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
			tensors = append(tensors, Tensor{Name: string(rune('a' + i)), Shape: append([]int{}, shape...),
				Offset: total})
			n, _ := size(shape)
			total += n
		}
		values := make([]float32, total)
		for i := range values {
			values[i] = rapid.Float32().Draw(t, "value")
		}
		var b bytes.Buffer
		if err := Write(&b, tensors, map[string]string{"seed": "1"}, values); err != nil {
			t.Fatal(err)
		}
		if b.Len()%4 != 0 {
			t.Errorf("%d bytes", b.Len())
		}
		got, back, metadata, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, values) || metadata["seed"] != "1" {
			t.Errorf("got %v, %v", got, metadata)
		}
		slices.SortStableFunc(tensors, compareTensors)
		if diff := cmp.Diff(tensors, back); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestTensorsFileIsTheDocumentedOne(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, []Tensor{{"w", []int{2, 1}, 0}}, nil, []float32{1, -2}); err != nil {
		t.Fatal(err)
	}
	header := `{"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	want := string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + "\x00\x00\x80\x3f\x00\x00\x00\xc0"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTensorsMustCoverTheParameters(t *testing.T) {
	for _, tensors := range [][]Tensor{
		{{"a", []int{2}, 0}},
		{{"a", []int{2}, 1}},
		{{"a", []int{2}, 0}, {"b", []int{2}, 1}},
		{{"a", []int{1}, 0}, {"a", []int{2}, 1}},
		{{"a", []int{-3}, 0}},
		{{"a", []int{1 << 20, 1 << 20, 1 << 20}, 0}},
		{{"__metadata__", []int{3}, 0}},
	} {
		if err := Write(&bytes.Buffer{}, tensors, nil, make([]float32, 3)); err == nil {
			t.Errorf("accepted %v", tensors)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, []Tensor{{"w", []int{2, 1}, 0}, {"b", []int{1}, 2}}, map[string]string{"k": "v"},
		[]float32{1, 2, 3}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-1])
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\x3d\x00\x00\x00\x00\x00\x00\x00" +
		`{"w":{"dtype":"F32","shape":[1073741824],"data_offsets":[0,4294967296]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		values, tensors, metadata, err := Read(bytes.NewReader(text))
		if err != nil || len(tensors) == 0 {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, tensors, metadata, values); err != nil {
			t.Fatal(err)
		}
		_, same, _, err := Read(&again)
		if diff := cmp.Diff(tensors, same); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

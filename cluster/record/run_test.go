package record

import (
	"bytes"
	"encoding/json"
	"math"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPointKeepsOrderAndValues(t *testing.T) {
	p := Point{{"z", "0.05"}, {"a", "20 %"}, {"m", "true"}, {"n", "01"}, {"o", ""}, {"q", `"x"`}, {"r", "NaN"},
		{"s", "-3e2"}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"z":0.05,"a":"20 %","m":true,"n":"01","o":"","q":"\"x\"","r":"NaN","s":-3e2}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var got Point
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAccuraciesAreTheLastAndTheHighest(t *testing.T) {
	d := Data{Curve: []Evaluation{{Accuracy: Float(math.NaN())}, {Accuracy: 0.9}, {Accuracy: 0.8}}}
	if final, best := d.Accuracies(); final != 0.8 || best != 0.9 {
		t.Errorf("final %v, best %v", final, best)
	}
	if final, best := (&Data{}).Accuracies(); !math.IsNaN(float64(final)) || !math.IsNaN(float64(best)) {
		t.Errorf("of nothing: final %v, best %v", final, best)
	}
}

func TestBuildIsReadFromSettingsWhereThereAreAny(t *testing.T) {
	if b := buildOf(nil, "portable"); b.Commit != "unknown" || b.Kernel != "portable" || b.Go == "" {
		t.Errorf("without information: %+v", b)
	}
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.modified", Value: "true"}, {Key: "GOAMD64", Value: "v3"}}}
	info.Main.Version = "v1.2.3"
	if b := buildOf(info, ""); b.Commit != "abc" || !b.Modified || b.GOAMD64 != "v3" || b.Version != "v1.2.3" {
		t.Errorf("got %+v", b)
	}
}

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
		if err := WriteTensors(&b, values, tensors, map[string]string{"seed": "1"}); err != nil {
			t.Fatal(err)
		}
		if b.Len()%4 != 0 {
			t.Errorf("%d bytes", b.Len())
		}
		got, back, metadata, err := ReadTensors(&b)
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
	if err := WriteTensors(&b, []float32{1, -2}, []Tensor{{"w", []int{2, 1}, 0}}, nil); err != nil {
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
		if err := WriteTensors(&bytes.Buffer{}, make([]float32, 3), tensors, nil); err == nil {
			t.Errorf("accepted %v", tensors)
		}
	}
}

func FuzzReadTensors(f *testing.F) {
	var b bytes.Buffer
	if err := WriteTensors(&b, []float32{1, 2, 3}, []Tensor{{"w", []int{2, 1}, 0}, {"b", []int{1}, 2}},
		map[string]string{"k": "v"}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-1])
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\x3d\x00\x00\x00\x00\x00\x00\x00" +
		`{"w":{"dtype":"F32","shape":[1073741824],"data_offsets":[0,4294967296]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		values, tensors, metadata, err := ReadTensors(bytes.NewReader(text))
		if err != nil || len(tensors) == 0 {
			return
		}
		var again bytes.Buffer
		if err := WriteTensors(&again, values, tensors, metadata); err != nil {
			t.Fatal(err)
		}
		_, same, _, err := ReadTensors(&again)
		if diff := cmp.Diff(tensors, same); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

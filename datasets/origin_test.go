package datasets_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/csv"
	"github.com/gradwire/gradwire/datasets/libsvm"
	"github.com/gradwire/gradwire/datasets/npy"
)

// columns are integers that float32 cannot tell apart, and how many of their last digits count.
var columns = map[string][]int64{
	"milliseconds": {1700000000243, 1700000000606, 1700000000557, 1700000000133},
	"nanoseconds":  {1700000000000000243, 1700000000000000606, 1700000000000000557, 1700000000000000133},
	"negative":     {-1700000000243, -1700000000606, -1700000000557, -1700000000133},
	"seconds":      {1700000243, 1700000606, 1700000557, 1700000133},
}

// stored reads a column of integers, beside a column of small numbers, in each format that can hold it.
func stored(t *testing.T, values []int64) map[string]func() (*datasets.Source, error) {
	t.Helper()
	table, sparse := "a,t,label\n", ""
	var integers, floats, labels []any
	for i, v := range values {
		table += fmt.Sprintf("%d,%d,%s\n", i, v, string("xy"[i%2]))
		sparse += fmt.Sprintf("%d 1:%d 2:%d\n", i%2, i, v)
		integers, floats = append(integers, int64(i), v), append(floats, float64(i), float64(v))
		labels = append(labels, i%2)
	}
	y := put(t, array("|u1", fmt.Sprintf("(%d,)", len(values)), labels...))
	shape := fmt.Sprintf("(%d, 2)", len(values))
	load := func(content []byte) func() (*datasets.Source, error) {
		return func() (*datasets.Source, error) { return npy.Load(npy.Pairs{X: put(t, content), Y: y}) }
	}
	return map[string]func() (*datasets.Source, error){
		"csv": func() (*datasets.Source, error) {
			return csv.Load(put(t, []byte(table)), "", csv.Options{Label: csv.Last})
		},
		"libsvm": func() (*datasets.Source, error) { return libsvm.Load(put(t, []byte(sparse)), "", 0) },
		"i8":     load(array("<i8", shape, integers...)),
		"f8":     load(array("<f8", shape, floats...)),
	}
}

// What is scaled is what was written, whatever the format, as far as that format's numbers go.
func TestColumnsAreScaledBeforeTheyAreNarrowed(t *testing.T) {
	for name, values := range columns {
		for format, load := range stored(t, values) {
			if name == "nanoseconds" && format == "f8" {
				continue // a float64 has not the digits either
			}
			source, err := load()
			if err == nil {
				err = source.Validate()
			}
			if err != nil {
				t.Errorf("%s, %s: %v", name, format, err)
				continue
			}
			datasets.FitScaler(datasets.MinMax, source.Pool, nil).Apply(source.Pool)
			lowest, highest := slices.Min(values), slices.Max(values)
			for i, v := range values {
				want := float64(v-lowest) / float64(highest-lowest)
				if got := float64(source.Pool.X[2*i+1]); math.Abs(got-want) > 1e-6 {
					t.Errorf("%s, %s: %d becomes %v, want %v", name, format, v, got, want)
				}
			}
		}
	}
}

// A file for a saved model, with as few samples as one, is scaled bit for bit as in training.
func TestOtherSamplesHaveTheOriginsOfTheTrainingSet(t *testing.T) {
	for _, scaling := range []datasets.Scaling{datasets.MinMax, datasets.Standard, datasets.LogMinMax} {
		source, err := csv.Load(
			put(t, []byte("a,t,label\n0.1,1700000000243,x\n0.7,1700000000606,y\n0.4,1700000000557,x\n")),
			"",
			csv.Options{Label: csv.Last},
		)
		if err != nil {
			t.Fatal(err)
		}
		layout := source.Pool.Layout
		scaler := datasets.FitScaler(scaling, source.Pool, nil)
		scaler.Apply(source.Pool)
		others, err := csv.ReadOther(datasets.Other{Text: strings.NewReader("t,a\n1700000000606,0.7\n"), Inputs: 2,
			Classes: source.Pool.Classes, Layout: layout, Origin: scaler.Origins()}, csv.Options{Label: csv.Last})
		if err != nil {
			t.Fatal(err)
		}
		scaler.Apply(others.Set)
		if !slices.Equal(others.Set.X, source.Pool.Row(1)) {
			t.Errorf("%s: %v, in training %v", scaling, others.Set.X, source.Pool.Row(1))
		}
	}
}

// Columns that float32 serves well are held as ever, so that runs on them keep their digests.
func TestColumnsThatFloat32ServesHaveNoOrigin(t *testing.T) {
	for name, values := range map[string][]float64{
		"fractions": {0.1, 0.7, 0.3}, "large": {1e6 + 1, 5, 3e9 + 7}, "constant": {1700000000243, 1700000000243},
		"errors of rounding": {0.3, 0.1 + 0.2, 0.3}, "whole": {16777216, 1, 2}, "temperatures": {36.6, 37.1, 39.4},
		"bytes": {0, 1, 5, 30, 491, 1, 1, 8, 12, 1379963888},
	} {
		var p datasets.Precision
		for _, v := range values {
			p.Add(v, 0)
		}
		if o := p.Origin(); o != 0 {
			t.Errorf("%s: origin %v", name, o)
		}
	}
}

func TestChannelsMoveToTheFront(t *testing.T) {
	content := array("|u1", "(2, 2, 1, 3)", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	source, err := npy.Load(npy.Pairs{X: put(t, content), Y: put(t, array("|u1", "(2,)", 0, 1)),
		Layout: npy.Layout{Order: datasets.ChannelsLast}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(source.Pool.X, []float32{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}) ||
		!slices.Equal(source.Pool.Shape, []int{3, 2, 1}) {
		t.Errorf("%v of shape %v", source.Pool.X, source.Pool.Shape)
	}
	err = datasets.CheckShape("a", []int{6, 5, 3}, "the model's", []int{3, 6, 5})
	if err == nil || !strings.Contains(err.Error(), "[6 5 3]") || !strings.Contains(err.Error(), "[3 6 5]") ||
		!strings.Contains(err.Error(), "layout: channels-last") {
		t.Errorf("error %v", err)
	}
	for _, shape := range [][]int{nil, {90}, {3, 6, 5}, {1, 3, 6, 5}} {
		if err := datasets.CheckShape("a", shape, "the model's", []int{3, 6, 5}); err != nil {
			t.Error(err)
		}
	}
}

package partition

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets"
)

func grouped(names []string, groups ...int32) *datasets.Set {
	return &datasets.Set{Name: "s", Inputs: 1, X: make([]float32, len(groups)), Y: make([]int32, len(groups)),
		Classes: []string{"c"}, Groups: groups, GroupNames: names}
}

// Each row is looked up by itself: its worker is the one who has its value.
func TestEachWorkerSeesTheRowsOfItsValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		names := []string{"a", "b", "c", "d", "e"}[:1+rng.IntN(5)]
		groups := rng.Perm(len(names))
		rows := make([]int32, len(groups)+rng.IntN(40))
		for i := range rows {
			rows[i] = int32(rng.IntN(len(names)))
			if i < len(groups) {
				rows[i] = int32(groups[i])
			}
		}
		workers := slices.Clone(names)
		rng.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] })
		split, of := Column{Name: "site"}, func(value string) string { return value }
		if rng.IntN(2) == 0 {
			workers = []string{"w0", "w1"}[:1+rng.IntN(min(2, len(names)))]
			of = func(value string) string { return workers[slices.Index(names, value)%len(workers)] }
			for _, w := range workers {
				values := ColumnValues{Worker: w}
				for _, v := range names {
					if of(v) == w {
						values.Values = append(values.Values, v)
					}
				}
				split.Values = append(split.Values, values)
			}
		}
		got, err := split.Assign(grouped(names, rows...), workers, 1)
		if err != nil {
			t.Fatal(err)
		}
		for w, name := range workers {
			var want []int32
			for row, g := range rows {
				if of(names[g]) == name {
					want = append(want, int32(row))
				}
			}
			if !slices.Equal(got[w], want) {
				t.Fatalf("%s of %q by %v of %q: %v, want %v", name, workers, rows, names, got[w], want)
			}
		}
	}
}

func TestValuesAndWorkersThatDoNotMatchAreTold(t *testing.T) {
	set := grouped([]string{"fra", "lon"}, 0, 1, 0)
	for _, c := range []struct {
		set     *datasets.Set
		values  []ColumnValues
		workers []string
		want    string
	}{
		{set, nil, []string{"fra"}, "no worker is given the samples whose site is lon; without workers, the values " +
			"must be the workers' names, which are fra; workers: {NAME: [VALUE]} says whose a value is"},
		{set, nil, []string{"fra", "lon", "rom"}, "no training sample's site is rom, which worker rom is to see; " +
			"there are fra, lon"},
		{set, []ColumnValues{{"a", []string{"fra"}}, {"b", nil}}, []string{"a", "b"}, `worker "b" is given no value`},
		{set, []ColumnValues{{"a", []string{"fra"}}}, []string{"a", "b"}, `"b" is given no value; workers names`},
		{set, []ColumnValues{{"x", []string{"fra"}}}, []string{"a"}, `unknown worker "x"; there are ["a"]`},
		{set, []ColumnValues{{"a", []string{"fra"}}, {"b", []string{"lon", "fra"}}}, []string{"a", "b"},
			`the value "fra" is given to a and to b; one worker sees a sample`},
		{set, []ColumnValues{{"a", []string{"fra"}}}, []string{"a"}, "no worker is given the samples whose"},
		{grouped([]string{"fra", "lon"}, 0, 0), nil, []string{"fra", "lon"}, `leaves worker "lon" without samples`},
		{&datasets.Set{Name: "s"}, nil, []string{"a"}, `data set "s" has no column to split by`},
	} {
		_, err := Column{Name: "site", Values: c.values}.Assign(c.set, c.workers, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestEachWorkerSeesTheRowsOfItsFile(t *testing.T) {
	got, err := File{}.Assign(grouped([]string{"a", "b", "c"}, 2, 0, 1, 0, 2), []string{"c", "a", "b"}, 1)
	if err != nil || !slices.EqualFunc(got, [][]int32{{0, 4}, {1, 3}, {2}}, slices.Equal) {
		t.Errorf("%v, %v", got, err)
	}
	for _, c := range []struct {
		set     *datasets.Set
		workers []string
		want    string
	}{
		{grouped([]string{"a"}, 0, 0), []string{"a", "b"}, `worker "b" has no file; there are files for a`},
		{grouped([]string{"a", "d"}, 0, 1), []string{"a", "b"}, `there is a file for "d", who is no worker`},
		{grouped(nil), []string{"a"}, "the data set is not of several files"},
		{grouped([]string{"a", "b"}, 0, 0), []string{"a", "b"}, `leaves worker "b" without samples`},
		{grouped([]string{"a"}, 0), nil, "no workers"},
	} {
		if _, err := (File{}).Assign(c.set, c.workers, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

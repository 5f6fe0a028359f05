package figure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/record"
)

func TestQuantilesAgreeWithSortedValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		var values []float64
		w := NewWorkloads(1)
		u := record.Update{Node: "n"}
		for range 1 + rng.IntN(3) {
			for range 1 + rng.IntN(5) {
				c := record.Count{Value: uint64(rng.IntN(6)), Count: uint64(rng.IntN(9))}
				u.Staleness.Counts = append(u.Staleness.Counts, c)
				for range c.Count {
					values = append(values, float64(c.Value))
				}
			}
		}
		w.Add(0, 1, []record.Update{u})
		c := w.Sorted()[0].Staleness
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		if got, want := c.Mean(), sum/float64(len(values)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("mean %g, want %g", got, want)
		}
		for _, share := range []float64{0.01, 0.25, 0.5, 0.75, 0.99, 1} {
			rank := int(math.Ceil(share*float64(len(values)) - 1e-9))
			if got, want := c.Quantile(share), values[max(rank, 1)-1]; got != want {
				t.Fatalf("quantile %g of %v is %g, want %g", share, values, got, want)
			}
		}
	}
}

// U3: a constant wait has that length at every quantile, and its mean is in the box.
func TestQuantilesOfAConstantWaitAreThatWait(t *testing.T) {
	c := record.NewCollector(record.Config{Nodes: []string{"n"}, Trains: []bool{true}})
	for range 100 {
		c.Observe(0, 0, actors.Event{Kind: actors.Waited, Cause: "parameters", Duration: 200 * time.Millisecond})
	}
	d, err := c.Close(0)
	if err != nil {
		t.Fatal(err)
	}
	if b := d.Updates[0].Waiting[0].Buckets[0]; b.High-b.Low > 0.01*b.Low {
		t.Errorf("a bucket from %g to %g", b.Low, b.High)
	}
	w := NewWorkloads(1)
	w.Add(0, 100, d.Updates)
	waits := w.Sorted()[0].Waiting
	for _, share := range []float64{0.01, 0.25, 0.5, 0.75, 0.99} {
		if got := waits.Quantile(share); math.Abs(got-0.2) > 1e-12 {
			t.Errorf("quantile %g is %g, want 0.2", share, got)
		}
	}
	if mean := waits.Mean(); mean < waits.Quantile(0.25)-1e-12 || mean > waits.Quantile(0.75)+1e-12 {
		t.Errorf("the mean %g is not in the box", mean)
	}
}

func TestWorkersBeyondTheLimitAreCountedTogether(t *testing.T) {
	w := NewWorkloads(1)
	var updates []record.Update
	for i := range maxWorkers + 1 {
		updates = append(updates, record.Update{Node: fmt.Sprint(i), Updates: 2,
			Staleness: record.Staleness{Counts: []record.Count{{Value: 1, Count: 2}}}})
	}
	w.Add(0, 10, updates)
	all := w.Sorted()
	if len(all) != 1 || all[0].node != record.Everyone || all[0].Updates != 2*(maxWorkers+1) ||
		all[0].Staleness.Count() != 2*(maxWorkers+1) {
		t.Errorf("%d workloads, the first %+v", len(all), all[0])
	}
}

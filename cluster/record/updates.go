package record

import (
	"fmt"
	"math"
)

// Update is what a worker has done.
type Update struct {
	Node string `json:"node"`
	// Steps are the batches it computed a gradient of, Samples those in them, Updates
	// its gradients that a model has taken in.
	Steps     uint64    `json:"steps"`
	Samples   uint64    `json:"samples"`
	Updates   uint64    `json:"updates"`
	Staleness Staleness `json:"staleness"`
	// LastStep is the instant of its last step in seconds, 0 if it made none.
	LastStep float64 `json:"last_step_s,omitempty"`
	// Age is how old the models of others were when it merged them into its own: the steps that
	// their node had made since it sent them. It is nil for nodes that merge none.
	Age *Staleness `json:"age,omitempty"`
	// Waiting is sorted by cause.
	Waiting []Waiting `json:"waiting"`
}

// Staleness is how old a worker's updates were when they were applied, in versions.
type Staleness struct {
	Mean float64 `json:"mean"`
	// P50 and P99 are the smallest values that half and 99 % of the updates do not exceed.
	P50 uint64 `json:"p50"`
	P99 uint64 `json:"p99"`
	Max uint64 `json:"max"`
	// Counts are sorted by value; values from 65,536 on are rounded down to 8 leading bits.
	Counts []Count `json:"counts"`
}

// Count says how often a value occurred.
type Count struct {
	Value uint64 `json:"value"`
	Count uint64 `json:"count"`
}

// Waiting is the time a worker stood idle for one cause.
type Waiting struct {
	Cause string `json:"cause"`
	Count uint64 `json:"count"`
	// Total is in seconds.
	Total float64 `json:"total_s"`
	// Buckets are sorted and not empty. They are at most 1 % wide; in records before version 2,
	// 12.5 %.
	Buckets []Bucket `json:"buckets"`
}

// Bucket counts waits of at least Low and less than High seconds.
type Bucket struct {
	Low   float64 `json:"low_s"`
	High  float64 `json:"high_s"`
	Count uint64  `json:"count"`
	// Total is the sum of the waits in seconds.
	Total float64 `json:"total_s"`
}

var updateList = list{
	name: "updates", columns: "node,quantity,cause,low,high,count,total",
	of: func(d *Data) List { return listOf(d.Updates) }, rows: updateRows,
}

// Where implements Element.
func (u *Update) Where() string { return fmt.Sprintf("worker %q", u.Node) }

func (u *Update) check() error {
	for _, w := range u.Waiting {
		for _, b := range w.Buckets {
			if !within(b.Low, 0, longest) || !within(b.High, b.Low, longest) || !within(b.Total, 0, math.MaxFloat64) {
				return fmt.Errorf("waits of %g to %g s, %g s in all, cannot be", b.Low, b.High, b.Total)
			}
		}
	}
	return nil
}

// updateRows writes a row for each bucket that is not empty: for the quantity "staleness", in
// versions, low = high is the value; for "waiting", in seconds, the bucket holds low and ends
// before high. The total is the sum of the bucket's values. Where no model has versions, low, high
// and total of the staleness are empty.
func updateRows(w *rowWriter, r *Run, d *Data) {
	for _, u := range d.Updates {
		for _, c := range u.Staleness.Counts {
			if r.Serverless() && u.Staleness.Max == 0 {
				w.row(u.Node, "staleness", "", "", "", c.Count, "")
			} else {
				w.row(u.Node, "staleness", "", c.Value, c.Value, c.Count, c.Value*c.Count)
			}
		}
		for _, cause := range u.Waiting {
			for _, k := range cause.Buckets {
				w.row(u.Node, "waiting", cause.Cause, k.Low, k.High, k.Count, k.Total)
			}
		}
	}
}

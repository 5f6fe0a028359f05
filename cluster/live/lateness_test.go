package live

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The oracle sorts.
func TestLatenessAgreesWithSortedData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-5, 1<<rapid.IntRange(1, 42).Draw(t, "bits")).Draw(t, "lateness"))
		}), 1, 200).Draw(t, "data")
		var l lateness
		for i, d := range data {
			l.add(d)
			data[i] = max(d, 0)
		}
		slices.Sort(data)
		s := l.summary()
		if s.Count != int64(len(data)) || s.Max != data[len(data)-1] {
			t.Fatalf("%+v of %v", s, data)
		}
		for _, q := range []struct {
			got  time.Duration
			rank int
		}{{s.P50, (len(data) + 1) / 2}, {s.P99, (99*len(data) + 99) / 100}} {
			exact := data[q.rank-1]
			if q.got < exact || q.got > exact+exact/8+8 {
				t.Fatalf("quantile %v, exactly %v: not at most an eighth above", q.got, exact)
			}
		}
	})
}

func TestBucketsFollowOneAnother(t *testing.T) {
	for b := range 8*40 - 1 {
		if bucket(upper(b)) != b || bucket(upper(b)+1) != b+1 {
			t.Fatalf("bucket %d ends at %v, which is in bucket %d; the next value is in %d",
				b, upper(b), bucket(upper(b)), bucket(upper(b)+1))
		}
	}
	if fmt.Sprint((&lateness{}).summary()) != "{0 0s 0s 0s}" {
		t.Error("lateness of nothing is not zero")
	}
}

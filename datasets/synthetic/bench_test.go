package synthetic_test

import (
	"testing"

	"github.com/gradwire/gradwire/datasets/synthetic"
)

func BenchmarkTraffic(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		synthetic.Traffic(1, 10_000, 93)
	}
}

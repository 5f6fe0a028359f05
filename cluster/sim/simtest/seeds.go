package simtest

import (
	"fmt"
	"os"
	"testing"
)

// Seeds are those of a test of random worlds, from the first one up to the last: 1 to number,
// unless GRADWIRE_SEEDS says from which on, and how many, as in 501:1000.
func Seeds(t testing.TB, number uint64) (first, last uint64) {
	t.Helper()
	first = 1
	if s := os.Getenv("GRADWIRE_SEEDS"); s != "" {
		if _, err := fmt.Sscanf(s, "%d:%d", &first, &number); err != nil {
			t.Fatalf("GRADWIRE_SEEDS=%s: %v", s, err)
		}
	}
	return first, first + number - 1
}

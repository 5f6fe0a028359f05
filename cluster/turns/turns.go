// Package turns spreads heavy tests over consecutive runs of CI.
//
// If GRADWIRE_TURN is unset or empty, every test runs. If it is a number, each of n tests that
// share turns runs in one turn of n and is skipped in the others. .ci/run sets the number; n
// consecutive turns run all n tests.
package turns

import (
	"os"
	"strconv"
	"testing"
)

// variable names the environment variable with the number of the turn.
const variable = "GRADWIRE_TURN"

// Take skips a heavy test unless its turn has come. Tests that share n turns number themselves from
// 0 to n-1, so that each turn lasts about as long as the others.
func Take(t testing.TB, number, n int) {
	t.Helper()
	if n < 1 || number < 0 || number >= n {
		t.Fatalf("test %d of %d turns", number, n)
	}
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	turn, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s=%q; want a whole number from 0, or nothing to run every test", variable, text)
	}
	if mine := uint64(n-number) % uint64(n); turn%uint64(n) != mine {
		t.Skipf("runs in turn %d of 0 to %d, and this is turn %d; %s= runs every test",
			mine, n-1, turn%uint64(n), variable)
	}
}

// Row skips a row of a table unless its turn has come: every n-th row runs in the same turn. A
// table with fewer rows than n takes fewer turns, so that every turn runs at least one row.
func Row(t testing.TB, row, rows, n int) {
	t.Helper()
	n = min(n, rows)
	Take(t, row%n, n)
}

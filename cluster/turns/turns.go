// Package turns spreads heavy tests over consecutive runs of CI.
//
// If GRADWIRE_TURN is unset or empty, every test runs. If it is a number, a test that is one of n
// runs in every n-th turn and is skipped in the others. .ci/run sets it; n consecutive turns run
// everything.
package turns

import (
	"os"
	"strconv"
	"testing"
)

// variable is the environment variable with the number of the turn.
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

// Row skips a row of a table of that many rows, unless it is among every n-th row that runs in this
// turn. At least one row runs in every turn, however short the table.
func Row(t testing.TB, row, rows, n int) {
	t.Helper()
	n = min(n, rows)
	Take(t, row%n, n)
}

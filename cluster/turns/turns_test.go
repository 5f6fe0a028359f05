package turns_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/turns"
)

const variable = "GRADWIRE_TURN"

// runs reports whether take lets a test run in a turn.
func runs(t *testing.T, turn string, take func(t testing.TB)) (ran bool) {
	t.Helper()
	t.Setenv(variable, turn)
	t.Run("", func(t *testing.T) {
		take(t)
		ran = true
	})
	return ran
}

func TestEveryTestRunsOnceInConsecutiveTurns(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for _, first := range []int{0, 7, 268435455} {
			for number := range n {
				ran := 0
				for turn := first; turn < first+n; turn++ {
					if runs(t, strconv.Itoa(turn), func(t testing.TB) { turns.Take(t, number, n) }) {
						ran++
					}
				}
				if ran != 1 {
					t.Errorf("test %d of %d ran %d times in turns %d to %d", number, n, ran, first, first+n-1)
				}
			}
		}
	}
}

func TestEveryTurnHasARowOfEveryTable(t *testing.T) {
	for rows := 1; rows <= 7; rows++ {
		for n := 1; n <= 5; n++ {
			ran := make([]int, rows)
			for turn := range n {
				some := false
				for row := range rows {
					if runs(t, strconv.Itoa(turn), func(t testing.TB) { turns.Row(t, row, rows, n) }) {
						ran[row]++
						some = true
					}
				}
				if !some {
					t.Errorf("no row of %d runs in turn %d of %d", rows, turn, n)
				}
			}
			for row, times := range ran {
				if times == 0 || n <= rows && times != 1 {
					t.Errorf("row %d of %d ran %d times in %d turns", row, rows, times, n)
				}
			}
		}
	}
}

func TestWithoutATurnEveryTestRuns(t *testing.T) {
	for number := range 3 {
		if !runs(t, "", func(t testing.TB) { turns.Take(t, number, 3) }) {
			t.Errorf("test %d was skipped", number)
		}
	}
}

// failing records the message of Fatalf instead of failing the test.
type failing struct {
	testing.TB
	text string
}

func (*failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestMistakesFailATest(t *testing.T) {
	for _, x := range []struct {
		turn      string
		number, n int
		want      string
	}{
		{"-1", 0, 3, `GRADWIRE_TURN="-1"; want a whole number from 0`},
		{"c96b8915", 0, 3, `GRADWIRE_TURN="c96b8915"`},
		{"1.5", 0, 3, `GRADWIRE_TURN="1.5"`},
		{"", 3, 3, "test 3 of 3 turns"},
		{"0", -1, 3, "test -1 of 3 turns"},
		{"0", 0, 0, "test 0 of 0 turns"},
	} {
		t.Setenv(variable, x.turn)
		f := &failing{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			turns.Take(f, x.number, x.n)
		}()
		<-done
		if !strings.Contains(f.text, x.want) {
			t.Errorf("turn %q, test %d of %d: %q, want %q", x.turn, x.number, x.n, f.text, x.want)
		}
	}
}

package registry_test

import (
	"flag"
	"fmt"
	"testing"
)

var everyTarget = flag.Bool("registry.orders", false, "TestOrders tries each event at each voter, 19,440 cases")

// steps are the events whose orders TestOrders tries.
var steps = []string{"crash", "restart", "cut", "heal", "lost", "timer"}

// orders returns all permutations of the numbers below n.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, order := range orders(n - 1) {
		for at := range n {
			next := append([]int{}, order[:at]...)
			next = append(next, n-1)
			all = append(all, append(next, order[at:]...))
		}
	}
	return all
}

// TestOrders plays all orders of six events at three voters. The interval between events is shorter
// than an election.
func TestOrders(t *testing.T) {
	if testing.Short() {
		t.Skip("tries many orders, on one goroutine")
	}
	cases := 0
	for n, order := range orders(len(steps)) {
		for targets := range 27 {
			if !*everyTarget && targets != n%27 {
				continue
			}
			cases++
			if wrong := playOrder(order, targets); wrong != "" {
				t.Fatalf("order %v, targets %d: %s", order, targets, wrong)
			}
		}
	}
	t.Logf("%d cases", cases)
}

func playOrder(order []int, targets int) (wrong string) {
	defer func() {
		if cause := recover(); cause != nil {
			wrong = fmt.Sprintf("panic: %v", cause)
		}
	}()
	w := newWorld(uint64(targets), 3, plant{})
	for _, p := range w.processes {
		w.start(p)
	}
	w.await()
	if !w.agree() {
		return "three voters do not agree at first: " + w.describe()
	}
	at := []int{targets % 3, targets / 3 % 3, targets / 9}
	for _, n := range order {
		for _, p := range w.up() {
			w.issue(p)
		}
		w.step(steps[n], at)
		w.run(2*tick + tick/2)
	}
	w.recover()
	if len(w.wrong) > 0 {
		return w.wrong[0]
	}
	wrong, undecided := w.linearizable()
	if undecided > 0 {
		wrong = "Porcupine does not decide"
	}
	return wrong
}

// step makes one event happen. Crash and restart have the same target.
func (w *world) step(name string, at []int) {
	switch name {
	case "crash":
		w.crash(w.processes[at[0]])
	case "restart":
		w.strike(fault{kind: "restart", target: at[0]})
	case "cut":
		w.strike(fault{kind: "cut", target: 1 << at[1]})
	case "heal":
		w.strike(fault{kind: "heal"})
	case "lost":
		w.loseNext = 1
	case "timer": // one voter's clock jumps ahead by two election timeouts
		p := w.processes[at[2]]
		for range 20 {
			if p.member != nil {
				p.member.Tick()
				w.deliverReady(p)
			}
		}
	}
}

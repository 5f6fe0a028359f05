package holders_test

import (
	"testing"
	"time"
)

// An attempt is known to every successor until a run has finished, or its process has left in
// order.
func TestDeathsOfProcessesAreCountedUntilARunHasFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c", "d")
		defer c.close()
		owner := c.at("a")
		owner.submit("1")
		attempt := func(want int) {
			t.Helper()
			if dead := owner.Deaths("1"); len(dead) != want {
				t.Errorf("%d processes have died before %s, want %d: %v", len(dead), owner.name, want, dead)
			}
			if err := owner.Attempt(t.Context(), "1"); err != nil {
				t.Fatal(err)
			}
		}
		die := func() {
			t.Helper()
			before := owner.name
			c.kill(before)
			owner = c.successor("1", before)
			c.start(before)
		}
		attempt(0)
		die()
		attempt(1)
		owner.Advanced("1")
		time.Sleep(time.Second)
		die()
		attempt(2)
		if dead := owner.Deaths("1"); dead[0].Advanced || !dead[1].Advanced {
			t.Errorf("the second had got ahead, and the first had not: %v", dead)
		}
		owner.Saved("1")
		time.Sleep(time.Second)
		die()
		attempt(1)
		if _, err := owner.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		die()
		attempt(1)
		if _, err := owner.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		before := owner.name
		c.leave(before)
		owner = c.successor("1", before)
		attempt(0)
	})
}

func TestHolderOfTheSameBuildGoesOnIfThereIsOne(t *testing.T) {
	for _, other := range []int{1, 2} {
		bubble(t, func(t *testing.T) {
			c := newCluster(t, 1, "a", "b", "c")
			defer c.close()
			c.mu.Lock()
			c.builds = map[string]string{"a": "old", "b": "old", "c": "old"}
			c.mu.Unlock()
			names, _ := c.at("a").submit("1")
			c.mu.Lock()
			c.builds[names[other]] = "new"
			c.mu.Unlock()
			c.kill("a")
			if b := c.successor("1", "a"); b.name == names[other] {
				t.Errorf("%s goes on, which is of another build, with %v", b.name, names)
			}
		})
	}
}

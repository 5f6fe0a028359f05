package main

import "testing"

func TestActorCountsOnItsNode(t *testing.T) {
	t.Chdir(t.TempDir()) // where a node keeps the records of what is submitted to it
	err := withOwnProcess(t.Context(), func(seed string) error {
		sum, node, err := count(t.Context(), seed)
		if err == nil && (sum != 20 || node != "a") {
			t.Errorf("sum %d on node %q, want 20 on a", sum, node)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

package live

import "testing"

// A message that has been taken out of its mailbox moves the run on, before its handler has begun as well.
func TestMailboxIsBusyFromPostToTheEndOfTheHandler(t *testing.T) {
	m := &mailbox{running: true} // nobody handles messages but this test
	if m.busy() {
		t.Error("an empty mailbox is busy")
	}
	m.enqueue(&m.queues.User, letter{})
	m.enqueue(&m.queues.Control, letter{})
	for i, want := range []struct{ ok, busy bool }{{true, true}, {true, true}, {false, false}} {
		if !m.busy() {
			t.Errorf("before message %d the mailbox is idle", i)
		}
		if _, _, ok := m.next(); ok != want.ok || m.busy() != want.busy {
			t.Errorf("message %d: there: %v, busy: %v, want %v", i, ok, m.busy(), want)
		}
	}
}

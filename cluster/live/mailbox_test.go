package live

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/queue"
)

// A message that has been taken out of its mailbox moves the run on, before its handler has begun as well.
func TestMailboxIsBusyFromPostToTheEndOfTheHandler(t *testing.T) {
	m := &mailbox{}
	if m.busy() {
		t.Error("an empty mailbox is busy")
	}
	m.running = true // nobody handles messages but this test
	for _, q := range []*queue.Ring[letter]{&m.queues.System, &m.queues.Control, &m.queues.User} {
		m.enqueue(q, letter{})
	}
	for i := range 3 {
		if _, _, ok := m.next(); !ok || !m.busy() {
			t.Errorf("message %d is there: %v; its mailbox is busy: %v", i, ok, m.busy())
		}
	}
	if _, _, ok := m.next(); ok || m.busy() {
		t.Error("a mailbox without messages is busy")
	}
	m.pause()
	m.running = true
	m.enqueue(&m.queues.Control, letter{})
	m.turn(1)
	if !m.busy() {
		t.Error("a mailbox is idle whose message is held")
	}
}

package live

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/queue"
)

// A message keeps its mailbox busy from the post to the end of its handler.
func TestMailboxIsBusyFromPostToTheEndOfTheHandler(t *testing.T) {
	m := &mailbox{}
	if m.busy() {
		t.Error("an empty mailbox is busy")
	}
	m.running = true // so that enqueue starts no goroutine
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
		t.Error("a mailbox with a held message is idle")
	}
}

package membership

// Refusals counts what was not believed. None of it stops anything, but none should be there.
type Refusals struct {
	// Malformed are announcements of nodes whose name, address or metadata cannot be.
	Malformed uint64
	// Outdated are announcements of an incarnation before that which is here.
	Outdated uint64
	// Conflicts are announcements of a second node with the name of one that is here, or
	// failed less than 2 s ago.
	Conflicts uint64
	// Crowded are connections closed because 128 were open.
	Crowded uint64
	// Foreign are packets without this cluster's label, or not sealed with its key.
	Foreign uint64
	// Replayed are packets that had arrived before, among the latest 32,768. A network that
	// delivers a packet twice is counted too.
	Replayed uint64
	// Oversized are packets of more than 1,408 bytes, which no member sends.
	Oversized uint64
}

// Refused returns how much was not believed so far.
func (m *Members) Refused() Refusals {
	return Refusals{
		Malformed: m.malformed.Load(), Outdated: m.outdated.Load(),
		Conflicts: m.conflicts.Load(), Crowded: m.transport.crowded.Load(),
		Foreign: m.transport.gate.foreign.Load(), Replayed: m.transport.gate.replayed.Load(),
		Oversized: m.transport.gate.oversized.Load(),
	}
}

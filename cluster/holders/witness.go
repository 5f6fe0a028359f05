package holders

import (
	"slices"

	"github.com/gradwire/gradwire/protos"
)

// A holder's disk can refuse all writes, from the start or later: the disk is full or read-only, or a
// quota is used up. If another process can take the holder's place, it does. Otherwise the holder
// stays a member of the lease without a copy, as a witness: it knows the version and votes (J.-F.
// Pâris, "Voting with witnesses: a consistency scheme for replicated files", Conference on
// Distributed Computing Systems, 1986). Two processes with a copy and a witness survive the death of
// any one of the three. If only the owner can store a copy, the witness's vote commits its runs too:
// otherwise no run would count.
//
// A holder that cannot write a promise keeps it in memory. It removes the note of its earlier
// promise, so that its next incarnation finds none and abstains. The owner lets a holder that has
// lost its promise vote again only while the votes of the others give it the lease (CopyHead.anew).
// In a read-only folder the note stays. The next incarnation writes each note again before it trusts
// it, and abstains if it cannot (Remember): a stale note misleads it only if the folder has become
// writable by then.

// storePromise writes a holder's latest promise, unless it is on the disk, and reports whether it is
// there now. If not, it removes the note of an earlier promise; s.mu is held.
func (s *Service) storePromise(h *holding) bool {
	if s.keptPromise(h) {
		return true
	}
	s.removeNote(h)
	return false
}

// becomeWitness makes this holder a witness of the version in a copy's head. It removes an older
// copy, which nothing needs any more, to make room for the next one; s.mu is held.
func (s *Service) becomeWitness(h *holding, head *protos.CopyHead) {
	s.removeCopy(h)
	s.adoptHead(h, head)
	h.witness = true
	s.removeNote(h)
	if head.Ended {
		s.end(h, head.From)
	}
}

// storing returns the other holders that can store copies, as far as is known here; s.mu is held.
func (s *Service) storing(h *holding) []string {
	return slices.DeleteFunc(s.others(h.plan), func(name string) bool {
		if s.departs(name) || s.config.Gone(name, 0) {
			return true
		}
		if h.duty == nil {
			return false
		}
		c := h.duty.copies[name]
		return c != nil && (c.unable || c.witness)
	})
}

// needsWitness reports whether a holder that cannot store a copy must become a witness of the latest
// version now, because it has lost its promise, or because no other holder can store the version;
// s.mu is held.
func (s *Service) needsWitness(d *duty, name string, c *held) bool {
	if !c.unable || !slices.Contains(d.of.plan.Holders, name) {
		return false
	}
	return c.forgot || c.has != d.of.member.Version() && len(s.storing(d.of)) == 0
}

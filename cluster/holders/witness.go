package holders

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/gradwire/gradwire/cluster/lease"
	"github.com/gradwire/gradwire/protos"
)

// A holder's disk can refuse everything, from the start or later: it is full or read-only, or a quota
// is used up. As long as another process can take the holder's place, that one does. Otherwise the
// holder stays a member of the lease without a copy, as a witness: it knows the version and votes
// (J.-F. Pâris, "Voting with witnesses: a consistency scheme for replicated files", Conference on
// Distributed Computing Systems, 1986). So two processes with a copy and a witness survive the death
// of any one of the three. Where only the owner can store a copy, the witness's vote commits as well:
// otherwise nothing would count any more.
//
// What a holder cannot write it promises from memory. It removes the note of its earlier promise, so
// that its next incarnation knows nothing, and abstains: the owner lets a member that has forgotten
// its promises vote again only while it owns the lease by the votes of the others (CopyHead.anew). A
// note that cannot be removed, because the folder is read-only, misleads the next incarnation only if
// the folder can be written again by then: one that cannot write its notes abstains, see Remember.

// promised reports whether a holder may answer with its latest promise, and writes the promise if
// that is possible; s.mu is held.
func (s *Service) promised(h *holding) (stored bool) {
	if s.keptPromise(h) {
		return true
	}
	s.unkeep(h)
	return false
}

// unkeep removes a holding's note, which is out of date; s.mu is held.
func (s *Service) unkeep(h *holding) {
	if err := os.Remove(s.notePath(h.plan.Id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.config.Log("%v", err)
	}
	h.kept = lease.Promise{}
}

// testify makes this holder a witness of the version that a copy's head tells; s.mu is held. An
// older copy here is of no use any more, and its room may be what the next one needs.
func (s *Service) testify(h *holding, head *protos.CopyHead) {
	s.removeCopy(h)
	s.adopt(h, head)
	h.witness = true
	s.unkeep(h)
	if head.Ended {
		s.end(h, head.From)
	}
}

// storing returns the other holders that can store copies, as far as is known; s.mu is held.
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

// testifies reports whether a holder that cannot store a copy is to be a witness of the version now,
// because it knows of no promise any more, or because no other one can store the version; s.mu is
// held.
func (s *Service) testifies(d *duty, name string, c *held) bool {
	if !c.unable || !slices.Contains(d.of.plan.Holders, name) {
		return false
	}
	return c.forgot || c.has != d.of.member.Version() && len(s.storing(d.of)) == 0
}

package registry

import (
	"errors"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gradwire/gradwire/protos"
)

// ErrDamaged says that a stored log is incomplete or corrupt, so that the process must join as a
// new member.
var ErrDamaged = errors.New("the registry's log is damaged")

// Storage keeps one member's log durably.
type Storage interface {
	// Load returns the stored log, or nil if there is none. The error wraps ErrDamaged if the log is
	// incomplete or corrupt.
	Load() (*Saved, error)
	// Create replaces the stored log, if any, by an empty log with an identity.
	Create(id *protos.RegistryIdentity) error
	// Replace replaces the stored log with another one atomically, and returns once it is durable.
	// It keeps a copy of the replaced log, which belongs to the registry with the given number.
	// After an error the member no longer uses the storage.
	Replace(s *Saved, number uint64) error
	// Save stores an update atomically and returns once it is durable. After an error the member no
	// longer uses the storage.
	Save(u *Update) error
}

// Saved is a member's log.
type Saved struct {
	Identity *protos.RegistryIdentity
	Hard     *raftpb.HardState // nil in a log without a hard state
	Snapshot *raftpb.Snapshot  // nil in a log without a snapshot
	Entries  []*raftpb.Entry   // entries after the snapshot, without a gap
}

// Update is a change of a log.
type Update struct {
	Hard *raftpb.HardState // nil if unchanged
	// Snapshot, if not nil, replaces the stored snapshot and all entries up to its index.
	Snapshot *raftpb.Snapshot
	// Reset deletes all stored entries. It is set if Snapshot came from another member.
	Reset bool
	// Entries replace all stored entries from the first one's index on.
	Entries []*raftpb.Entry
}

// view is the copy of the log in memory, which raft reads.
type view struct {
	*raft.MemoryStorage
	current func() (*raftpb.Snapshot, error)
}

// Snapshot returns a snapshot of the present state. The stored snapshot could be so old that it
// does not list the member that receives it.
func (v view) Snapshot() (*raftpb.Snapshot, error) { return v.current() }

// load fills the view with a stored log.
func (v view) load(s *Saved) error {
	if s.Snapshot != nil {
		if err := v.ApplySnapshot(s.Snapshot); err != nil {
			return err
		}
	}
	if s.Hard != nil {
		if err := v.SetHardState(s.Hard); err != nil {
			return err
		}
	}
	return v.Append(s.Entries)
}

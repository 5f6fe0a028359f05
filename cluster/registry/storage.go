package registry

import (
	"errors"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gradwire/gradwire/protos"
)

// ErrDamaged says that a log exists but cannot be trusted: it is not that of the member any more.
var ErrDamaged = errors.New("the registry's log is damaged")

// Storage keeps one member's log. What it has saved outlives the process.
type Storage interface {
	// Load returns what is stored: nil if nothing is. The error wraps ErrDamaged if it is incomplete.
	Load() (*Saved, error)
	// Create starts a log anew with an identity, and deletes what was there.
	Create(id *protos.RegistryIdentity) error
	// Save stores an update, whole or not at all, and returns once it is durable. After an error the
	// member does not use the storage any more.
	Save(u *Update) error
}

// Saved is a member's log.
type Saved struct {
	Identity *protos.RegistryIdentity
	Hard     *raftpb.HardState // nil before the first
	Snapshot *raftpb.Snapshot  // nil before the first
	Entries  []*raftpb.Entry   // those after the snapshot, without a gap
}

// Update is a change of a log.
type Update struct {
	Hard *raftpb.HardState // nil if unchanged
	// Snapshot, if not nil, replaces the stored one, and all entries up to its index.
	Snapshot *raftpb.Snapshot
	// Reset says that Snapshot came from another member: all stored entries are deleted.
	Reset bool
	// Entries replace all stored entries from the first one's index on.
	Entries []*raftpb.Entry
}

// view is what raft reads of the log: all that is stored, in memory.
type view struct {
	*raft.MemoryStorage
	current func() (*raftpb.Snapshot, error)
}

// Snapshot returns the state as it is now, rather than the stored one, which may be older than the
// member that it is for.
func (v view) Snapshot() (*raftpb.Snapshot, error) { return v.current() }

// load fills the view with what was saved.
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

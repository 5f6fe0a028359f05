package registry_test

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// disk is a Storage in memory that survives its member and injects faults.
type disk struct {
	saved   *registry.Saved
	damaged bool
	fault   diskFault
	tear    func() bool              // reports whether failedTorn may damage the log
	log     map[uint64]*raftpb.Entry // latest entry ever stored at each index

	forgetsVotes bool // planted fault: votes are not durable
	lies         int  // planted fault: number of latest entries that are not durable
}

// diskFault is a fault of the next Save.
type diskFault int

const (
	noFault    diskFault = iota
	failedOld            // Save fails without storing the update
	failedNew            // Save stores the update and fails
	failedTorn           // Save fails and may damage the log
)

var errDisk = errors.New("injected: fsync failed")

func (d *disk) Load() (*registry.Saved, error) {
	if d.damaged {
		return nil, fmt.Errorf("%w: injected", registry.ErrDamaged)
	}
	if d.saved == nil {
		return nil, nil
	}
	s := *d.saved
	if d.forgetsVotes && s.Hard != nil {
		s.Hard = proto.Clone(s.Hard).(*raftpb.HardState)
		s.Hard.Vote = new(uint64(0))
	}
	if n := len(s.Entries) - d.lies; d.lies > 0 && n >= 0 && s.Hard != nil {
		s.Entries = s.Entries[:n]
		s.Hard = proto.Clone(s.Hard).(*raftpb.HardState)
		s.Hard.Commit = new(s.Snapshot.GetMetadata().GetIndex())
	}
	s.Entries = slices.Clone(s.Entries)
	return &s, nil
}

func (d *disk) Create(id *protos.RegistryIdentity) error {
	d.saved, d.damaged = &registry.Saved{Identity: id}, false
	return nil
}

func (d *disk) Replace(s *registry.Saved, _ uint64) error {
	fault := d.fault
	d.fault = noFault
	if fault == failedTorn || fault == failedOld {
		return errDisk
	}
	d.saved, d.log = &registry.Saved{Identity: s.Identity, Hard: s.Hard, Snapshot: s.Snapshot},
		map[uint64]*raftpb.Entry{}
	if fault == failedNew {
		return errDisk
	}
	return nil
}

func (d *disk) Save(u *registry.Update) error {
	fault := d.fault
	d.fault = noFault
	if fault == failedTorn {
		d.damaged = d.tear()
		return errDisk
	}
	if fault == failedOld {
		return errDisk
	}
	store(d.saved, u)
	for _, e := range u.Entries {
		d.log[e.GetIndex()] = e
	}
	if fault == failedNew {
		return errDisk
	}
	return nil
}

// store applies an update independently of host.File.
func store(s *registry.Saved, u *registry.Update) {
	if u.Hard != nil {
		s.Hard = u.Hard
	}
	if u.Snapshot != nil {
		s.Snapshot = u.Snapshot
		upTo := u.Snapshot.GetMetadata().GetIndex()
		s.Entries = slices.DeleteFunc(slices.Clone(s.Entries), func(e *raftpb.Entry) bool {
			return u.Reset || e.GetIndex() <= upTo
		})
	}
	if len(u.Entries) > 0 {
		first := u.Entries[0].GetIndex()
		s.Entries = slices.DeleteFunc(slices.Clone(s.Entries), func(e *raftpb.Entry) bool {
			return e.GetIndex() >= first
		})
		s.Entries = append(s.Entries, u.Entries...)
	}
}

package host

import (
	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// memory is the Storage of a volatile member. It stores nothing, because a member reads only its
// own copy of the log.
type memory struct{}

var _ registry.Storage = memory{}

// Load returns no log: the member is new.
func (memory) Load() (*registry.Saved, error) { return nil, nil }

// Create stores nothing.
func (memory) Create(*protos.RegistryIdentity) error { return nil }

// Save stores nothing.
func (memory) Save(*registry.Update) error { return nil }

// Replace stores nothing.
func (memory) Replace(*registry.Saved, uint64) error { return nil }

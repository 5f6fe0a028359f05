package host

import (
	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// memory is the Storage of a volatile member, which reads its log only from its own copy.
type memory struct{}

var _ registry.Storage = memory{}

// Load returns no log: the member is new.
func (memory) Load() (*registry.Saved, error) { return nil, nil }

// Create has nothing to do.
func (memory) Create(*protos.RegistryIdentity) error { return nil }

// Save has nothing to do.
func (memory) Save(*registry.Update) error { return nil }

// Replace has nothing to do.
func (memory) Replace(*registry.Saved, uint64) error { return nil }

//go:build !unix

package cli

import (
	"context"

	"github.com/gradwire/gradwire/cluster/identity"
)

// renewals gives nothing: this system has no signal for it.
func renewals(context.Context, string, func(string)) <-chan *identity.Identity { return nil }

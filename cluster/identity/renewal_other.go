//go:build !unix

package identity

import "context"

// Renewals gives nothing: this system has no signal for it.
func Renewals(context.Context, string, func(string)) <-chan *Identity { return nil }

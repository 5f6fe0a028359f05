//go:build !linux

package transport

import "errors"

// newDuplex fails: only Linux is known here to have pollers that wait for others.
func newDuplex(*conn) (writer, error) { return nil, errors.ErrUnsupported }

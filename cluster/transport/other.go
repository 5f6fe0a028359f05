//go:build !linux

package transport

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// What follows does without what only Linux is known here to have, or to need.

// gather leaves all writing to the connection's own goroutine.
type gather struct{}

func newGather(syscall.RawConn) *gather { return &gather{} }

func (*gather) try([][]byte) (int, error) { return 0, nil }

// newPatient reads as the socket does.
func newPatient(c *net.TCPConn, _ syscall.RawConn) net.Conn { return c }

// offer is none: nothing is shared.
type offer struct{ name string }

func newOffer(*socket) (*offer, error) { return nil, errors.ErrUnsupported }

func (*offer) end(bool) shared { return nil }

func take(context.Context, string, *socket) (shared, error) { return nil, errors.ErrUnsupported }

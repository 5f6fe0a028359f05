//go:build !linux

package transport

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// What follows does without what only Linux is known here to have, or to need.

// gather leaves all writing to the connection's own goroutine.
type gather struct{}

func newGather(syscall.RawConn) *gather { return &gather{} }

func (*gather) try([][]byte) (int, error) { return 0, nil }

// newPatient reads as the socket does.
func newPatient(c *net.TCPConn, _ syscall.RawConn) net.Conn { return c }

// offer is none: nothing is shared.
type offer struct{ address string }

func newOffer() (*offer, error) { return nil, errors.ErrUnsupported }

func (*offer) end(*socket, bool) (shared, error) { return nil, errors.ErrUnsupported }

func take(string, *socket, time.Duration) (shared, error) { return nil, errors.ErrUnsupported }

//go:build !linux

package transport

import (
	"errors"
	"net"
	"syscall"
)

// What follows does without what only Linux is known here to have, or to need.

// gather leaves all writing to the connection's own goroutine.
type gather struct{}

func newGather(syscall.RawConn) *gather { return &gather{} }

func (*gather) write([][]byte) (int, error) { return 0, nil }

// patient goes to sleep at once.
type patient struct{ *net.TCPConn }

func newPatient(c *conn) *patient { return &patient{c.socket.tcp} }

// newDuplex fails: no poller waits for others.
func newDuplex(*conn) (writer, error) { return nil, errors.ErrUnsupported }

// tuneLoopback does nothing.
func tuneLoopback(*net.TCPConn) error { return nil }

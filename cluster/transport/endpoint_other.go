//go:build !linux

package transport

import (
	"net"
	"syscall"
)

// endpoint is nil: only Linux is known here to have pollers that wait for others.
type endpoint struct {
	*net.TCPConn
	raw syscall.RawConn
}

func newEndpoint(*net.TCPConn) (*endpoint, error) { return nil, nil }

func (*endpoint) wait(bool) error { return nil }

func (*endpoint) wake() {}

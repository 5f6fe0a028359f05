//go:build !linux

package transport

import (
	"net"
	"syscall"
)

// patient goes to sleep at once: only on Linux is it known here what that costs.
type patient struct{ *net.TCPConn }

func newPatient(_ syscall.RawConn, c *conn) *patient { return &patient{c.socket.tcp} }

//go:build !linux

package transport

import "net"

// patient goes to sleep at once: only on Linux is it known here what that costs.
type patient struct{ *net.TCPConn }

func newPatient(c *conn) *patient { return &patient{c.socket.tcp} }

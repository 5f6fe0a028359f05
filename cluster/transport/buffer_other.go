//go:build !linux

package transport

import "net"

// limitSendBuffer does nothing: only on Linux is it known here what helps.
func limitSendBuffer(*net.TCPConn) error { return nil }

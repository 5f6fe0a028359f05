package transport

import (
	"net"
	"syscall"
	"testing"
)

func TestConnectionInsideTheMachineBuffersAChunk(t *testing.T) {
	if largestSendBuffer() < chunk/2 {
		t.Skip("net.core.wmem_max is lower than that")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // a test's
	if err := limitSendBuffer(c.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var size int
	var failed error
	if err := raw.Control(func(fd uintptr) { size, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if size != chunk {
		t.Errorf("the system buffers %d bytes, want %d", size, chunk)
	}
}

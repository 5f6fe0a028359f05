package transport

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestConnectionInsideTheMachineBuffersAChunkAndIsNotPaced(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0") // which a caller on 127.0.0.1 reaches
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // a test's
	if err := tuneLoopback(c.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		size, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
		if want := 2 * min(chunk, largestSendBuffer()); err != nil || size != want && want >= chunk {
			t.Errorf("the system buffers %d bytes, want %d; %v", size, want, err)
		}
		control, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || control != "reno" {
			t.Errorf("congestion control %q, want reno; %v", control, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

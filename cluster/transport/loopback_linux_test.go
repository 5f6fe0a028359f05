package transport

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestConnectionInsideTheMachineBuffersAChunkOrWhatTheSystemAllowsAndIsNotPaced(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0") // which a caller on 127.0.0.1 reaches
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	for most, want := range map[int]int{4 * chunk: chunk, chunk: chunk, chunk - 4096: chunk - 4096,
		chunk / 2: chunk / 2, chunk/2 - 1: 0, 0: 0} {
		if most > largestSendBuffer() {
			continue
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // a test's
		tcp := c.(*net.TCPConn)
		before := option(t, tcp, unix.SO_SNDBUF)
		if err := limitSendBuffer(tcp, most); err != nil {
			t.Fatal(err)
		}
		if want = 2 * want; want == 0 {
			want = before
		}
		if size := option(t, tcp, unix.SO_SNDBUF); size != want {
			t.Errorf("where %d bytes are allowed the system buffers %d, want %d", most, size, want)
		}
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // a test's
	tcp := c.(*net.TCPConn)
	if err := tuneLoopback(tcp); err != nil {
		t.Fatal(err)
	}
	if size, most := option(t, tcp, unix.SO_SNDBUF), largestSendBuffer(); most >= chunk && size != 2*chunk {
		t.Errorf("the system, which allows %d bytes, buffers %d", most, size)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		control, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || control != "reno" {
			t.Errorf("congestion control %q, want reno; %v", control, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// option returns one of a socket's options.
func option(t *testing.T, c *net.TCPConn, name int) (value int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if gone := raw.Control(func(fd uintptr) {
		value,
			err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, name)
	}); gone != nil || err != nil {
		t.Fatal(gone, err)
	}
	return value
}

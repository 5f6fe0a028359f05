package transport

import (
	"syscall"
	"unsafe"
)

// gather writes to a socket without ever waiting for it, with writev(2).
type gather struct {
	raw syscall.RawConn
	do  func(fd uintptr) bool
	iov [64]syscall.Iovec
	n   int
	err error

	count int
}

func newGather(raw syscall.RawConn) *gather {
	g := &gather{raw: raw}
	g.do = g.writev
	return g
}

// try writes what the socket takes now, and returns how many bytes that was.
func (g *gather) try(parts [][]byte) (int, error) {
	total := 0
	for len(parts) > 0 {
		g.count, g.n, g.err = 0, 0, nil // a closed socket leaves them as they are
		asked := 0
		for g.count < min(len(g.iov), len(parts)) {
			part := parts[g.count]
			g.iov[g.count].Base = unsafe.SliceData(part)
			g.iov[g.count].SetLen(len(part))
			asked += len(part)
			g.count++
		}
		err := g.raw.Write(g.do)
		clear(g.iov[:g.count])
		if err == nil {
			err = g.err
		}
		total += g.n
		if err != nil || g.n < asked {
			return total, err
		}
		parts = parts[g.count:]
	}
	return total, nil
}

// writev always reports that it is done, so that nobody waits.
func (g *gather) writev(fd uintptr) bool {
	for {
		n, _, e := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&g.iov[0])), uintptr(g.count))
		switch e {
		case 0:
			g.n, g.err = int(n), nil
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			g.n, g.err = 0, nil
		default:
			g.n, g.err = 0, e
		}
		return true
	}
}

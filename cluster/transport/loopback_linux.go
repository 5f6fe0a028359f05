package transport

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// tuneLoopback suits a connection inside this machine to what it is. Over a network the kernel
// knows better.
func tuneLoopback(c *net.TCPConn) error {
	if err := dontPace(c); err != nil {
		return err
	}
	return limitSendBuffer(c, largestSendBuffer())
}

// dontPace chooses a congestion control that sends what there is room for. One that estimates the
// rate of a path, as BBR does, holds data back: inside a machine that rate is what else computes,
// and no congestion.
func dontPace(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		// Every Linux has it and allows it. A system that pretends to be one goes on with what it
		// has.
		_ = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, "reno")
	})
}

// limitSendBuffer has a connection buffer a chunk, which Linux doubles for what it keeps beside the
// data: the kernel lets the buffer grow to several times that, and what has waited there is no
// longer in the processor's cache when it is received. Where the system allows less it is that, or,
// below half a chunk, what the system makes it: still less would keep the sender waiting.
func limitSendBuffer(c *net.TCPConn, most int) error {
	if most < chunk/2 {
		return nil
	}
	return c.SetWriteBuffer(min(chunk, most))
}

// largestSendBuffer is the system's bound of what SetWriteBuffer accepts; 0 if it does not tell.
var largestSendBuffer = sync.OnceValue(func() int {
	text, err := os.ReadFile("/proc/sys/net/core/wmem_max")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
})

package transport

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// limitSendBuffer has a connection inside this machine buffer no more than a chunk: the kernel lets the
// buffer grow to several of them, and what has waited there is no longer in the processor's cache when it is
// received. Over a network the kernel knows better. It does nothing where the system's bound is lower than that:
// less than a chunk keeps the sender waiting.
func limitSendBuffer(c *net.TCPConn) error {
	near, ok := c.LocalAddr().(*net.TCPAddr)
	far, known := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !known || !near.IP.Equal(far.IP) || largestSendBuffer() < chunk/2 {
		return nil
	}
	return c.SetWriteBuffer(chunk / 2) // which Linux doubles, for what it keeps beside the data
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

package transport

import (
	"bufio"
	"net"
	"sync"
)

// sealed stands between TLS and the socket. TLS writes and reads 16 KiB at a time; sealed
// keeps what is written until it is taken, and reads ahead, so that a batch is one
// system call and one wake-up, and TLS never waits for the socket while it holds its locks.
type sealed struct {
	net.Conn
	in *bufio.Reader

	mu   sync.Mutex
	keep bool // after the handshake
	out  []byte
}

const sealedAhead = 64 << 10

func (s *sealed) Read(b []byte) (int, error) { return s.in.Read(b) }

func (s *sealed) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.keep {
		return s.Conn.Write(b)
	}
	s.out = append(s.out, b...)
	return len(b), nil
}

// hold keeps what is written from now on.
func (s *sealed) hold() {
	s.mu.Lock()
	s.keep = true
	s.mu.Unlock()
}

// take returns what has been written; the memory is used again after put.
func (s *sealed) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.out
	s.out = nil
	return b
}

func (s *sealed) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		s.out = b[:0]
	}
}

// Measure records the delay between two machines as a trace for a plan's links. It sends small
// UDP datagrams at regular intervals, takes half of each round trip as the delay, and writes
// time and delay as CSV. It leaves out datagrams that do not come back within two seconds.
// Without arguments it measures its own machine for a second.
//
//	measure -serve :9000                                        # there
//	measure -to there:9000 -every 100ms -for 60s > delays.csv   # here
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"
)

// maxCount bounds the datagrams: 16 bits of a datagram are its number.
const maxCount = 1 << 16

// patience is how long a datagram is waited for.
const patience = 2 * time.Second

func main() {
	serve := flag.String("serve", "", "address to answer at, such as :9000")
	to := flag.String("to", "", "address to measure the way to")
	every := flag.Duration("every", 100*time.Millisecond, "interval of the datagrams")
	length := flag.Duration("for", time.Minute, "how long to measure")
	size := flag.Int("size", 64, "bytes of a datagram, from 8")
	flag.Parse()
	var err error
	switch {
	case len(os.Args) == 1:
		err = loopback()
	case *serve != "":
		err = answer(*serve)
	case *to == "" || *every <= 0 || *length < *every || *length / *every > maxCount || *size < 8 || *size > 1400:
		flag.Usage()
		os.Exit(2)
	default:
		err = measure(*to, *every, *length, *size)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// answer sends every datagram back, and takes in what comes by TCP at the same port, so that a way
// can be measured under load.
func answer(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go discardAll(listener)
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return echo(conn)
}

// loopback measures the way to itself.
func loopback() error {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = echo(conn) }() // until it is closed
	defer func() { _ = conn.Close() }()
	return measure(conn.LocalAddr().String(), 100*time.Millisecond, time.Second, 64)
}

// echo sends every datagram back.
func echo(conn net.PacketConn) error {
	buffer := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if _, err := conn.WriteTo(buffer[:n], from); err != nil {
			return err
		}
	}
}

func discardAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}()
	}
}

// measure writes the trace. A datagram bears its number, by which its answer is known.
func measure(to string, every, length time.Duration, size int) error {
	conn, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	count := int(length / every)
	delays := make([]time.Duration, count) // 0: no answer yet
	began := time.Now()
	answered := make(chan error, 1)
	go func() { answered <- collect(conn, began, every, delays) }()
	datagram := make([]byte, size)
	for i := range count {
		time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
		binary.BigEndian.PutUint64(datagram, uint64(i)<<48|uint64(time.Since(began)))
		if _, err := conn.Write(datagram); err != nil {
			return err
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := <-answered; err != nil {
		return err
	}
	return write(to, every, delays)
}

// collect reads answers until the deadline.
func collect(conn net.Conn, began time.Time, every time.Duration, delays []time.Duration) error {
	buffer := make([]byte, 2048)
	for {
		n, err := conn.Read(buffer)
		now := time.Since(began)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if n < 8 {
			continue
		}
		stamp := binary.BigEndian.Uint64(buffer)
		i, sent := int(stamp>>48), time.Duration(stamp&(1<<48-1))
		if i < len(delays) && now-sent <= patience {
			delays[i] = (now - sent) / 2
		}
	}
}

func write(to string, every time.Duration, delays []time.Duration) error {
	out := bufio.NewWriter(os.Stdout)
	lost := 0
	for _, d := range delays {
		if d == 0 {
			lost++
		}
	}
	fmt.Fprintf(out, "# half of UDP round trips to %s, one every %v; %d of %d without an answer\n", to, every, lost,
		len(delays))
	fmt.Fprintln(out, "time_s,delay_ms")
	for i, d := range delays {
		if d > 0 {
			fmt.Fprintf(out, "%.3f,%.3f\n", (time.Duration(i) * every).Seconds(), float64(d)/1e6)
		}
	}
	return out.Flush()
}

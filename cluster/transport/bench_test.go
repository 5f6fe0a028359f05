package transport_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
)

// The benchmarks measure two nodes of one process, and in turn with them, block by block, two
// goroutines that do the same with bare connections: ratios hold on a machine that is
// shared, absolutes do not. "of-raw" is the median over the blocks' ratios of rates.

// pipe returns the two ends of a connection, with TLS or without.
func pipe(b *testing.B, secure bool) (near, far net.Conn) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a benchmark's
	accepted := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	near, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	far = <-accepted
	if secure {
		near = tls.Client(near, id(b, "a").ClientTLS(identity.Actors))
		far = tls.Server(far, id(b, "b").ServerTLS(identity.Actors))
		go far.(*tls.Conn).Handshake() //nolint:errcheck // the other side hears of it
		if err := near.(*tls.Conn).Handshake(); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		near.Close() //nolint:errcheck // a benchmark's
		far.Close()  //nolint:errcheck // a benchmark's
	})
	return near, far
}

// pair returns two nodes that are connected.
func pair(b *testing.B, secure bool, receiveA, receiveB func(n *node, f *wire.Frame)) (x, y *node) {
	b.Helper()
	edit := func(name string, receive func(*node, *wire.Frame)) func(*node, *transport.Config) {
		return func(n *node, c *transport.Config) {
			c.Limits = transport.Limits{}
			n.pool.Poison = false
			c.Receive = func(_ transport.Peer, f *wire.Frame) { receive(n, f) }
			if secure {
				c.Identity = id(b, name)
			}
		}
	}
	x, y = start(b, "a", 1, edit("a", receiveA)), start(b, "b", 1, edit("b", receiveB))
	x.connect(b, "b", y)
	until(b, "both are up", func() bool {
		return x.stats("b").State == transport.Up && y.stats("a").State == transport.Up
	})
	return x, y
}

// compare runs blocks of both kinds in turn, for at least b.N units, and reports their rates and
// bytes allocated a unit.
func compare(b *testing.B, unit, bytes int, ours, raw func(units int)) {
	b.Helper()
	ours(unit)
	raw(unit)
	var ratios []float64
	var mine, theirs time.Duration
	var before, after runtime.MemStats
	allocated, units := uint64(0), 0
	b.ResetTimer()
	for units < b.N || len(ratios) < 5 {
		runtime.ReadMemStats(&before)
		began := time.Now()
		ours(unit)
		middle := time.Now()
		runtime.ReadMemStats(&after)
		allocated += after.TotalAlloc - before.TotalAlloc
		again := time.Now()
		raw(unit)
		end := time.Now()
		mine, theirs = mine+middle.Sub(began), theirs+end.Sub(again)
		ratios = append(ratios, float64(end.Sub(again))/float64(middle.Sub(began)))
		units += unit
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-raw")
	b.ReportMetric(float64(units)/mine.Seconds(), "msg/s")
	b.ReportMetric(float64(units*bytes)/mine.Seconds()/1e9, "GB/s")
	b.ReportMetric(float64(units*bytes)/theirs.Seconds()/1e9, "raw-GB/s")
	b.ReportMetric(float64(allocated)/float64(units), "alloc-B/msg")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStream sends messages of 1 MB in one direction.
func BenchmarkStream(b *testing.B) {
	const floats, unit = 250_000, 64
	for _, secure := range []bool{false, true} {
		b.Run(fmt.Sprintf("tls=%v", secure), func(b *testing.B) {
			arrived, done := 0, make(chan struct{})
			x, _ := pair(b, secure, func(*node, *wire.Frame) {}, func(_ *node, f *wire.Frame) {
				f.Tensors[0].Release()
				if arrived++; arrived%unit == 0 {
					done <- struct{}{}
				}
			})
			v := x.pool.Get(floats)
			near, far := pipe(b, secure)
			ack := make(chan struct{})
			go func() {
				buffer := make([]byte, 4*floats)
				for n := 1; ; n++ {
					if _, err := io.ReadFull(far, buffer); err != nil {
						return
					}
					if n%unit == 0 {
						ack <- struct{}{}
					}
				}
			}()
			buffer := make([]byte, 4*floats)
			f := chunk(0, v)
			compare(b, unit, 4*floats, func(units int) {
				for range units {
					v.Retain()
					if err := x.Send("b", f); err != nil {
						b.Fatal(err)
					}
				}
				<-done
			}, func(units int) {
				for range units {
					if _, err := near.Write(buffer); err != nil {
						b.Fatal(err)
					}
				}
				<-ack
			})
		})
	}
}

// BenchmarkRoundTrip pushes a vector and gets one of the same size back, from handler to
// handler. Bare connections do it from loop to loop.
func BenchmarkRoundTrip(b *testing.B) {
	for _, floats := range []int{2084, 21_840, 250_000, 1_199_882} {
		for _, secure := range []bool{false, true} {
			b.Run(fmt.Sprintf("floats=%d/tls=%v", floats, secure), func(b *testing.B) { roundTrip(b, floats, secure) })
		}
	}
}

func roundTrip(b *testing.B, floats int, secure bool) {
	left, done := 0, make(chan struct{})
	answer := func(n *node, to string, f *wire.Frame) {
		f.Tensors[0].Release()
		if err := n.Send(to, chunk(0, n.pool.Get(floats))); err != nil {
			b.Error(err)
		}
	}
	x, _ := pair(b, secure, func(n *node, f *wire.Frame) {
		if left--; left == 0 {
			f.Tensors[0].Release()
			done <- struct{}{}
			return
		}
		answer(n, "b", f)
	}, func(n *node, f *wire.Frame) { answer(n, "a", f) })
	near, far := pipe(b, secure)
	go func() {
		buffer := make([]byte, 4*floats)
		for {
			if _, err := io.ReadFull(far, buffer); err != nil {
				return
			}
			if _, err := far.Write(buffer); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 4*floats)
	compare(b, max(20, 2_000_000/floats), 8*floats, func(units int) {
		left = units
		if err := x.Send("b", chunk(0, x.pool.Get(floats))); err != nil {
			b.Fatal(err)
		}
		<-done
	}, func(units int) {
		for range units {
			if _, err := near.Write(buffer); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(near, buffer); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package transport_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// The benchmarks measure two processes, a node and a bare connection in each. The two ways take
// turns, block by block, so that both meet the same placement and the same load: ratios hold on a
// machine that is shared, absolutes do not. "of-raw" is the median over the blocks' ratios
// of rates. A test binary that finds partnerVariable in its environment is the other process.
const partnerVariable = "GRADWIRE_TRANSPORT_PARTNER"

// task tells the other process what to do with messages of Floats values.
type task struct {
	Floats   int
	Unit     int    // messages that are acknowledged together; 0 for those that are echoed
	Identity string // folder; empty without TLS
}

// partner is the main function of the other process. It ends when its input does.
func partner(text string) error {
	var do task
	if err := json.Unmarshal([]byte(text), &do); err != nil {
		return err
	}
	var id *identity.Identity
	if do.Identity != "" {
		var err error
		if id, err = identity.Load(do.Identity); err != nil {
			return err
		}
	}
	pool, arrived := &protos.TensorPool{}, 0
	var n *transport.Node
	n, err := transport.Listen(transport.Config{
		Name: "b", Incarnation: 1, Address: "127.0.0.1:0", Identity: id, Tensors: pool,
		Receive: func(_ transport.Peer, f *wire.Frame) {
			f.Tensors[0].Release()
			arrived++
			answer := chunk(0)
			if do.Unit == 0 {
				answer = chunk(0, pool.Get(do.Floats))
			} else if arrived%do.Unit > 0 {
				return
			}
			if err := n.Send("a", answer); err != nil {
				panic(err)
			}
		},
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go bare(l, id, do)
	fmt.Println(n.Address(), l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// bare does without nodes what the partner's node does.
func bare(l net.Listener, id *identity.Identity, do task) {
	c, err := l.Accept()
	if err != nil {
		panic(err)
	}
	if id != nil {
		c = tls.Server(c, id.ServerTLS(identity.Actors))
	}
	buffer := make([]byte, 4*do.Floats)
	for n := 1; ; n++ {
		if _, err := io.ReadFull(c, buffer); err != nil {
			return
		}
		answer := buffer
		if do.Unit > 0 {
			answer = buffer[:1]
		}
		if do.Unit == 0 || n%do.Unit == 0 {
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}

// identities issues the identities of a and of b: it returns one, and the folder of the other.
func identities(b *testing.B) (near *identity.Identity, far string) {
	b.Helper()
	ca, a := filepath.Join(b.TempDir(), "ca"), filepath.Join(b.TempDir(), "a")
	far = filepath.Join(b.TempDir(), "b")
	if err := identity.Init(ca); err != nil {
		b.Fatal(err)
	}
	for dir, name := range map[string]string{a: "a", far: "b"} {
		if err := identity.Issue(ca, dir, identity.Subject{Name: name, Role: identity.Node}); err != nil {
			b.Fatal(err)
		}
	}
	near, err := identity.Load(a)
	if err != nil {
		b.Fatal(err)
	}
	return near, far
}

// with starts the other process, and returns a node that is connected with the one there, and
// a bare connection.
func with(b *testing.B, do task, secure bool, receive func(n *node, f *wire.Frame)) (x *node, near net.Conn) {
	b.Helper()
	var id *identity.Identity
	if secure {
		id, do.Identity = identities(b)
	}
	text, err := json.Marshal(do)
	if err != nil {
		b.Fatal(err)
	}
	other := exec.CommandContext(context.Background(), os.Args[0])
	other.Env = append(os.Environ(), partnerVariable+"="+string(text))
	other.Stderr = os.Stderr
	in, err := other.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := other.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()   //nolint:errcheck // the process ends in either case
		other.Wait() //nolint:errcheck // a benchmark's
	})
	var at, raw string
	if _, err := fmt.Fscan(bufio.NewReader(out), &at, &raw); err != nil {
		b.Fatal(err)
	}
	if near, err = net.Dial("tcp", raw); err != nil {
		b.Fatal(err)
	}
	if id != nil {
		near = tls.Client(near, id.ClientTLS(identity.Actors))
	}
	b.Cleanup(func() { near.Close() }) //nolint:errcheck // a benchmark's
	x = start(b, "a", 1, func(n *node, c *transport.Config) {
		c.Limits, c.Identity, n.pool.Poison = transport.Limits{}, id, false
		c.Receive = func(_ transport.Peer, f *wire.Frame) { receive(n, f) }
	})
	if err := x.Connect("b", at); err != nil {
		b.Fatal(err)
	}
	until(b, "b is up", func() bool { return x.stats("b").State == transport.Up })
	return x, near
}

// compare runs blocks of both kinds in turn, for at least b.N messages, and reports their rates and
// bytes allocated a message in this process.
func compare(b *testing.B, unit, bytes int, ours, raw func(units int)) {
	b.Helper()
	for range 3 {
		ours(unit)
		raw(unit)
	}
	var ratios []float64
	var mine, theirs time.Duration
	var before, after runtime.MemStats
	allocated, units := uint64(0), 0
	b.ResetTimer()
	for units < b.N || len(ratios) < 15 {
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

// BenchmarkStream sends messages of 1 MB in one direction, from Send to the handler.
func BenchmarkStream(b *testing.B) {
	const floats, unit = 250_000, 64
	for _, secure := range []bool{false, true} {
		b.Run(fmt.Sprintf("tls=%v", secure), func(b *testing.B) {
			done := make(chan struct{})
			x, near := with(b, task{Floats: floats, Unit: unit}, secure,
				func(*node, *wire.Frame) { done <- struct{}{} })
			v := x.pool.Get(floats)
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
				if _, err := io.ReadFull(near, buffer[:1]); err != nil {
					b.Fatal(err)
				}
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
	push := func(n *node) {
		if err := n.Send("b", chunk(0, n.pool.Get(floats))); err != nil {
			b.Error(err)
		}
	}
	x, near := with(b, task{Floats: floats}, secure, func(n *node, f *wire.Frame) {
		f.Tensors[0].Release()
		if left--; left == 0 {
			done <- struct{}{}
			return
		}
		push(n)
	})
	buffer := make([]byte, 4*floats)
	compare(b, max(10, 1_000_000/floats), 8*floats, func(units int) {
		left = units
		push(x)
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

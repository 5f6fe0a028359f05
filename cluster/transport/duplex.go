package transport

import (
	"runtime"
	"sync/atomic"
	"time"
)

// duplex lets the goroutine that reads from a connection without TLS write to it as well, in turns,
// where the processes of this machine have fewer than two cores each: a second one would take the
// core from another process's, and find what it copies in the other core's cache.
//
// The token goes to the goroutine that reads, but while a handler keeps that busy.
type duplex struct {
	end   *endpoint     // nil if two goroutines read and write
	relay chan struct{} // holds the token for the goroutine that reads
	state atomic.Int32  // of that goroutine
	holds bool          // it has the token, which only itself knows
	ahead int           // bytes that it has written since it read as many
	late  *time.Timer   // relieves it
	due   atomic.Bool   // and is about to
}

// The states of the goroutine that reads.
const (
	away   int32 = iota // it does not write
	awake               // it looks whether there is something to write
	asleep              // it can be woken to do so
)

// lead is how far that goroutine's writing can be ahead of its reading before it begins another
// batch, as long as there is something to read. If both sides wrote first, what has arrived would
// wait until it is in no cache any more.
const lead = chunk

// handling is how long handlers can keep what that goroutine has begun from being written.
const handling = time.Millisecond

// cores are those of this machine.
var cores = runtime.NumCPU()

// crowded reports whether the processes of this machine that are connected have fewer than two
// cores each. A connection is made as it is at the time.
func (n *Node) crowded() bool { return cores < 2*(1+int(n.near.Load())) }

// pass gives the token to the goroutine that is to write what is left.
func (c *conn) pass() {
	c.relay <- struct{}{}
	switch c.state.Load() {
	case awake:
	case asleep:
		c.end.wake()
	default:
		c.relieve()
	}
}

// relieve gives a token that waits for the goroutine that reads to the one that only writes.
func (c *conn) relieve() {
	select {
	case <-c.relay:
		c.handover <- struct{}{}
	default:
	}
}

// The other methods are for the goroutine that reads.

// sleep waits until there is something to read, or to write.
func (c *conn) sleep() error {
	defer c.state.Store(awake)
	c.state.Store(asleep) // before the look at the relay: whoever passes the token on afterwards wakes this goroutine
	if len(c.relay) > 0 {
		return nil
	}
	return c.end.wait(c.holds)
}

// depart precedes a handler, which can take its time, or wait for what is to be written.
func (c *conn) depart() {
	if c.end == nil {
		return
	}
	c.leave()
	if len(c.relay) == 0 || c.due.Swap(true) { // the timer runs since an earlier handler
		return
	}
	if c.late == nil {
		c.late = time.AfterFunc(handling, func() {
			c.due.Store(false)
			c.relieve()
		})
	} else {
		c.late.Reset(handling)
	}
}

// comeBack follows a handler.
func (c *conn) comeBack() {
	if c.end != nil {
		c.state.Store(awake)
	}
}

// leave puts the token, if it has it, where it can be taken from.
func (c *conn) leave() {
	c.state.Store(away)
	if c.holds {
		c.holds = false
		c.relay <- struct{}{}
	}
}

// retire leaves all writing to the other goroutine for good.
func (c *conn) retire() {
	c.leave()
	c.relieve()
}

// share writes what the socket takes of a batch of what is due, if the token is here or is passed
// on to here, and returns its bytes: none if nothing is due, or there is no room.
func (c *conn) share() (n int, err error) {
	if !c.holds {
		select {
		case <-c.relay:
			c.holds = true
		default:
			return 0, nil
		}
		if c.due.Swap(false) {
			c.late.Stop()
		}
	}
	for wrote := false; ; wrote = true {
		if len(c.rest) == 0 {
			more, err := c.next()
			if c.holds = more || err != nil; !more || err != nil {
				return n, err
			}
		}
		if wrote {
			return n, nil
		}
		n, err = c.gather.write(c.rest)
		if c.advance(n); err != nil {
			return n, err
		}
	}
}

// exchange reads with try, and writes what is due, until something was read; it reports false if
// there is nothing to do.
func (c *conn) exchange(try func() bool) (bool, error) {
	for {
		wrote := 0
		if c.ahead < lead {
			var err error
			if wrote, err = c.share(); err != nil {
				return false, err
			}
			c.ahead += wrote
		}
		if try() {
			return true, nil
		}
		if wrote == 0 && c.ahead < lead {
			return false, nil
		}
		c.ahead = 0 // nothing waits to be read
	}
}

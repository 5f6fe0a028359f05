package transport

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory carries a connection between two processes of one machine: a ring of bytes for each
// direction, which both have mapped. The socket on which they have met carries nothing more: its
// end says that the other process is gone.
type memory struct {
	net.Conn // that socket
	in, out  ring
	spinner  spinner
	more     func() bool // in.more
	mapped   []byte
	closed   atomic.Bool
}

const (
	ringBytes   = 2 << 20
	ringPage    = 4096 // for its positions
	memoryBytes = 2 * (ringPage + ringBytes)
	// piece is how much is copied before the other side is told, which copies at the same time.
	piece = 128 << 10
)

// ring is one direction. Each side has its own view of it.
type ring struct {
	*positions
	data   []byte
	bell   *os.File    // on which this side sleeps; Go's poller knows it
	others int         // on which the other side does
	at     uint64      // what this side has written, or read; what it shares could be changed
	gone   atomic.Bool // the process that writes
	heard  [8]byte
}

// positions are shared: each has a cache line of its own.
type positions struct {
	// begins is a position whose byte is the first of data: the latest at which the ring was empty
	// when something was written. So short messages lie where others were before, in the cache, and
	// take no more memory than one.
	written, read, begins struct {
		atomic.Uint64
		_ [56]byte
	}
	// The reader sleeps until there are bytes, the writer until there is room; nothing more will be
	// written. Each is 0 or 1.
	hungry, full, ended struct {
		atomic.Uint32
		_ [60]byte
	}
}

// strike adds one to an eventfd(2), which wakes who sleeps on it.
var strike = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// sleep waits until the other side rings, unless what it rings for has come to pass.
func (r *ring) sleep(flag *atomic.Uint32, passed func() bool) error {
	if flag.Store(1); passed() {
		flag.Store(0)
		return nil
	}
	_, err := r.bell.Read(r.heard[:])
	return err
}

// wake rings for the other side. It never waits: a counter that is full wakes as well.
func (r *ring) wake() {
	unix.Write(r.others, strike) //nolint:errcheck // where nobody hears it the connection is at its end
}

// part is what lies in one piece of n bytes from this side's position on.
func (r *ring) part(n uint64) []byte {
	from := (r.at - r.begins.Load()) % ringBytes
	return r.data[from:min(from+min(n, piece), ringBytes)]
}

// waiting is how many bytes there are to read.
func (r *ring) waiting() uint64 { return r.written.Load() - r.at }

// more reports whether the reader need not sleep.
func (r *ring) more() bool { return r.waiting() > 0 || r.over() }

func (r *ring) over() bool { return r.gone.Load() || r.ended.Load() > 0 }

// take reads what there is.
func (r *ring) take(b []byte) (n int, err error) {
	for n < len(b) {
		over, waiting := r.over(), r.waiting()
		switch {
		case waiting > ringBytes:
			return n, bad("%d bytes in a ring of %d", waiting, ringBytes)
		case waiting == 0 && over && n == 0:
			return 0, io.EOF
		case waiting == 0:
			return n, nil
		}
		reads()
		k := copy(b[n:], r.part(waiting))
		n, r.at = n+k, r.at+uint64(k)
		r.read.Store(r.at)
		if waiting-uint64(k) <= ringBytes/2 && r.full.Load() > 0 && r.full.CompareAndSwap(1, 0) {
			r.wake()
		}
	}
	return n, nil
}

// used is how much of the ring waits to be read.
func (r *ring) used() uint64 { return r.at - r.read.Load() }

// roomy reports whether the writer need not sleep on: it wakes for no less than half of a ring.
func (r *ring) roomy() bool { return r.used() <= ringBytes/2 }

// put writes what there is room for.
func (r *ring) put(b []byte) (n int, err error) {
	for n < len(b) {
		used := r.used()
		switch {
		case used > ringBytes:
			return n, bad("%d bytes in a ring of %d", used, ringBytes)
		case used == 0:
			r.begins.Store(r.at)
		}
		k := copy(r.part(ringBytes-used), b[n:])
		if k == 0 {
			break
		}
		n, r.at = n+k, r.at+uint64(k)
		wrote()
		r.written.Store(r.at)
		if r.hungry.Load() > 0 && r.hungry.CompareAndSwap(1, 0) {
			r.wake()
		}
	}
	return n, nil
}

// Read implements io.Reader for one goroutine at a time.
func (m *memory) Read(b []byte) (int, error) {
	for len(b) > 0 {
		if m.closed.Load() {
			return 0, net.ErrClosed
		}
		n, err := m.in.take(b)
		if n == 0 && err == nil && !m.spinner.found(m.more) {
			err = m.in.sleep(&m.in.hungry.Uint32, m.more)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// Write waits for room.
func (m *memory) Write(b []byte) (n int, err error) {
	for {
		k, err := m.try([][]byte{b[n:]})
		if n += k; err != nil || n == len(b) {
			return n, err
		}
		if err := m.out.sleep(&m.out.full.Uint32, m.out.roomy); err != nil {
			return n, err
		}
	}
}

func (m *memory) try(parts [][]byte) (n int, err error) {
	if m.closed.Load() {
		return 0, net.ErrClosed
	}
	for _, part := range parts {
		k, err := m.out.put(part)
		if n += k; err != nil || k < len(part) {
			return n, err
		}
	}
	return n, nil
}

// CloseWrite ends what is written.
func (m *memory) CloseWrite() error {
	m.out.ended.Store(1)
	m.out.wake()
	return nil
}

// Close ends both directions, and what waits for them.
func (m *memory) Close() error {
	m.closed.Store(true)
	return errors.Join(m.Conn.Close(), m.in.bell.Close(), m.out.bell.Close())
}

// watch returns when the other process is gone, or the connection is closed. What it has written is
// read nevertheless.
func (m *memory) watch() {
	var b [1]byte
	for {
		if _, err := m.Conn.Read(b[:]); err != nil {
			m.in.gone.Store(true)
			m.in.bell.Write(strike) //nolint:errcheck // where it is closed nobody sleeps
			return
		}
	}
}

// release gives up the memory, which nobody uses, and leaves the socket.
func (m *memory) release() {
	m.in.bell.Close()     //nolint:errcheck // Close may have done it
	m.out.bell.Close()    //nolint:errcheck // as well
	unix.Munmap(m.mapped) //nolint:errcheck // it was mapped
	closeAll([]int{m.in.others, m.out.others})
}

// What is offered: the memory, and for each ring the bells of its reader and of its writer.
const descriptors = 5

// newMemory maps memory, and takes the descriptors of its bells over. Of the first ring the caller
// is the writer. If there is an error all descriptors stay with whose they are.
func newMemory(of *net.TCPConn, fds []int, caller bool) (*memory, error) {
	m := &memory{Conn: of, spinner: spinner{score: bestScore}}
	m.more = m.in.more
	var err error
	if m.mapped, err = unix.Mmap(fds[0], 0, memoryBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	rings := [...]*ring{&m.in, &m.out}
	if caller {
		rings = [...]*ring{&m.out, &m.in}
	}
	for i, r := range rings {
		part := m.mapped[i*(ringPage+ringBytes):]
		r.positions = (*positions)(unsafe.Pointer(&part[0]))
		r.data = part[ringPage : ringPage+ringBytes]
		mine, others := fds[1+2*i], fds[2+2*i]
		if r == &m.out {
			mine, others = others, mine
		}
		r.bell, r.others = os.NewFile(uintptr(mine), "eventfd"), others
	}
	return m, nil
}

// seals keep a process from making the memory shorter under another's hands.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd) //nolint:errcheck // it was open
	}
}

// allocate returns the descriptors of fresh memory.
func allocate() (fds []int, err error) {
	fd, err := unix.MemfdCreate("gradwire", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	fds = append(fds, fd)
	if err = unix.Ftruncate(fd, memoryBytes); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	for err == nil && len(fds) < descriptors {
		if fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
			fds = append(fds, fd)
		}
	}
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	return fds, nil
}

// check refuses memory that is not what allocate makes.
func check(fds []int) error {
	if len(fds) != descriptors {
		return bad("%d descriptors, %d were to come", len(fds), descriptors)
	}
	var s unix.Stat_t
	if err := unix.Fstat(fds[0], &s); err != nil {
		return err
	}
	if got, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GET_SEALS, 0); err != nil || got&seals != seals ||
		s.Size != memoryBytes {
		return bad("memory of %d bytes with seals %#x; %v", s.Size, got, err)
	}
	for _, fd := range fds[1:] { // anything else could keep who reads or writes it waiting
		what, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil || what != "anon_inode:[eventfd]" {
			return bad("a bell is %s; %v", what, err)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
			return bad("a bell that blocks; %v", err)
		}
	}
	return nil
}

// offer is memory for who is called, if that is on this machine, of the same user, and says the
// secret, which only the greeting tells.
type offer struct {
	name     string // address and secret
	secret   string
	fds      []int
	memory   *memory
	listener *net.UnixListener
	given    chan struct{} // closed when nobody can take it any longer
}

// offers begins what every address of an offer begins with.
const offers = "@gradwire-"

func newOffer(of *socket) (*offer, error) {
	fds, err := allocate()
	if err != nil {
		return nil, err
	}
	m, err := newMemory(of.tcp, fds, true)
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	o, err := offerOf(fds)
	if err != nil {
		closeAll(fds[:1])
		m.release()
		return nil, err
	}
	o.memory = m
	return o, nil
}

func offerOf(fds []int) (o *offer, err error) {
	o = &offer{secret: rand.Text(), fds: fds, given: make(chan struct{})}
	address := offers + rand.Text()
	o.name = address + " " + o.secret
	if o.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"}); err != nil {
		return nil, err
	}
	go o.give()
	return o, nil
}

// secretPatience is how long who takes an offer may need to say its secret.
const secretPatience = time.Second

func (o *offer) give() {
	defer close(o.given)
	defer o.listener.Close() //nolint:errcheck // nobody is to wait there
	for {
		c, err := o.listener.AcceptUnix()
		if err != nil {
			return
		}
		said := make([]byte, len(o.secret))
		c.SetDeadline(time.Now().Add(secretPatience)) //nolint:errcheck // then this waits for the other process
		if sameUser(c) {
			if _, err = io.ReadFull(c, said); err == nil && subtle.ConstantTimeCompare(said, []byte(o.secret)) == 1 {
				//nolint:errcheck // who does not get it says so
				c.WriteMsgUnix([]byte{0}, unix.UnixRights(o.fds...), nil)
			}
		}
		c.Close() //nolint:errcheck // all is said
	}
}

// end ends an offer, and returns the memory if it was taken.
func (o *offer) end(taken bool) shared {
	o.listener.Close() //nolint:errcheck // it takes no calls in either case
	<-o.given
	closeAll(o.fds[:1])
	if !taken {
		o.memory.release()
		return nil
	}
	return o.memory
}

// take takes memory that was offered.
func take(ctx context.Context, name string, of *socket) (shared, error) {
	address, secret, _ := strings.Cut(name, " ")
	if !strings.HasPrefix(address, offers) {
		return nil, bad("memory is offered at %.40q", address)
	}
	var d net.Dialer
	dialed, err := d.DialContext(ctx, "unix", address)
	if err != nil {
		return nil, err
	}
	defer dialed.Close() //nolint:errcheck // all is said
	c := dialed.(*net.UnixConn)
	defer context.AfterFunc(ctx, func() {
		c.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // then this waits for the other process
	})()
	if !sameUser(c) {
		return nil, errors.New("memory of another user")
	}
	if _, err := c.Write([]byte(secret)); err != nil {
		return nil, err
	}
	var b [1]byte
	rights := make([]byte, unix.CmsgSpace(4*descriptors))
	_, n, _, _, err := c.ReadMsgUnix(b[:], rights)
	if err != nil {
		return nil, err
	}
	fds, err := received(rights[:n])
	if err != nil {
		return nil, err
	}
	m, err := (*memory)(nil), check(fds)
	if err == nil {
		m, err = newMemory(of.tcp, fds, false)
	}
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	closeAll(fds[:1])
	return m, nil
}

// received are the descriptors that came with a message.
func received(rights []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		some, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(fds)
			return nil, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}

// overflowUser stands for all users that this process's namespace does not know.
const overflowUser = 65534

// sameUser reports whether the process at the other end is of this one's user.
func sameUser(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && int(who.Uid) == os.Geteuid() && who.Uid != overflowUser
	})
	return err == nil && same
}

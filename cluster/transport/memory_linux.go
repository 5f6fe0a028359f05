package transport

import (
	"crypto/rand"
	"errors"
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
	data        []byte
	bytes, room bell
	at          uint64      // what this side has written, or read; what it shares could be changed
	gone        atomic.Bool // the process that writes
	heard       [8]byte
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

// bell wakes a goroutine of the other process: an eventfd(2), which Go's poller knows.
type bell struct{ *os.File }

func (b bell) ring() {
	b.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) //nolint:errcheck // where it is closed nobody sleeps
}

// sleep waits until the other side rings, unless what it rings for has come to pass.
func (r *ring) sleep(flag *atomic.Uint32, b bell, passed func() bool) error {
	if flag.Store(1); passed() {
		flag.Store(0)
		return nil
	}
	_, err := b.Read(r.heard[:])
	return err
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
		k := copy(b[n:], r.part(waiting))
		n, r.at = n+k, r.at+uint64(k)
		r.read.Store(r.at)
		if waiting-uint64(k) <= ringBytes/2 && r.full.Load() > 0 && r.full.CompareAndSwap(1, 0) {
			r.room.ring()
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
		r.written.Store(r.at)
		if r.hungry.Load() > 0 && r.hungry.CompareAndSwap(1, 0) {
			r.bytes.ring()
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
			err = m.in.sleep(&m.in.hungry.Uint32, m.in.bytes, m.more)
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
		if err := m.out.sleep(&m.out.full.Uint32, m.out.room, m.out.roomy); err != nil {
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
	m.out.bytes.ring()
	return nil
}

// Close ends both directions, and what waits for them.
func (m *memory) Close() error {
	m.closed.Store(true)
	err := m.Conn.Close()
	for _, b := range []bell{m.in.bytes, m.in.room, m.out.bytes, m.out.room} {
		err = errors.Join(err, b.Close())
	}
	return err
}

// watch returns when the other process is gone, or the connection is closed. What it has written is
// read nevertheless.
func (m *memory) watch() {
	var b [1]byte
	for {
		if _, err := m.Conn.Read(b[:]); err != nil {
			m.in.gone.Store(true)
			m.in.bytes.ring()
			return
		}
	}
}

func (m *memory) release() {
	unix.Munmap(m.mapped) //nolint:errcheck // it was mapped
}

// What is offered: the memory, and the bells of both rings.
const descriptors = 5

// newMemory maps memory, and takes its descriptors over. Of the first ring the caller is the
// writer.
func newMemory(of *net.TCPConn, fds []int, caller bool) (shared, error) {
	m := &memory{Conn: of, spinner: spinner{score: bestScore}}
	m.more = m.in.more
	var err error
	if m.mapped, err = unix.Mmap(fds[0], 0, memoryBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		closeAll(fds)
		return nil, os.NewSyscallError("mmap", err)
	}
	closeAll(fds[:1])
	rings := [...]*ring{&m.in, &m.out}
	if caller {
		rings = [...]*ring{&m.out, &m.in}
	}
	for i, r := range rings {
		part := m.mapped[i*(ringPage+ringBytes):]
		r.positions = (*positions)(unsafe.Pointer(&part[0]))
		r.data = part[ringPage : ringPage+ringBytes]
		r.bytes, r.room = bell{os.NewFile(uintptr(fds[1+2*i]), "bytes")}, bell{os.NewFile(uintptr(fds[2+2*i]), "room")}
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
	return nil
}

// offer is memory for who is called, if that is on this machine, of the same user, and was told the
// address, which nobody can guess.
type offer struct {
	address  string
	fds      []int
	listener *net.UnixListener
	given    chan struct{} // closed when nobody can take it any longer
}

// offers begins what every address of an offer begins with.
const offers = "@gradwire-"

func newOffer() (*offer, error) {
	fds, err := allocate()
	if err != nil {
		return nil, err
	}
	o, err := offerOf(fds)
	if err != nil {
		closeAll(fds)
	}
	return o, err
}

func offerOf(fds []int) (o *offer, err error) {
	o = &offer{address: offers + rand.Text(), fds: fds, given: make(chan struct{})}
	if o.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: o.address, Net: "unix"}); err != nil {
		return nil, err
	}
	go o.give()
	return o, nil
}

func (o *offer) give() {
	defer close(o.given)
	for {
		c, err := o.listener.AcceptUnix()
		if err != nil {
			return
		}
		if sameUser(c) {
			c.WriteMsgUnix([]byte{0}, unix.UnixRights(o.fds...), nil) //nolint:errcheck // who does not get it says so
		}
		c.Close() //nolint:errcheck // all is said
	}
}

// end ends an offer, and returns the memory if it was taken.
func (o *offer) end(of *socket, taken bool) (shared, error) {
	o.listener.Close() //nolint:errcheck // it takes no calls in either case
	<-o.given
	if !taken {
		closeAll(o.fds)
		return nil, nil
	}
	return newMemory(of.tcp, o.fds, true)
}

// take takes memory that was offered.
func take(address string, of *socket, within time.Duration) (shared, error) {
	if !strings.HasPrefix(address, offers) {
		return nil, bad("memory is offered at %.40q", address)
	}
	d := net.Dialer{Timeout: within}
	dialed, err := d.Dial("unix", address)
	if err != nil {
		return nil, err
	}
	defer dialed.Close() //nolint:errcheck // all is said
	c := dialed.(*net.UnixConn)
	if !sameUser(c) {
		return nil, errors.New("memory of another user")
	}
	c.SetDeadline(time.Now().Add(within)) //nolint:errcheck // then it waits for the other process
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
	if err := check(fds); err != nil {
		closeAll(fds)
		return nil, err
	}
	return newMemory(of.tcp, fds, false)
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

// sameUser reports whether the process at the other end is of this one's user.
func sameUser(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && int(who.Uid) == os.Geteuid()
	})
	return err == nil && same
}

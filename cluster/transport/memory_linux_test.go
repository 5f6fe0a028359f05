package transport

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// tester is what a test and a property are.
type tester interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// sockets returns the ends of a connection.
func sockets(t tester) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// share returns the ends of a connection over memory, which was offered and taken.
func share(t tester) (a, b *memory) {
	t.Helper()
	near, far := sockets(t)
	o, err := newOffer()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := take(o.address, newSocket(far), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	given, err := o.end(newSocket(near), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range []shared{given, taken} {
			m.Close() //nolint:errcheck // a test may have closed it
			m.release()
		}
	})
	return given.(*memory), taken.(*memory)
}

// pieces writes bytes in pieces of sizes that are drawn.
func pieces(w io.Writer, all []byte, r *rand.Rand, most int) error {
	for len(all) > 0 {
		n := min(1+r.IntN(most), len(all))
		if _, err := w.Write(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func TestMemoryCarriesWhatIsWrittenInItsOrderInBothDirections(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := share(t)
		failed := make(chan error, 4)
		for i, ends := range [][2]*memory{{a, b}, {b, a}} {
			seed := rapid.Uint64().Draw(t, "seed")
			all := make([]byte, rapid.SampledFrom([]int{1, 5000, ringBytes, 3*ringBytes + 1}).Draw(t, "bytes"))
			most := rapid.SampledFrom([]int{7 + len(all)/1000, 200_000, 2 * ringBytes}).Draw(t, "piece")
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for i := range all {
				all[i] = byte(r.Uint32())
			}
			go func() {
				failed <- errors.Join(pieces(ends[0], all, rand.New(rand.NewPCG(seed, 2)), most), ends[0].CloseWrite())
			}()
			go func() {
				got, buffer, r := []byte(nil), make([]byte, 2*ringBytes), rand.New(rand.NewPCG(seed, 3))
				for {
					n, err := ends[1].Read(buffer[:1+r.IntN(most)])
					got = append(got, buffer[:n]...)
					if errors.Is(err, io.EOF) && bytes.Equal(got, all) {
						err = nil
					} else if err == nil {
						continue
					}
					failed <- err
					return
				}
			}()
		}
		for range cap(failed) {
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestMemoryIsReadToItsEndWhenTheOtherProcessIsGone(t *testing.T) {
	for name, end := range map[string]func(*memory) error{
		"killed": func(m *memory) error { return m.Conn.Close() }, // as the system does
		"closed": (*memory).Close,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := share(t)
			watched := make(chan struct{})
			go func() {
				b.watch()
				close(watched)
			}()
			if n, err := a.try([][]byte{make([]byte, 1000), make([]byte, 2*ringBytes)}); n != ringBytes || err != nil {
				t.Fatalf("%d bytes written, there is room for %d; %v", n, ringBytes, err)
			}
			if err := end(a); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, b); n != ringBytes || err != nil {
				t.Errorf("%d bytes read; %v", n, err)
			}
			<-watched
		})
	}
}

func TestClosedMemoryKeepsNobodyWaiting(t *testing.T) {
	a, _ := share(t)
	ended := make(chan error)
	go func() {
		_, err := a.Read(make([]byte, 1))
		ended <- err
	}()
	go func() {
		_, err := a.Write(make([]byte, 2*ringBytes))
		ended <- err
	}()
	for a.in.hungry.Load() == 0 || a.out.full.Load() == 0 {
		runtime.Gosched()
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
	if _, err := a.try([][]byte{{1}}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// The other process can write what it likes into the memory, at any time.
func TestPositionsThatCannotBeEndTheConnection(t *testing.T) {
	for _, at := range []uint64{ringBytes + 1, 1 << 40, 1 << 63} {
		a, b := share(t)
		a.out.written.Store(at)
		if n, err := b.Read(make([]byte, 100)); n != 0 || !errors.Is(err, ErrBad) {
			t.Errorf("%d bytes of %d read; %v", n, at, err)
		}
		b.out.read.Store(at)
		a.in.read.Store(at)
		if n, err := b.try([][]byte{make([]byte, 100)}); n != 0 || !errors.Is(err, ErrBad) {
			t.Errorf("%d bytes written where %d were read; %v", n, at, err)
		}
	}
}

func TestMemoryThatIsNotWhatNodesOfferIsRefused(t *testing.T) {
	_, far := sockets(t)
	defer far.Close() //nolint:errcheck // a test's
	replaced := func(fds []int, flags int, bytes int64) []int {
		closeAll(fds[:1])
		fd, err := unix.MemfdCreate("test", flags)
		if err == nil {
			err = unix.Ftruncate(fd, bytes)
		}
		if err == nil && flags != 0 {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		}
		if err != nil {
			t.Fatal(err)
		}
		return append([]int{fd}, fds[1:]...)
	}
	for name, spoil := range map[string]struct {
		fds     func([]int) []int
		address func(string) string
	}{
		"another address": {address: func(address string) string { return "@" + address[len(offers):] }},
		"nobody there":    {address: func(address string) string { return address + "x" }},
		"too few": {fds: func(fds []int) []int {
			closeAll(fds[2:])
			return fds[:2]
		}},
		"not sealed": {fds: func(fds []int) []int { return replaced(fds, 0, memoryBytes) }},
		"too short":  {fds: func(fds []int) []int { return replaced(fds, unix.MFD_ALLOW_SEALING, ringBytes) }},
	} {
		fds, err := allocate()
		if err != nil {
			t.Fatal(err)
		}
		if spoil.fds != nil {
			fds = spoil.fds(fds)
		}
		o, err := offerOf(fds)
		if err != nil {
			t.Fatal(err)
		}
		address := o.address
		if spoil.address != nil {
			address = spoil.address(address)
		}
		if _, err := take(address, newSocket(far), time.Minute); err == nil {
			t.Errorf("%s: taken", name)
		}
		if _, err := o.end(nil, false); err != nil {
			t.Error(err)
		}
	}
}

func TestMemoryIsNotGivenToAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can call as somebody else")
	}
	near, far := sockets(t)
	o, err := newOffer()
	if err != nil {
		t.Fatal(err)
	}
	user := func(id int) {
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(id), ^uintptr(0)); err != 0 {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread() // of which alone the user changes
	user(65534)
	stranger, err := net.Dial("unix", o.address)
	user(0)
	runtime.UnlockOSThread()
	if err != nil {
		t.Fatal(err)
	}
	rights := make([]byte, 1000)
	if n, m, _, _, err := stranger.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), rights); n+m > 0 && err == nil {
		t.Errorf("%d bytes and %d of descriptors for a stranger", n, m)
	}
	taken, err := take(o.address, newSocket(far), time.Minute)
	if err != nil {
		t.Fatal("no longer there after a stranger: ", err)
	}
	given, err := o.end(newSocket(near), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []shared{given, taken} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		m.release()
	}
}

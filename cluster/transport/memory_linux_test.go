package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
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
	o, err := newOffer(newSocket(near))
	if err != nil {
		t.Fatal(err)
	}
	taken, err := take(context.Background(), o.name, newSocket(far))
	if err != nil {
		t.Fatal(err)
	}
	a, b = o.end(true).(*memory), taken.(*memory)
	t.Cleanup(func() {
		for _, m := range []*memory{a, b} {
			m.Close() //nolint:errcheck // a test may have closed it
			m.release()
		}
	})
	return a, b
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
		var first error
		for range cap(failed) { // all have ended before the memory is given up
			if err := <-failed; err != nil && first == nil {
				first = errors.Join(err, a.Close(), b.Close())
			}
		}
		if first != nil {
			t.Fatal(first)
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

// offered offers the memory of some descriptors and accepts the offer under the name that rename returns. It
// returns the error of accepting, which gives up after a time.
func offered(t *testing.T, fds []int, within time.Duration, rename func(name string) string) error {
	t.Helper()
	_, far := sockets(t)
	defer far.Close() //nolint:errcheck // a test's
	o, err := offerOf(fds)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	taken, err := take(ctx, rename(o.name), newSocket(far))
	if err == nil {
		taken.(*memory).release()
	}
	o.listener.Close() //nolint:errcheck // an offer ends by itself, too
	<-o.given
	closeAll(fds)
	return err
}

// is checks the error of what was offered; none is wanted where want is empty.
func is(t *testing.T, name, want string, err error) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

func TestMemoryIsGivenToWhoSaysItsSecret(t *testing.T) {
	for name, x := range map[string]struct {
		rename func(string) string
		want   string
		within time.Duration
	}{
		"as it is":        {func(name string) string { return name }, "", time.Minute},
		"another address": {func(name string) string { return "@" + name[len(offers):] }, "is offered at", time.Minute},
		"nobody there": {func(name string) string { return strings.Replace(name, " ", "x ", 1) }, "refused",
			time.Minute},
		"another secret": {func(name string) string { return name[:len(name)-1] + "x" }, "EOF", time.Minute},
		"a part of it":   {func(name string) string { return name[:len(name)-1] }, "i/o timeout", secretPatience / 20},
	} {
		fds, err := allocate()
		if err != nil {
			t.Fatal(err)
		}
		is(t, name, x.want, offered(t, fds, x.within, x.rename))
	}
}

func TestMemoryThatIsNotWhatNodesOfferIsRefused(t *testing.T) {
	must := func(fd int, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	replace := func(fds []int, i, fd int) []int {
		closeAll(fds[i : i+1])
		fds[i] = fd
		return fds
	}
	sized := func(flags int, bytes int64) int {
		fd := must(unix.MemfdCreate("test", flags))
		must(0, unix.Ftruncate(fd, bytes))
		if flags != 0 {
			must(unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals))
		}
		return fd
	}
	for name, x := range map[string]struct {
		spoil func(fds []int) []int
		want  string
	}{
		"too few": {func(fds []int) []int {
			closeAll(fds[2:])
			return fds[:2]
		}, "2 descriptors"},
		"too many":   {func(fds []int) []int { return append(fds, must(unix.Dup(0))) }, "6 descriptors"},
		"not sealed": {func(fds []int) []int { return replace(fds, 0, sized(0, memoryBytes)) }, "seals"},
		"too short": {func(fds []int) []int {
			return replace(fds, 0, sized(unix.MFD_ALLOW_SEALING, ringBytes))
		}, "bytes"},
		"no bell": {func(fds []int) []int { return replace(fds, 4, must(unix.Dup(0))) }, "a bell is"},
		"a bell that blocks": {func(fds []int) []int {
			return replace(fds, 3, must(unix.Eventfd(0, unix.EFD_CLOEXEC)))
		}, "blocks"},
	} {
		fds, err := allocate()
		if err != nil {
			t.Fatal(err)
		}
		is(t, name, x.want, offered(t, x.spoil(fds), time.Minute, func(name string) string { return name }))
	}
}

func TestMemoryIsNotGivenToAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can call as somebody else")
	}
	near, far := sockets(t)
	o, err := newOffer(newSocket(near))
	if err != nil {
		t.Fatal(err)
	}
	address, secret, _ := strings.Cut(o.name, " ")
	user := func(id int) bool {
		_, _, err := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(id), ^uintptr(0))
		return err == 0
	}
	runtime.LockOSThread() // of which alone the user changes
	changed := user(65533)
	stranger, err := net.Dial("unix", address)
	if changed && !user(0) {
		t.Fatal("this thread stays another user's")
	}
	runtime.UnlockOSThread()
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close() //nolint:errcheck // a test's
	if changed {
		stranger.Write([]byte(secret)) //nolint:errcheck // it may be closed already
		rights := make([]byte, 1000)
		if n, m, _, _, err := stranger.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), rights); n+m > 0 && err == nil {
			t.Errorf("%d bytes and %d of descriptors for a stranger", n, m)
		}
	}
	taken, err := take(t.Context(), o.name, newSocket(far))
	if err != nil {
		t.Fatal("no longer there after a stranger: ", err)
	}
	for _, m := range []shared{o.end(true), taken} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		m.release()
	}
	if !changed {
		t.Skip("this root cannot become somebody else")
	}
}

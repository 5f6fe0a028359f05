package published

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// content is what the test's files hold: of a length that no buffer divides.
func content(name string) []byte {
	b := make([]byte, 300_007)
	for i := range b {
		b[i] = byte(i*i>>3) ^ name[i%len(name)]
	}
	return b
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// small is a set of two files.
func small() *Set {
	s := &Set{Name: "small", Page: "http://example.org"}
	for _, name := range []string{"a+b.txt", "second"} {
		s.Files = append(s.Files, File{Name: name, Size: int64(len(content(name))), SHA256: sum(content(name))})
	}
	return s
}

// server is a mirror that may misbehave.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	ranges []string // of the requests, in their order
	asked  []string // names
}

// serve starts a mirror; misbehave, called with the number of the request from 0, may answer in its
// own way.
func serve(t *testing.T, misbehave func(n int, w http.ResponseWriter, r *http.Request, body []byte) bool) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		s.mu.Lock()
		n := len(s.ranges)
		s.ranges, s.asked = append(s.ranges, r.Header.Get("Range")), append(s.asked, name)
		s.mu.Unlock()
		if misbehave != nil && misbehave(n, w, r, content(name)) {
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content(name)))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ranges)
}

// getter is one that does not wait for long between attempts.
func getter(mirrors ...*server) *Getter {
	g := &Getter{Stall: time.Minute, Pause: time.Millisecond}
	for _, m := range mirrors {
		g.Mirrors = append(g.Mirrors, m.URL+"/data")
	}
	return g
}

// expectWhole checks that the folder holds the set and nothing else.
func expectWhole(t *testing.T, dir string) {
	t.Helper()
	paths, err := small().Check(dir)
	if err != nil || len(paths) != 2 {
		t.Errorf("%q: %v", paths, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "small"))
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v: %v", entries, err)
	}
}

// half sends the first bytes of a body that is announced whole, and breaks off.
func half(w http.ResponseWriter, body []byte, n int) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body[:n])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestGetPutsTheFilesIntoTheSetsFolder(t *testing.T) {
	dir, mirror := t.TempDir(), serve(t, nil)
	g := getter(mirror)
	var last Progress
	g.Progress = func(p Progress) {
		if p.Done < last.Done || p.Total != small().Bytes() || p.Trouble != nil {
			t.Errorf("progress %+v after %+v", p, last)
		}
		last = p
	}
	if err := g.Get(t.Context(), small(), dir); err != nil {
		t.Fatal(err)
	}
	expectWhole(t, dir)
	if last.Done != last.Total {
		t.Errorf("in the end %d of %d bytes", last.Done, last.Total)
	}
	if !slices.Equal(mirror.asked, []string{"a+b.txt", "second"}) {
		t.Errorf("asked for %q", mirror.asked)
	}
	if err := getter(mirror).Get(t.Context(), small(), dir); err != nil || len(mirror.requests()) != 2 {
		t.Errorf("what is there was asked for again: %q, %v", mirror.asked, err)
	}
}

func TestABrokenDownloadGoesOnAtTheByteWhereItBroke(t *testing.T) {
	dir := t.TempDir()
	mirror := serve(t, func(n int, w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if n == 0 {
			half(w, body, 123_457)
		}
		return false
	})
	if err := getter(mirror).Get(t.Context(), small(), dir); err != nil {
		t.Fatal(err)
	}
	expectWhole(t, dir)
	if got := mirror.requests(); !slices.Equal(got, []string{"", "bytes=123457-", ""}) {
		t.Errorf("ranges %q", got)
	}
}

func TestALaterCallAndAnotherMirrorGoOnToo(t *testing.T) {
	dir := t.TempDir()
	broken := serve(t, func(_ int, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Header.Get("Range") != "" {
			http.Error(w, "gone", http.StatusGone)
			return true
		}
		half(w, body, 100_001)
		return true
	})
	err := getter(broken).Get(t.Context(), small(), dir)
	if err == nil || !strings.Contains(err.Error(), broken.URL+"/data/a+b.txt: status 410 Gone") ||
		!strings.Contains(err.Error(), "the 100001 bytes that have arrived are kept") {
		t.Fatalf("error %v", err)
	}
	if err := getter(broken).Get(t.Context(), small(), dir); err == nil {
		t.Fatal("no error")
	}
	whole := serve(t, nil)
	if err := getter(broken, whole).Get(t.Context(), small(), dir); err != nil {
		t.Fatal(err)
	}
	expectWhole(t, dir)
	if got := whole.requests(); !slices.Equal(got, []string{"bytes=100001-", "bytes=100001-"}) {
		t.Errorf("ranges %q", got)
	}
}

// misbehaviours are what mirrors do, how often each is asked, and what is said of it.
var misbehaviours = map[string]struct {
	misbehave func(n int, w http.ResponseWriter, r *http.Request, body []byte) bool
	requests  int
	want      string
}{
	"stalls before it answers": {func(_ int, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
		<-r.Context().Done()
		return true
	}, 1, "nothing, or next to it, arrived for 300ms"},
	"stalls in the middle": {func(_ int, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Header.Get("Range") == "" {
			_, _ = w.Write(body[:50_000])
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		return true
	}, 2, "nothing, or next to it, arrived for 300ms"},
	"trickles": {func(_ int, w http.ResponseWriter, r *http.Request, body []byte) bool {
		for i := 0; r.Context().Err() == nil; i++ {
			_, _ = w.Write(body[i : i+1])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
		return true
	}, 1, "nothing, or next to it, arrived for 300ms"},
	"breaks off": {func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		half(w, make([]byte, 300_007), 0)
		return true
	}, attempts, "it broke off after 0 of 300007 bytes"},
	"closes early without a length": {func(_ int, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Header.Get("Range") == "" {
			_ = http.NewResponseController(w).Flush() // chunked
			_, _ = w.Write(body[:10])
			return true
		}
		http.Error(w, "no ranges", http.StatusRequestedRangeNotSatisfiable)
		return true
	}, attempts, ""},
	"announces too much": {func(_ int, w http.ResponseWriter, _ *http.Request, body []byte) bool {
		w.Header().Set("Content-Length", "1000000000000")
		_, _ = w.Write(body)
		return true
	}, 1, "it announces 1000000000000 bytes where 300007 are expected"},
	"announces too little": {func(_ int, w http.ResponseWriter, _ *http.Request, body []byte) bool {
		_, _ = w.Write(body[:1000])
		return true
	}, 1, "it announces 1000 bytes where 300007 are expected"},
	"sends other bytes": {func(_ int, w http.ResponseWriter, _ *http.Request, body []byte) bool {
		body[200_000] ^= 1
		_, _ = w.Write(body)
		return true
	}, 1, "300007 bytes arrived with SHA-256 "},
	"sends other bytes for ever": {func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				break
			}
		}
		return true
	}, 1, "300007 bytes arrived with SHA-256 "},
	"has moved away": {func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		http.NotFound(w, nil)
		return true
	}, 1, "status 404 Not Found"},
	"is overloaded": {func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}, attempts, "status 503 Service Unavailable"},
	"leads in circles": {func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
		return true
	}, 10 * attempts, "stopped after 10 redirects"},
	"sends a page": {func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		_, _ = io.WriteString(w, "<html>please log in</html>")
		return true
	}, 1, "it announces 26 bytes"},
}

// A mirror that cannot be trusted is left for the next one, whatever it does.
func TestMirrorsThatMisbehaveAreLeftForTheNext(t *testing.T) {
	for name, c := range misbehaviours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, bad, good := t.TempDir(), serve(t, c.misbehave), serve(t, nil)
			one := small()
			one.Files = one.Files[:1]
			g := getter(bad)
			if strings.Contains(c.want, "arrived for") {
				g.Stall = 300 * time.Millisecond
			}
			err := g.Get(t.Context(), one, dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(),
				bad.URL+"/data/a+b.txt: ") {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if n := len(bad.requests()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			if _, err := os.Stat(filepath.Join(dir, "small", "a+b.txt")); err == nil {
				t.Error("bytes that were not checked have the file's name")
			}
			g.Mirrors = append(g.Mirrors, getter(good).Mirrors...)
			if err := g.Get(t.Context(), one, dir); err != nil {
				t.Error(err)
			}
			if _, err := one.Check(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMirrorThatDoesNotKnowRangesSendsAllAgain(t *testing.T) {
	dir := t.TempDir()
	mirror := serve(t, func(n int, w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if n == 0 {
			half(w, body, 99_999)
		}
		_, _ = w.Write(body)
		return true
	})
	if err := getter(mirror).Get(t.Context(), small(), dir); err != nil {
		t.Fatal(err)
	}
	expectWhole(t, dir)
}

func TestRangesThatAreNotThoseAskedForAreNotAppended(t *testing.T) {
	for _, answer := range []string{"bytes 0-300006/300007", "bytes 99999-300006/300007x", "bytes 100000-300006/300007",
		"bytes 99999-200000/300007", "", "nonsense"} {
		dir := t.TempDir()
		mirror := serve(t, func(n int, w http.ResponseWriter, r *http.Request, body []byte) bool {
			switch {
			case n == 0:
				half(w, body, 99_999)
			case r.Header.Get("Range") != "":
				w.Header().Set("Content-Range", answer)
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(body[:len(body)-99_999])
				return true
			}
			return false
		})
		if err := getter(mirror).Get(t.Context(), small(), dir); err != nil {
			t.Errorf("%q: %v", answer, err)
		}
		expectWhole(t, dir)
	}
}

// What is left of other bytes must not spoil what a good mirror sends.
func TestWhatWasThereBeforeDoesNotSpoilTheFile(t *testing.T) {
	for name, left := range map[string][]byte{
		"other bytes":        make([]byte, 1000),
		"all, but changed":   append(content("a+b.txt")[:300_006:300_006], 'x'),
		"more than there is": append(content("a+b.txt"), "and more"...),
		"all of it":          content("a+b.txt"),
		"nothing":            {},
	} {
		dir, mirror := t.TempDir(), serve(t, nil)
		write(t, filepath.Join(dir, "small", "a+b.txt.part"), left)
		write(t, filepath.Join(dir, "small", "second"), []byte("damaged"))
		if err := getter(mirror).Get(t.Context(), small(), dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expectWhole(t, dir)
	}
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestCancellingKeepsWhatHasArrived(t *testing.T) {
	dir := t.TempDir()
	mirror := serve(t, func(n int, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if n == 0 {
			_, _ = w.Write(body[:70_000])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		}
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := getter(mirror)
	g.Progress = func(p Progress) {
		if p.Done == 70_000 {
			cancel()
		}
	}
	if err := g.Get(ctx, small(), dir); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if err := getter(mirror).Get(t.Context(), small(), dir); err != nil {
		t.Fatal(err)
	}
	expectWhole(t, dir)
	if got := mirror.requests(); got[1] != "bytes=70000-" {
		t.Errorf("ranges %q", got)
	}
}

func TestSeveralThatGetTheSameSetAtOnceDoNotDisturbEachOther(t *testing.T) {
	dir, mirror := t.TempDir(), serve(t, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			// One may lose what it had written to another that is done; the next call goes on.
			for range 5 {
				if getter(mirror).Get(t.Context(), small(), dir) == nil {
					return
				}
			}
			t.Error("the set could not be had")
		})
	}
	all.Wait()
	if _, err := small().Check(dir); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatCannotBeWrittenIsToldAtOnce(t *testing.T) {
	dir, mirror := t.TempDir(), serve(t, nil)
	write(t, filepath.Join(dir, "small"), nil)
	err := getter(mirror).Get(t.Context(), small(), dir)
	var disk *os.PathError
	if !errors.As(err, &disk) || len(mirror.requests()) != 0 {
		t.Errorf("error %v after %d requests", err, len(mirror.requests()))
	}
}

func TestAddressesCarryAnyName(t *testing.T) {
	for name, want := range map[string]string{"a+b.txt": "http://m/x/a+b.txt", "a b": "http://m/x/a%20b",
		"a9a.t": "http://m/x/a9a.t"} {
		for _, mirror := range []string{"http://m/x", "http://m/x/"} {
			if got := address(mirror, Download{Name: name}); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	if fmt.Sprint(small().Bytes()) != "600014" {
		t.Errorf("%d bytes", small().Bytes())
	}
}

// Package storetest runs an S3 server for tests, with injected faults.
package storetest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Bucket is a bucket of the server. Bucket + "-2" is another.
const Bucket = "bucket"

// Secret is the secret key, which must not be in any file or message.
const Secret = "never-to-be-seen-0123456789"

// accessKey belongs to the secret key.
const accessKey = "AKIATESTING"

// Server is an S3 server on loopback.
type Server struct {
	// URL is its endpoint.
	URL string
	// Backend holds its objects.
	Backend *s3mem.Backend

	disturb atomic.Pointer[Disturb]
}

// Disturb handles a request instead of the server, and returns true, or returns false. The next
// handler is the server.
type Disturb func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

// Disturb injects a fault into the requests from now on; nil for none.
func (s *Server) Disturb(d Disturb) { s.disturb.Store(&d) }

// Start runs a server until the test ends. The environment of the test names it, with credentials; its
// working folders lie in a folder of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{Backend: s3mem.New()}
	for _, name := range []string{Bucket, Bucket + "-2"} {
		if err := s.Backend.CreateBucket(name); err != nil {
			t.Fatal(err)
		}
	}
	fake := gofakes3.New(s.Backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := s.disturb.Load(); d != nil && *d != nil && (*d)(w, r, fake) {
			return
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": Secret,
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "",
		"XDG_CACHE_HOME": t.TempDir(), "LocalAppData": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	return s
}

// Object returns an object's content.
func (s *Server) Object(t testing.TB, key string) []byte {
	t.Helper()
	o, err := s.Backend.GetObject(Bucket, key, nil)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	defer o.Contents.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(o.Contents)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Keys returns the keys of all objects.
func (s *Server) Keys(t testing.TB) (keys []string) {
	t.Helper()
	list, err := s.Backend.ListBucket(Bucket, nil, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Contents {
		keys = append(keys, o.Key)
	}
	return keys
}

// ExpectNoSecret fails the test if an object holds the credentials.
func (s *Server) ExpectNoSecret(t testing.TB) {
	t.Helper()
	for _, key := range s.Keys(t) {
		for _, secret := range []string{Secret, accessKey} {
			if bytes.Contains(s.Object(t, key), []byte(secret)) {
				t.Errorf("%s holds credentials", key)
			}
		}
	}
}

// Refuse returns a fault that answers each request with an error code of S3.
func Refuse(status int, code string) Disturb {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
		return true
	}
}

// ReadOnly is the fault that refuses each request to write an object.
func ReadOnly(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
	return r.Method == http.MethodPut && Refuse(http.StatusForbidden, "AccessDenied")(w, r, next)
}

// Reset is the fault that resets the connection.
func Reset(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	return true
}

// Hang is a fault: the server does not answer until the client closes the connection.
func Hang(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	_, _ = io.Copy(io.Discard, r.Body) // a server with an unread body does not notice that its client has gone
	<-r.Context().Done()
	return true
}

// Truncate is the fault that closes the connection within the body of the answer.
func Truncate(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
	whole := httptest.NewRecorder()
	next.ServeHTTP(whole, r)
	body := whole.Body.Bytes()
	for name, values := range whole.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)+1))
	w.WriteHeader(whole.Code)
	_, _ = w.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler)
}

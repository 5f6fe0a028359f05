package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing fails its first requests.
type failing struct {
	Store
	left     int
	requests int
	with     error
}

func (f *failing) Get(context.Context, string, int64) ([]byte, error) {
	f.requests++
	if f.left--; f.left >= 0 {
		return nil, f.with
	}
	return []byte("x"), nil
}

func TestRepetitionIsBounded(t *testing.T) {
	for _, c := range []struct {
		fails, requests int
		with            error
	}{
		{5, 6, errors.New("overloaded")}, {6, 6, errors.New("overloaded")}, {9, 6, errors.New("overloaded")},
		{9, 1, permanentError{errors.New("denied")}}, {9, 1, ErrNotFound}, {9, 1, ErrDamaged},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, told, began := &failing{left: c.fails, with: c.with}, 0, time.Now()
			_, err := (&retrying{Store: f, notify: func(string) { told++ }}).Get(t.Context(), "k", 1)
			if (err != nil) != (c.fails >= c.requests) || err != nil && !errors.Is(err, c.with) {
				t.Errorf("%d failures of %v: %v", c.fails, c.with, err)
			}
			if c.requests == attempts && err != nil && !strings.Contains(err.Error(), "overloaded (tried 6 times)") {
				t.Error(err)
			}
			if f.requests != c.requests || told != c.requests-1 {
				t.Errorf("%d failures of %v: %d requests, %d notes", c.fails, c.with, f.requests, told)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestRepetitionEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := (&retrying{Store: &failing{left: 9, with: errors.New("overloaded")}}).Get(ctx, "k", 1)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "overloaded") {
			t.Error(err)
		}
	})
}

func TestConnectionThatStandsStillFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close() //nolint:errcheck // a pipe
		go func() {         // a slow server, which takes and sends a byte now and then, and then none
			b := make([]byte, 1)
			for range 4 {
				time.Sleep(idleTimeout / 2)
				_, _ = there.Read(b)
			}
			time.Sleep(idleTimeout * 3 / 4)
			_, _ = there.Write(b)
		}()
		c, began := conn{here}, time.Now()
		for range 4 {
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(began); took != idleTimeout*15/4 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestErrorOfAnEndpointNamesIt(t *testing.T) {
	overloaded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer overloaded.Close()
	for endpoint, wants := range map[string][]string{
		"http://127.0.0.1:1": {"cannot be reached", "AWS_ENDPOINT_URL"}, overloaded.URL: {"503"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_S3", endpoint)
		t.Setenv("AWS_ACCESS_KEY_ID", "A")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "B")
		s, err := newS3(Address{Bucket: "bucket", Path: "x"})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Put(t.Context(), "k", nil)
		for _, want := range append(wants, endpoint, "writing s3://bucket/x/k") {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("the error does not say %q: %v", want, err)
			}
		}
	}
}

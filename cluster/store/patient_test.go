package store

import (
	"context"
	"errors"
	"fmt"
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
		{9, 1, fmt.Errorf("denied%w", errPermanent)}, {9, 1, ErrNotFound}, {9, 1, ErrDamaged},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, told, began := &failing{left: c.fails, with: c.with}, 0, time.Now()
			_, err := patient{f, func(string) { told++ }}.Get(t.Context(), "k", 1)
			if (err != nil) != (c.fails >= c.requests) || err != nil && !errors.Is(err, c.with) {
				t.Errorf("%d failures of %v: %v", c.fails, c.with, err)
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
		_, err := patient{&failing{left: 9, with: errors.New("overloaded")}, nil}.Get(ctx, "k", 1)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "overloaded") {
			t.Error(err)
		}
	})
}

func TestUnreachableEndpointIsNamed(t *testing.T) {
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "A",
		"AWS_SECRET_ACCESS_KEY": "B"} {
		t.Setenv(name, value)
	}
	s, err := newS3(Address{Bucket: "bucket", Path: "x"})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Put(t.Context(), "k", nil)
	for _, want := range []string{"cannot be reached", "http://127.0.0.1:1", "AWS_ENDPOINT_URL", "s3://bucket/x/k"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

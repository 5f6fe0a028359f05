package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gradwire/gradwire/cluster/refusal"
)

// Between the answer that names a submission's process and the next request, another process can
// take the submission over.
func TestSubmissionThatMovesIsLookedForAgain(t *testing.T) {
	moved := refusal.Again(errors.New("process b has no submission now"))
	wrong := refusal.Input(errors.New("the cluster knows no submission"))
	for _, c := range []struct {
		name    string
		replies []error
		want    error
	}{
		{"found at once", []error{nil}, nil},
		{"moved twice", []error{moved, moved, nil}, nil},
		{"unknown", []error{wrong, nil}, wrong},
		{"moved, then unknown", []error{moved, wrong, nil}, wrong},
		{"never found", []error{moved}, moved},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				err := locate(t.Context(), func() error {
					asked++
					return c.replies[min(asked, len(c.replies))-1]
				})
				if !errors.Is(err, c.want) {
					t.Errorf("%v after %d requests, want %v", err, asked, c.want)
				}
			})
		})
	}
}

func TestSearchForASubmissionEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	moved := refusal.Again(errors.New("process b has no submission now"))
	if err := locate(ctx, func() error { cancel(); return moved }); !errors.Is(err, moved) {
		t.Error(err)
	}
}

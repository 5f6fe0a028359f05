package client

import (
	"errors"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
)

// written is a plan of nothing but its text.
type written string

func (w written) Written() (file string, text []byte, set []string) {
	return "folder/large.yaml", []byte(w), []string{"seed=2"}
}

func TestPlanThatIsTooLargeForAClusterIsNamedBeforeAnythingIsSent(t *testing.T) {
	c := &Client{seed: "nobody listens here"}
	_, err := c.Submit(t.Context(), written(strings.Repeat("#", request.MaxMessage)), SubmitOptions{})
	var wrong *refusal.InputError
	if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), "folder/large.yaml takes 41943") {
		t.Errorf("%v", err)
	}
}

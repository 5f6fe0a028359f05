//go:build unix

package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/protos"
)

// connect connects as the operator.
func (s *site) connect() *driver.Client {
	s.t.Helper()
	id, err := identity.Load(s.operator)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := driver.Connect(s.t.Context(), []string{s.seed}, id)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// expectGone checks what is told of the actor votes when its process b is gone: to the question
// that was under way, to the next one, and to who lists actors or looks for it.
func (s *site) expectGone(c *driver.Client, underWay error, ask func(int64) (*protos.Message, error)) {
	s.t.Helper()
	if underWay == nil || errors.Is(underWay, context.DeadlineExceeded) ||
		!strings.Contains(underWay.Error(), "actor votes on node b: node b is gone") {
		s.t.Errorf("the question that was under way: %v", underWay)
	}
	if _, err := ask(1); err == nil || !strings.Contains(err.Error(), "actor votes on node b cannot be reached") {
		s.t.Errorf("the next question: %v", err)
	}
	if all := s.actors(); len(all) != 0 {
		s.t.Errorf("listed: %+v", all)
	}
	_, err := c.Find(s.t.Context(), "votes")
	if !errors.Is(err, driver.ErrNoActor) || !strings.Contains(err.Error(), "it was on node b, which is gone") {
		s.t.Errorf("found: %v", err)
	}
}

func TestActorOfAProcessThatIsKilledIsMissedByName(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	site := settle(t, "a", "b")
	c := site.connect()
	spec := driver.ActorSpec{Name: "votes", Kind: "tally", Settings: "{first: 40}", Node: "b"}
	r, err := c.Spawn(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(n int64) (*protos.Message, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return r.Ask(ctx, protos.NewMessage(wrapperspb.Int64(n)))
	}
	answer, err := ask(2)
	if err != nil || answer.Head.(*wrapperspb.Int64Value).Value != 42 {
		t.Fatalf("%v, %v", answer, err)
	}
	all := site.actors()
	if len(all) != 1 || all[0].Name != "votes" || all[0].Kind != "tally" || all[0].Node != "b" || all[0].Handled != 1 {
		t.Errorf("%+v", all)
	}
	if text := site.must("actors"); !strings.Contains(text, "votes  tally  b ") {
		t.Errorf("printed:\n%s", text)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := ask(0) // which is never answered
		ended <- err
	}()
	site.await("question", func() bool { return r.Stats().UnderWay == 1 })
	site.kill("b")
	site.expectGone(c, <-ended, ask)
	if s := r.Stats(); s.Sent != 3 || s.Handled != 1 || s.Lost != 2 {
		t.Errorf("%+v", s)
	}
	site.start("b")
	site.await("return of b", func() bool {
		_, err = ask(1)
		return err != nil && !strings.Contains(err.Error(), "cannot be reached")
	})
	const gone = "actor votes is no longer on node b: it was there before the process restarted"
	if !strings.Contains(err.Error(), gone) {
		t.Errorf("asked of the next process of that name: %v", err)
	}
	if r, err = c.Spawn(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if answer, err = ask(1); err != nil || answer.Head.(*wrapperspb.Int64Value).Value != 41 {
		t.Errorf("its successor: %v, %v", answer, err)
	}
}

func TestActorsNeedACluster(t *testing.T) {
	t.Setenv("GRADWIRE_JOIN", "")
	t.Setenv("GRADWIRE_IDENTITY", "")
	code, _, errs := gradwire(t, "actors", "--insecure")
	expectCode(t, cli.ExitInput, code, errs)
	if !strings.Contains(errs, "--join") {
		t.Errorf("told: %s", errs)
	}
}

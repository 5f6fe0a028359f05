//go:build unix

package cli_test

import (
	"context"
	"encoding/json"
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

func listed(t *testing.T) (all []driver.Actor) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, "actors", "--format", "json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// operator connects as the operator of settle's cluster.
func operator(t *testing.T, seed string) *driver.Client {
	t.Helper()
	id, err := identity.Load("op")
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.Connect(t.Context(), []string{seed}, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestActorOfAProcessThatIsKilledIsMissedByName(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	seed, nodes := settle(t, "a", "b")
	c := operator(t, seed)
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
	if all := listed(t); len(all) != 1 || all[0].Name != "votes" || all[0].Kind != "tally" || all[0].Node != "b" || all[0].Handled != 1 {
		t.Errorf("%+v", all)
	}
	if text := must(t, "actors"); !strings.Contains(text, "votes  tally  b ") {
		t.Errorf("printed:\n%s", text)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := ask(0) // which is never answered
		ended <- err
	}()
	await(t, "question", func() bool { return r.Stats().UnderWay == 1 })
	kill(t, nodes["b"])
	if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "actor votes on node b: node b is gone") {
		t.Errorf("the question that was under way: %v", err)
	}
	if _, err := ask(1); err == nil || !strings.Contains(err.Error(), "actor votes on node b cannot be reached") {
		t.Errorf("the next question: %v", err)
	}
	if all := listed(t); len(all) != 0 {
		t.Errorf("listed: %+v", all)
	}
	if _, err := c.Find(t.Context(), "votes"); !errors.Is(err, driver.ErrNoActor) || !strings.Contains(err.Error(), "it was on node b, which is gone") {
		t.Errorf("found: %v", err)
	}
	if s := r.Stats(); s.Sent != 3 || s.Handled != 1 || s.Lost != 2 {
		t.Errorf("%+v", s)
	}
	startNode(t, "b", seed)
	await(t, "return of b", func() bool {
		_, err = ask(1)
		return err != nil && !strings.Contains(err.Error(), "cannot be reached")
	})
	if !strings.Contains(err.Error(), "actor votes is not on node b any more: it was there before the process was started anew") {
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

package driver_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
)

// brief is an identity that holds for a while.
func (c *testCluster) brief(name string, lifetime time.Duration) *identity.Identity {
	c.t.Helper()
	dir := filepath.Join(c.t.TempDir(), name)
	s := identity.Subject{Name: name, Role: identity.Node, Lifetime: lifetime, Again: true}
	if err := identity.Issue(c.ca, dir, s); err != nil {
		c.t.Fatal(err)
	}
	id, err := identity.Load(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// diary keeps the lines of a log; told returns an error as long as it lacks a text.
func diary() (log func(line string), told func(part string) func() error) {
	var mu sync.Mutex
	text := ""
	log = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		text += line + "\n"
	}
	told = func(part string) func() error {
		return func() error {
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(text, part) {
				return errors.New(text)
			}
			return nil
		}
	}
	return log, told
}

func TestProcessWarnsOfTheEndOfItsCertificateTakesAnotherAndOtherwiseLeaves(t *testing.T) {
	t.Parallel()
	const lifetime = 6 * time.Second
	c := newCluster(t)
	log, told := diary()
	renew := make(chan *identity.Identity)
	kept := c.brief("kept", lifetime)
	defer c.serve("kept", func(n *driver.NodeConfig) {
		n.Identity, n.Renew, n.Log = kept, renew, log
	})()
	short := c.brief("short", lifetime)
	ended, ready := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- driver.Serve(context.Background(), driver.NodeConfig{
			Bind: "127.0.0.1:0", Identity: short, Seeds: []string{c.seed}, Out: t.TempDir(),
			Ready: func(a string) { ready <- a },
		})
	}()
	await(t, "warning",
		told("the certificate of node kept expires at "+kept.Expires().UTC().Format(time.RFC3339)+", in "))
	renew <- short
	await(t, "refusal",
		told("the new identity is not taken: identity: it is of node short, the one before of node kept"))
	next := c.brief("kept", 90*24*time.Hour)
	renew <- next
	await(t, "renewal", told("the new certificate holds until "+next.Expires().UTC().Format(time.RFC3339)))
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	operator := c.client(identity.Operator)
	expires := map[string]time.Time{}
	await(t, "news of certificates", func() error {
		nodes, err := operator.Nodes(t.Context())
		for _, n := range nodes {
			expires[n.Name] = n.Expires
		}
		if err == nil && (len(expires) < 2 || expires["short"].IsZero()) {
			err = errors.New("not known yet")
		}
		return err
	})
	if !expires["kept"].Equal(next.Expires()) || !expires["short"].Equal(short.Expires()) {
		t.Errorf("certificates expire at %v", expires)
	}
	err := <-ended
	if !errors.Is(err, identity.ErrExpired) || time.Now().Before(short.Expires()) ||
		!strings.Contains(err.Error(), "node short leaves the cluster: its certificate expired at ") {
		t.Errorf("at %v: %v", time.Now(), err)
	}
	nodes, err := c.client(identity.Operator).Nodes(t.Context()) // a new connection, with the new certificate
	if err != nil || len(nodes) == 0 || nodes[0].Name != "kept" {
		t.Errorf("%+v, %v", nodes, err)
	}
}

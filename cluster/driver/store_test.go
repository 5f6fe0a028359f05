package driver_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/store"
	"github.com/gradwire/gradwire/cluster/store/storetest"
	"github.com/gradwire/gradwire/cluster/turns"
)

// serveStored starts processes whose records stay in a store. The function returned ends them all.
func (c *testCluster) serveStored(names ...string) (end func()) {
	c.seed = ""
	var ends []func()
	for _, name := range names {
		ready, over := make(chan string, 1), make(chan error, 1)
		config := driver.NodeConfig{Bind: "127.0.0.1:0", Identity: c.identity(name, identity.Node),
			Out: "s3://bucket/records", Cores: 1, Ready: func(address string) { ready <- address },
			Log: func(line string) { c.t.Logf("%s %s: %s", time.Now().Format("05.000"), name, line) }}
		if c.seed != "" {
			config.Seeds = []string{c.seed}
		}
		ctx, cancel := context.WithCancel(context.Background())
		c.serving.Go(func() { over <- driver.Serve(ctx, config) })
		c.t.Cleanup(cancel)
		select {
		case address := <-ready:
			if c.seed == "" {
				c.seed = address
			}
		case err := <-over:
			c.t.Fatalf("node %s: %v", name, err)
		}
		ends = append(ends, func() {
			cancel()
			if err := <-over; err != nil { // the store refuses the last files
				c.t.Logf("node %s: %v", name, err)
			}
		})
	}
	return func() {
		var all sync.WaitGroup
		for _, end := range ends {
			all.Go(end)
		}
		all.Wait()
	}
}

// keepers counts the processes with files of a submission in the store.
func keepers(t *testing.T, s *storetest.Server, id string) (n int) {
	t.Helper()
	for _, key := range s.Keys(t) {
		if path.Base(key) == "manifest.json" && bytes.Contains(s.Object(t, key), []byte(id+"/")) {
			n++
		}
	}
	return n
}

// All processes of a cluster and their folders are lost at any time. New processes go on with a submission
// that two of the lost processes had uploaded, and its record can be read without any process.
func TestClusterGoesOnFromAStoreAfterTheLossOfAllProcesses(t *testing.T) {
	turns.Take(t, 2, 3)
	s := storetest.Start(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c := newCluster(t)
	id, copied := "", ""
	submit := func(operator *driver.Client) {
		t.Helper()
		if id != "" && keepers(t, s, id) > 1 {
			return
		}
		copied = "s3://bucket/copy" + id
		text := strings.Replace(halfSeconds, "repeats: 4",
			"repeats: 3\ncheckpoint: {every: 200ms, to: \""+copied+"\"}", 1)
		var err error
		id, err = operator.Submit(t.Context(), load(t, text), driver.SubmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	end := c.serveStored("a", "b", "c")
	operator := c.client(identity.Operator)
	c.gather(operator, 3)
	submit(operator)
	life := rand.N(2500 * time.Millisecond)
	time.Sleep(life)
	s.Disturb(storetest.Refuse(http.StatusForbidden, "AccessDenied"))
	operator.Close()
	end()
	s.Disturb(nil)
	t.Logf("lost after %v, %d processes have uploaded files of submission %s", life, keepers(t, s, id), id)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())

	end = c.serveStored("a", "b", "c")
	operator = c.client(identity.Operator)
	c.gather(operator, 3)
	submit(operator)
	submission, summary, _ := c.ended(operator, id)
	if len(summary.Runs) != 3 || submission.Done != 3 {
		t.Errorf("%+v with %d runs\n%s", submission, len(summary.Runs), c.logOf(operator, id))
	}
	operator.Close()
	end()

	folder := path.Base(strings.ReplaceAll(submission.Folder, `\`, "/"))
	for _, address := range []string{"s3://bucket/records/" + submission.Process + "/" + folder, copied} {
		dir, remove, err := store.Download(t.Context(), address, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := record.ReadSummary(dir); err != nil || len(again.Runs) != 3 {
			t.Errorf("%s has %d runs, %v", address, len(again.Runs), err)
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	s.ExpectNoSecret(t)
}

// A driver program need not know of uploads: after Run the store has the whole record.
func TestRunUploadsItsRecord(t *testing.T) {
	storetest.Start(t)
	const address = "s3://" + storetest.Bucket + "/first"
	var shown string
	report, err := driver.Run(t.Context(), load(t, long, "stop={steps: 20}"), driver.Options{
		Out: address,
		Finish: func(r *driver.Report) error {
			shown = r.Dir
			return os.WriteFile(filepath.Join(r.Dir, "page.html"), []byte("page"), 0o600)
		},
	})
	if err != nil || report.Record != address || report.Dir != shown {
		t.Fatalf("%+v, %v", report, err)
	}
	if _, err := os.Stat(report.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the working folder stays: %v", err)
	}
	dir, remove, err := store.Download(t.Context(), address, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer remove() //nolint:errcheck // a temporary folder
	if s, err := record.ReadSummary(dir); err != nil || !s.Complete {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "page.html")); err != nil {
		t.Error(err)
	}
}

package driver_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gradwire/gradwire/cluster/client"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/store"
	"github.com/gradwire/gradwire/cluster/store/storetest"
)

// serveStored starts processes whose records stay in a store. The function returned ends them all.
func (c *testCluster) serveStored(names ...string) (end func()) {
	c.seed = ""
	var ends []func()
	for _, name := range names {
		ready, over := make(chan string, 1), make(chan error, 1)
		config := driver.NodeConfig{Bind: "127.0.0.1:0", Identity: c.identity(name, identity.Node),
			Out: "s3://bucket/records", Cores: 1, Ready: func(address string) { ready <- address },
			Log: func(line string) { c.t.Logf("%s: %s", name, line) }}
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
			<-over // with an error where the store refuses what is left
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

// loseAtRun has the store refuse everything from the upload of a finished run on, once it has what each
// process holds of the submission. The channel returned is closed then.
func loseAtRun(s *storetest.Server, processes int) <-chan struct{} {
	lost := make(chan struct{})
	var mu sync.Mutex
	held, published := map[string]bool{}, map[string]bool{}
	s.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		mu.Lock()
		defer mu.Unlock()
		parts := strings.Split(r.URL.Path, "/") // of /bucket/records/NAME/...
		switch name := parts[min(3, len(parts)-1)]; {
		case r.Method != http.MethodPut:
		case len(parts) == 7 && parts[5] == ".held-"+name:
			held[name] = true
		case strings.HasSuffix(r.URL.Path, "/manifest.json") && held[name]:
			published[name] = true
		case strings.HasSuffix(r.URL.Path, "-run.json") && len(published) == processes:
			select {
			case <-lost:
			default:
				close(lost)
			}
		}
		select {
		case <-lost:
			return storetest.Refuse(http.StatusForbidden, "AccessDenied")(w, r, next)
		default:
			return false
		}
	})
	return lost
}

// All processes of a cluster are lost at once, with their folders, while they carry a submission out.
// What the store has is enough to go on, and to fetch the record without any process.
func TestClusterGoesOnFromAStoreAfterTheLossOfAllProcesses(t *testing.T) {
	s := storetest.Start(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c := newCluster(t)
	end := c.serveStored("a", "b", "c")
	operator := c.client(identity.Operator)
	c.gather(operator, 3)
	lost := loseAtRun(s, 3)
	plan := strings.Replace(halfSeconds, "repeats: 4", "repeats: 5\ncheckpoint: {every: 200ms}", 1)
	id, err := operator.Submit(t.Context(), load(t, plan), driver.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-lost:
	case <-t.Context().Done():
		t.Fatal("no run was uploaded")
	}
	operator.Close()
	end()
	s.Disturb(nil)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())

	end = c.serveStored("a", "b", "c")
	operator = c.client(identity.Operator)
	c.gather(operator, 3)
	submission, summary, _ := c.ended(operator, id)
	if len(summary.Runs) != 5 || submission.Done != 5 {
		t.Errorf("%+v with %d runs\n%s", submission, len(summary.Runs), c.logOf(operator, id))
	}
	operator.Close()
	end()

	dir, remove, err := store.Local(t.Context(), "s3://bucket/records/"+submission.Process+"/"+folderOf(&submission), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := record.ReadSummary(dir); err != nil || len(again.Runs) != 5 {
		t.Errorf("%d runs in the store, %v", len(again.Runs), err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	for _, key := range s.Keys(t) {
		if bytes.Contains(s.Object(t, key), []byte(storetest.Secret)) {
			t.Errorf("%s holds a secret", key)
		}
	}
}

// folderOf is the name of the folder of a submission's record.
func folderOf(s *client.Submission) string {
	parts := strings.FieldsFunc(s.Folder, func(r rune) bool { return r == '/' || r == '\\' })
	return parts[len(parts)-1]
}

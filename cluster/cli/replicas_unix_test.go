//go:build unix

package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/turns"
)

// Processes of servers are killed one after another, each comes back, and training goes on with
// what the others have copies of.
func TestServersWhoseShardsAreCopiedAreKilledAndTrainingGoesOn(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	site := settleAlone(t, "a", "b", "c", "d", "e")
	plan := strings.Replace(several("40s"), "kind: parameter-server", "kind: parameter-server, servers: {replicas: 1}",
		1)
	id := site.submitTo(site.addresses()["a"], plan, "copied", "--place=s1=c", "--place=s2=d", "--place=s3=e",
		"--place=b=a", "--place=c=b")
	for _, name := range []string{"e", "d"} {
		site.kill(name)
		site.await(name+" to be missed", site.logged(id, "without "+name))
		site.start(name)
		site.await("the return of "+name, site.logged(id, name+" is back"))
	}
	log := site.over(id)
	if s := site.status(id); s.State != driver.Done {
		t.Errorf("%+v\n%s", s, log)
	}
	site.fetched(id, false)
	for _, worker := range []string{"b", "c"} {
		steps := site.stepsOf(id, worker)
		pause, from := longest(steps)
		t.Logf("%s made %d steps, with a pause of %v at %v", worker, len(steps), pause, from)
		if pause > 5*time.Second || len(steps) < 500 {
			t.Errorf("%s made %d steps, with a pause of %v at %v\n%s", worker, len(steps), pause, from, log)
		}
	}
}

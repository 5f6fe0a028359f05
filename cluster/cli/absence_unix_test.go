//go:build unix

package cli_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
	"github.com/gradwire/gradwire/protos"
)

// expectTold expects the fetched record to state the node timeout, and to name a run that another
// process took over from the victim.
func (s *succession) expectTold(victim string, timeout float64) {
	s.t.Helper()
	summary, err := record.ReadSummary(s.path("fetched"))
	if err != nil {
		s.t.Fatal(err)
	}
	told := 0
	for _, r := range summary.Runs {
		if r.NodeTimeout != timeout {
			s.t.Errorf("run %d has the timeout %v, want %v", r.Number, r.NodeTimeout, timeout)
		}
		for _, i := range r.Incidents {
			if strings.HasPrefix(i.What, "leads the run on process ") &&
				strings.Contains(i.What, "process "+victim+" was gone from ") &&
				strings.Contains(i.What, ", noticed after ") {
				told++
			}
		}
	}
	if told == 0 {
		s.t.Errorf("the record does not tell that %s was gone", victim)
	}
}

// expectOneRecord expects one whole record of the submission, and none at the replaced process.
func (s *succession) expectOneRecord(replaced string) {
	s.t.Helper()
	summary, err := record.ReadSummary(s.path("fetched"))
	if err != nil || len(summary.Runs) != s.runs {
		s.t.Fatalf("%d runs, want %d; %v", len(summary.Runs), s.runs, err)
	}
	s.await("one record", func() bool {
		records, err := filepath.Glob(s.path("records-*/*-" + s.id))
		records = slices.DeleteFunc(records, func(name string) bool { return filepath.Base(name)[0] == '.' })
		return err == nil && len(records) == 1 && (replaced == "" || !strings.Contains(records[0], "records-"+replaced))
	})
	if list := s.must("submissions"); strings.Count(list, s.id) != 1 {
		s.t.Errorf("the submission is listed more than once:\n%s", list)
	}
}

// The process that leads a submission pauses at a random instant. It goes on if it resumes before the
// node timeout. Otherwise another process has taken over, and the first one stops and says so.
func TestPausedLeaderGoesOnUnlessItsPlaceIsTaken(t *testing.T) {
	lengthy(t)
	ring := strings.Replace(strings.Replace(together, "count: 4", "count: 3", 1), "10s", "1s", 1)
	rows := []struct {
		name, plan, timeout string
		seconds             float64
		replaced            bool
	}{
		{"gossip, in time", shortRuns, "20s", 20, false},
		{"gossip", shortRuns, "3s", 3, true},
		{"all-reduce", ring, "4s", 4, true},
		{"asynchronous, in time", lasting("1s"), "20s", 20, false},
		{"asynchronous", lasting("1s"), "4s", 4, true},
	}
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			turns.Row(t, i, len(rows), len(rows))
			random := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // a seed, so that a failure repeats
			site := newSite(t)
			site.settings = []string{"--node-timeout", row.timeout}
			s := (&succession{site: site.settle([]string{"a", "b", "c"}), runs: 12}).begin(row.plan, "a")
			s.await("finished run", func() bool { return s.status(s.id).Done > 0 })
			s.shun("a")
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
			s.signal(syscall.SIGSTOP, "a")
			if row.replaced {
				s.await("successor", func() bool {
					now := s.now()
					return now.Process != "" && now.Process != "a" && now.Away.IsZero()
				})
			} else {
				time.Sleep(2*time.Second + time.Duration(random.Int64N(int64(2*time.Second))))
			}
			s.signal(syscall.SIGCONT, "a")
			said := s.said["a"].has("is carried out by another process from now on")
			if row.replaced {
				s.await("word of the paused process", said)
				absent := "a is absent: nothing was heard of the peer for " + row.timeout
				if s.said["b"].find(absent) == "" {
					t.Errorf("b does not say %q", absent)
				}
			}
			s.following.end(t) // runs may be degraded on a busy machine
			if row.replaced {
				s.expectOneRecord("a")
				s.expectTold("a", row.seconds)
				return
			}
			s.expectOneRecord("")
			if now := s.now(); now.Process != "a" || said() {
				t.Errorf("%s carried it out, want a: %v", now.Process, s.said["a"].lines)
			}
		})
	}
}

// A process of a run pauses for longer than the node timeout. If others can take its place, the run
// goes on, and the process rejoins as a new incarnation. A server without replicas keeps its state.
func TestPausedPartOfARunGoesOnUnlessItsPlaceIsTaken(t *testing.T) {
	lengthy(t)
	copies := strings.Replace(several("16s"), "kind: parameter-server",
		"kind: parameter-server, servers: {replicas: 1}", 1)
	ring := strings.Replace(strings.Replace(together, "count: 4", "count: 3", 1), "10s", "16s", 1)
	rows := []struct {
		name, plan string
		place      []string
		replaced   bool
	}{
		{"worker", lasting("16s"), []string{"server=b", "b=c", "c=d"}, true},
		{"only server", lasting("16s"), []string{"server=d", "b=b", "c=c"}, false},
		{"server with copies", copies, []string{"s1=b", "s2=c", "s3=d", "b=a", "c=a"}, true},
		{"peer of a ring", ring, []string{"peer1=b", "peer2=c", "peer3=d"}, true},
	}
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			turns.Row(t, i, len(rows), len(rows))
			random := rand.New(rand.NewPCG(uint64(i), 2)) //nolint:gosec // a seed, so that a failure repeats
			s := newSite(t)
			s.settings = []string{"--node-timeout", "2s"}
			s.settle([]string{"a", "b", "c", "d"})
			at := s.addresses()
			var place []string
			for _, rule := range row.place {
				place = append(place, "--place="+rule)
			}
			id := s.submitTo(at["a"], row.plan, "paused", place...)
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
			s.signal(syscall.SIGSTOP, "d")
			s.await("absence of d", s.said["a"].has("d is absent: "))
			if row.replaced {
				s.await("news of d", s.logged(id, "without d from now on"))
			}
			s.signal(syscall.SIGCONT, "d")
			want, never := []string{"server was silent until ", "d is heard of again"}, "without d"
			if row.replaced {
				want, never = []string{
					"d is back",
					"its process d was gone from ",
					", noticed after ",
				}, "lost its model"
			}
			log := s.over(id)
			if errs := lacks(log, want, never); errs != nil {
				t.Errorf("%q in %s", errs, log)
			}
			s.must("fetch", id, "--out", s.path("fetched"))
			(&succession{site: s, id: id, runs: 1}).expectOneRecord("")
		})
	}
}

// An actor's process pauses until the cluster gives it up, and a second actor gets the name. The first
// actor ends when its process resumes.
func TestNameOfAnActorHasOneOwnerAfterAPause(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	s := newSite(t)
	s.settings = []string{"--node-timeout", "2s"}
	s.settle([]string{"a", "b", "c"})
	c := s.connect()
	spec := driver.ActorSpec{Name: "votes", Kind: "tally", Settings: "{first: 40}", Node: "b"}
	kept := driver.ActorSpec{Name: "kept", Kind: "tally", Settings: "{first: 1}", Node: "b"}
	for _, spec := range []driver.ActorSpec{spec, kept} {
		if _, err := c.Spawn(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	s.signal(syscall.SIGSTOP, "b")
	spec.Node = "c"
	_, err := c.Spawn(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "votes is taken by an actor on node b") {
		t.Errorf("the name is given away while its owner may be back: %v", err)
	}
	var second *driver.Ref
	s.await("the name", func() bool {
		r, err := c.Spawn(t.Context(), spec)
		second = r
		return err == nil
	})
	s.signal(syscall.SIGCONT, "b")
	s.await("word of b", s.said["b"].has("actor votes ended because node c claimed its name"))
	s.await("the list", func() bool { return len(s.actors()) == 2 })
	all := s.actors()
	slices.SortFunc(all, func(a, b driver.Actor) int { return strings.Compare(a.Name, b.Name) })
	if all[0].Name != "kept" || all[0].Node != "b" || all[1].Name != "votes" || all[1].Node != "c" {
		t.Errorf("%+v", all)
	}
	answer, err := second.Ask(t.Context(), protos.NewMessage(wrapperspb.Int64(2)))
	if err != nil || answer.Head.(*wrapperspb.Int64Value).Value != 42 {
		t.Errorf("%v, %v", answer, err)
	}
}

func TestNodeTimeoutIsCheckedBeforeTheNodeStarts(t *testing.T) {
	for value, want := range map[string]string{
		"1s":  "--node-timeout 1s; accepted is 2s or more",
		"0":   "--node-timeout 0s; accepted is 2s or more",
		"-5s": "--node-timeout -5s; accepted is 2s or more",
		"5":   "accepted is a duration such as 5s",
	} {
		code, _, errs := gradwireHere("node", "--insecure", "--name", "a", "--node-timeout", value)
		if code != cli.ExitInput || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d: %s", value, code, errs)
		}
	}
}

//go:build unix

package cli_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/turns"
)

// supervise starts a node again whenever it has died, until the test is over, and returns how often
// that was.
func (s *site) supervise(names ...string) (deaths func() int) {
	addresses := s.addresses()
	var mu sync.Mutex
	died, over := 0, make(chan struct{})
	var watching sync.WaitGroup
	for _, name := range names {
		watching.Go(func() {
			for p := s.nodes[name]; ; {
				ended := make(chan struct{})
				go func() {
					_ = p.Wait()
					close(ended)
				}()
				select {
				case <-over:
					_ = p.Process.Kill()
					<-ended
					return
				case <-ended:
				}
				mu.Lock()
				died++
				mu.Unlock()
				var seeds []string
				for other, address := range addresses {
					if other != name {
						seeds = append(seeds, address)
					}
				}
				p = s.program("node", "--name", name, "--bind", addresses[name], "--identity", name, "--join",
					strings.Join(seeds, ","), "--out", "records-"+name)
				p.Stdout, p.Stderr = nil, nil
				if err := p.Start(); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	s.t.Cleanup(func() {
		close(over)
		watching.Wait()
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return died
	}
}

// A submission that kills each process that carries it out, or hosts a node of it, ends after two
// have died, and says so. The others' submissions go on.
func TestSubmissionOfWhichProcessesDieIsFailedAndNamesThem(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	for _, place := range []string{"", "peer=a"} {
		t.Run("place "+place, func(t *testing.T) {
			s := settle(t, "a", "b", "c", "d")
			s.write("plan.yaml", strings.Replace(shortRuns, "kind: sgd, rate: 0.1", "kind: fatal", 1))
			s.write("healthy.yaml", shortRuns)
			deaths := s.supervise("a", "b", "c", "d")
			args := []string{"submit", s.path("plan.yaml"), "--repeats=3", "--detach"}
			if place != "" {
				args = append(args, "--place", place)
			}
			began := time.Now()
			id := strings.TrimSpace(s.must(args...))
			var now driver.Submission
			s.await("end", func() bool {
				now = (&succession{site: s, id: id}).now()
				return now.ID != "" && now.Over()
			})
			t.Logf("%d processes died within %v: %s", deaths(), time.Since(began).Round(time.Second), now.Error)
			if now.State != driver.Failed || !strings.Contains(now.Error, "died") {
				t.Errorf("%+v", now)
			}
			if n := deaths(); n < 2 || n > 8 {
				t.Errorf("%d processes died", n)
			}
			before := deaths()
			s.await("nodes", func() bool {
				_, out, _ := s.run("nodes")
				return strings.Count(out, "  up  ")+strings.Count(out, "  here  ") == 4
			})
			s.submit(s.path("healthy"), s.path("healthy.yaml"))
			if n := deaths() - before; n > 0 {
				t.Errorf("%d processes died later", n)
			}
		})
	}
}

// limited starts a node with a limit of its address space beyond that of an idle one.
func (s *site) limited(name string, megabytes int) {
	s.t.Helper()
	idle := s.idleSpace()
	p := s.program()
	p.Cmd = exec.Command("sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, idle+1024*megabytes), os.Args[0],
		"node", "--name", name, "--bind", "127.0.0.1:0", "--identity", name, "--join", s.seed, "--out", "records-"+name)
	p.Env, p.Dir = append(os.Environ(), asProgram+"=1", "GRADWIRE_JOIN=", "GRADWIRE_IDENTITY="), s.dir
	s.nodes[name] = p
	h := listen(s.t, p)
	s.t.Cleanup(func() {
		if h.mu.Lock(); s.t.Failed() {
			s.t.Logf("%s printed:\n%s", name, strings.Join(h.lines[:min(len(h.lines), 40)], "\n"))
		}
		h.mu.Unlock()
	})
	s.await("node "+name, h.has("ready at "))
	address := strings.TrimPrefix(h.find("ready at "), "ready at ")
	if s.seed == "" {
		s.seed, s.join = address, address
	}
}

// idleSpace is the address space of a node that does nothing, in kB.
func (s *site) idleSpace() (kilobytes int) {
	s.t.Helper()
	p := s.program("node", "--name", "idle", "--insecure", "--bind", "127.0.0.1:0", "--out", "records-idle")
	h := listen(s.t, p)
	s.await("idle node", h.has("ready at "))
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		s.t.Skip("address spaces are limited on Linux")
	}
	if err := p.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	p.end(s.t)
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "VmSize: %d", &kilobytes); err == nil {
			return kilobytes
		}
	}
	s.t.Fatalf("no VmSize in\n%s", text)
	return 0
}

// A plan that needs more memory than its processes may have is refused, and they go on.
func TestPlanForWhichProcessesHaveTooLittleMemoryIsRefused(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	s := newSite(t)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
		s.limited(name, 1600)
	}
	s.await("cluster", func() bool {
		_, out, _ := s.run("nodes")
		return strings.Count(out, "\n") == len(names)+1
	})
	s.write("large.yaml", strings.Replace(shortRuns, "[93, 8, 5]", "[93, 5000, 5000, 5]", 1)) // 102 MB each
	s.write("healthy.yaml", shortRuns)
	code, _, errs := s.run("submit", s.path("large.yaml"), "--detach", "--set", "nodes.peer.count=60")
	if code != cli.ExitInput || !strings.Contains(errs, "the limit of the address space (ulimit -v) leaves") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	s.submit(s.path("healthy"), s.path("healthy.yaml"))
	for _, name := range slices.Sorted(slices.Values(names)) {
		if p := s.nodes[name]; p.ProcessState != nil {
			t.Errorf("process %s has ended", name)
		}
	}
}

// stop ends a submission that kills one process after another, whichever process it asks and whatever
// that process does.
func TestStopEndsASubmissionThatKillsItsProcesses(t *testing.T) {
	lengthy(t)
	s := settle(t, "a", "b", "c", "d")
	s.write("plan.yaml", strings.Replace(shortRuns, "kind: sgd, rate: 0.1", "kind: fatal", 1))
	addresses := strings.Join(slices.Collect(maps.Values(s.addresses())), ",")
	deaths := s.supervise("a", "b", "c", "d")
	id := strings.TrimSpace(s.must("submit", s.path("plan.yaml"), "--repeats=3", "--detach"))
	s.await("death", func() bool { return deaths() > 0 })
	code, out, errs := s.run("stop", id, "--join", addresses)
	expectCode(t, cli.ExitDone, code, errs)
	var now driver.Submission
	s.await("end", func() bool {
		now = (&succession{site: s, id: id}).now()
		return now.ID != "" && now.Over()
	})
	t.Logf("%d processes died; stop printed %q; the submission is %s: %s", deaths(), out, now.State, now.Error)
	if now.State != driver.Stopped && now.State != driver.Failed {
		t.Errorf("%+v", now)
	}
	before := deaths()
	time.Sleep(3 * time.Second)
	if n := deaths() - before; n > 0 {
		t.Errorf("%d processes died after the end", n)
	}
}

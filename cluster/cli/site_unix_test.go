//go:build unix

package cli_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
)

// heard are the lines that a program has printed so far.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) has(part string) func() bool {
	return func() bool { return h.find(part) != "" }
}

func (h *heard) find(part string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// listen starts a program whose output is heard while it runs.
func listen(t *testing.T, p *program) *heard {
	t.Helper()
	p.Stdout, p.Stderr = nil, nil
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = p.Stdout
	h := &heard{}
	p.start(t)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			h.mu.Lock()
			h.lines = append(h.lines, s.Text())
			h.mu.Unlock()
		}
	}()
	return h
}

// site is a folder with a cluster of processes, and the operator who asks it. Tests with a site run
// side by side: they change neither the working folder nor the environment of this process.
type site struct {
	t        *testing.T
	dir      string
	operator string              // folder of the operator's identity
	seed     string              // address of the first node
	join     string              // address that commands ask
	nodes    map[string]*program // the process that has each name now
	said     map[string]*heard   // what that process has printed
	settings []string            // flags of all nodes that are started from now on
	shared   bool                // nodes keep their records in the site's default folder, as clients do
	records  string              // where nodes keep their records; empty for a folder each

	executable string // of the nodes that are started from now on; empty for this program
}

// newSite makes a site with an authority and an operator, beside those of other tests.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return siteAlone(t)
}

// siteAlone makes a site while no other test runs.
func siteAlone(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), nodes: map[string]*program{}, said: map[string]*heard{}}
	s.operator = s.path("operator")
	s.must("identity", "init", s.path("ca"))
	s.must("identity", "issue", s.path("ca"), "--operator", "--out", s.operator)
	return s
}

// settle makes a site with nodes of these names, each a process.
func settle(t *testing.T, names ...string) *site {
	t.Helper()
	return newSite(t).settle(names)
}

// settleAlone is settle for a test of how many steps nodes make: it runs while no other test takes
// the cores.
func settleAlone(t *testing.T, names ...string) *site {
	t.Helper()
	return siteAlone(t).settle(names)
}

func (s *site) settle(names []string) *site {
	s.t.Helper()
	for _, name := range names {
		s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
		address := s.start(name)
		if s.seed == "" {
			s.seed, s.join = address, address
		}
	}
	s.await("cluster", func() bool { return strings.Count(s.must("nodes"), "\n") == len(names)+1 })
	return s
}

// path returns the path of a file in the site's folder.
func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) { write(s.t, s.path(name), text) }

// program is gradwire as a process that works in the site's folder.
func (s *site) program(args ...string) *program {
	p := newProgram(s.t, args...)
	p.Dir = s.dir
	p.Env = append(p.Env, "GRADWIRE_JOIN=", "GRADWIRE_IDENTITY=")
	return p
}

// start starts the node of a name, and returns its address when it is part of the cluster.
func (s *site) start(name string) string {
	s.t.Helper()
	p := s.program("node", "--name", name, "--bind", "127.0.0.1:0", "--identity", name, "--join", s.seed)
	if !s.shared {
		p.Args = append(p.Args, "--out", cmp.Or(s.records, "records-"+name))
	}
	if s.executable != "" {
		p.Path = s.executable
	}
	p.Args = append(p.Args, s.settings...)
	s.nodes[name] = p
	h := listen(s.t, p)
	s.said[name] = h
	s.await("node "+name, h.has("ready at "))
	return strings.TrimPrefix(h.find("ready at "), "ready at ")
}

// flags adds those by which a command finds the site's cluster, where they are not given.
func (s *site) flags(args ...string) []string {
	if args[0] == "identity" {
		return args // it asks no cluster
	}
	if !slices.Contains(args, "--join") {
		args = append(slices.Clone(args), "--join", s.join)
	}
	if !slices.Contains(args, "--identity") {
		args = append(slices.Clone(args), "--identity", s.operator)
	}
	return args
}

// run runs a command within this process, as the operator.
func (s *site) run(args ...string) (code int, out, errs string) {
	return gradwireHere(s.flags(args...)...)
}

// must runs a command that must succeed, and returns what it printed.
func (s *site) must(args ...string) string {
	s.t.Helper()
	code, out, errs := s.run(args...)
	expectCode(s.t, cli.ExitDone, code, errs)
	return out
}

func (s *site) await(what string, condition func() bool) {
	s.t.Helper()
	await(s.t, what, condition)
}

// submit has a submission run to its end, and its record in a folder. It returns what is printed.
func (s *site) submit(folder string, args ...string) string {
	s.t.Helper()
	code, out, errs := s.run(append([]string{"submit", "--out", folder}, args...)...)
	if code != cli.ExitDegraded || !onlyLate(s.t, folder) {
		expectCode(s.t, cli.ExitDone, code, errs)
	}
	return out
}

// ends waits until a submission has ended, which it must as the state says, and fetches its record
// into a folder. It returns what fetch prints.
func (s *site) ends(id, state, folder string) string {
	s.t.Helper()
	var ended driver.Submission
	s.await("end", func() bool {
		ended = s.status(id)
		return ended.Over()
	})
	out := s.must("fetch", id, "--out", folder)
	if ended.State != state && (state != driver.Done || ended.State != driver.Degraded || !onlyLate(s.t, folder)) {
		s.t.Fatalf("%+v, want %s\n%s", ended, state, s.must("logs", id))
	}
	return out
}

// onlyLate reports whether the runs in a folder are degraded for nothing but a late coordinator.
func onlyLate(t *testing.T, folder string) bool {
	t.Helper()
	s, err := record.ReadSummary(folder)
	if err != nil {
		t.Fatal(err)
	}
	return recordtest.OnlyLate(s)
}

func (s *site) status(id string) (all driver.Submission) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must("status", id, "--format", "json")), &all); err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *site) logged(id, what string) func() bool {
	return func() bool { return strings.Contains(s.must("logs", id), what) }
}

// when is the time at which something was logged of a submission.
func (s *site) when(id, what string) time.Time {
	s.t.Helper()
	for line := range strings.Lines(s.must("logs", id)) {
		if strings.Contains(line, what) {
			text, _, _ := strings.Cut(line, " ")
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				s.t.Fatal(err)
			}
			return at
		}
	}
	s.t.Fatalf("nothing was logged about %s", what)
	return time.Time{}
}

// members are the nodes as a node of the cluster knows them.
func (s *site) members(flags ...string) (all []driver.Node) {
	s.t.Helper()
	out := s.must(append([]string{"nodes", "--format", "json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// actors are those that belong to no run.
func (s *site) actors() (all []driver.Actor) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must("actors", "--format", "json")), &all); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// kill kills the process of a node, and waits for its end.
func (s *site) kill(name string) {
	s.t.Helper()
	s.signal(os.Kill, name)
	s.nodes[name].end(s.t)
}

// signal sends a signal to the processes of nodes.
func (s *site) signal(sig os.Signal, names ...string) {
	s.t.Helper()
	for _, name := range names {
		if err := s.nodes[name].Process.Signal(sig); err != nil {
			s.t.Fatal(err)
		}
	}
}

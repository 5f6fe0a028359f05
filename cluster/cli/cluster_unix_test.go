//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
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

// settle makes an authority, an operator and nodes of these names, each a process of its own, in the working folder.
func settle(t *testing.T, names ...string) (seed string, nodes map[string]*program) {
	t.Helper()
	t.Chdir(t.TempDir())
	must(t, "identity", "init", "ca")
	must(t, "identity", "issue", "ca", "--operator=op")
	nodes = map[string]*program{}
	for _, name := range names {
		must(t, "identity", "issue", "ca", "--node", name)
		p, address := startNode(t, name, seed)
		nodes[name] = p
		if seed == "" {
			seed = address
		}
	}
	t.Setenv("GRADWIRE_JOIN", seed)
	t.Setenv("GRADWIRE_IDENTITY", "op")
	await(t, "cluster", func() bool { return strings.Count(must(t, "nodes"), "\n") == len(names)+1 })
	return seed, nodes
}

func startNode(t *testing.T, name, seed string) (*program, string) {
	t.Helper()
	p := newProgram(t, "node", "--name", name, "--bind", "127.0.0.1:0", "--identity", name, "--join", seed, "--out", "records-"+name)
	h := listen(t, p)
	await(t, "node "+name, h.has("ready at "))
	return p, strings.TrimPrefix(h.find("ready at "), "ready at ")
}

// must runs a command within this process, which must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := gradwire(t, args...)
	expectCode(t, cli.ExitDone, code, errs)
	return out
}

func status(t *testing.T, id string) (s driver.Submission) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, "status", id, "--format", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func logged(t *testing.T, id, what string) func() bool {
	return func() bool { return strings.Contains(must(t, "logs", id), what) }
}

func kill(t *testing.T, p *program) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
}

// asynchronous goes on as long as it is let.
const asynchronous = `name: asynchronous
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes:
  - {name: server, role: server}
  - {name: b, role: worker, compute: {step: 5ms}}
  - {name: c, role: worker, compute: {step: 5ms}}
evaluate: {every: 100ms}
stop: {time: 1h}
`

func TestNodeThatIsKilledIsMissedAndTakesItsPartAgainWhenItIsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	seed, nodes := settle(t, "a", "b", "c")
	write(t, "plan.yaml", asynchronous)
	id := strings.TrimSpace(must(t, "submit", "plan.yaml", "--place", "server=a", "--detach"))
	await(t, "beginning", logged(t, id, "began on a, b, c"))
	kill(t, nodes["b"])
	await(t, "news of b", logged(t, id, "without b from now on"))
	if s := status(t, id); s.State != driver.Running || s.Placement["b"] != "b" || s.Placement["server"] != "a" {
		t.Fatalf("%+v", s)
	}
	again, _ := startNode(t, "b", seed)
	await(t, "return of b", logged(t, id, "b is back"))
	if err := again.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if s := again.end(t); s.ExitStatus() != cli.ExitDone {
		t.Errorf("b ends with %v", s)
	}
	await(t, "second news of b", func() bool { return strings.Count(must(t, "logs", id), "without b from now on") >= 2 })
	if out := must(t, "stop", id[:4]); !strings.Contains(out, id+" is stopped with 0 of 1 runs") {
		t.Error(out)
	}
}

func TestRunIsGivenUpWhenTheProcessThatConductsItIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	seed, nodes := settle(t, "a", "b")
	write(t, "plan.yaml", asynchronous)
	var all []driver.Node
	if err := json.Unmarshal([]byte(must(t, "nodes", "--format", "json")), &all); err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	id := strings.TrimSpace(must(t, "submit", "plan.yaml", "--detach"))
	await(t, "beginning", logged(t, id, "began on a, b"))
	kill(t, nodes["a"])
	t.Setenv("GRADWIRE_JOIN", seed+","+all[1].Address) // the first does not answer
	await(t, "news of a", func() bool { return !strings.Contains(must(t, "nodes"), "\na ") })
	if s := status(t, id); s.Process != "a" || s.State != driver.Running || s.Away.IsZero() {
		t.Errorf("%+v", s)
	}
	if out := must(t, "status", id); !strings.Contains(out, "a is since 2") {
		t.Error(out)
	}
	for _, args := range [][]string{{"logs", id}, {"stop", id}, {"fetch", id, "--out", "x"}, {"remove", id}} {
		code, _, errs := gradwire(t, args...)
		if code != cli.ExitTryAgain || !strings.Contains(errs, "run "+id+" is kept by process a, which is away since 2") {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
	code, _, errs := gradwire(t, "status", "zzz")
	if code != cli.ExitInput || !strings.Contains(errs, "the cluster knows no run") {
		t.Errorf("code %d: %s", code, errs)
	}
	must(t, "submit", "plan.yaml", "--set", "stop.time=200ms") // b is free for it
	hangUp(t, "b", nodes["b"])
	if err := nodes["b"].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := nodes["b"].end(t); s.ExitStatus() != cli.ExitDone {
		t.Errorf("b ends with %v", s) // it waits for all that it hosts
	}
}

// hangUp gives a node a certificate that ends soon, has it read with SIGHUP, and then one that holds.
func hangUp(t *testing.T, name string, node *program) {
	t.Helper()
	for _, x := range []struct{ lifetime, want string }{{"1h", "EXPIRES 2"}, {"9000h", "until 2"}} {
		next := "next-" + x.lifetime
		must(t, "identity", "issue", "ca", "--node", name, "--again", "--lifetime", x.lifetime, "--out", next)
		for _, file := range []string{"cert.pem", "cert.key"} {
			if err := os.Rename(filepath.Join(next, file), filepath.Join(name, file)); err != nil {
				t.Fatal(err)
			}
		}
		if err := node.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		await(t, "new certificate", func() bool { return strings.Contains(must(t, "nodes"), x.want) })
	}
}

func TestRunGoesOnWhenItsDriverIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	settle(t, "a", "b")
	write(t, "plan.yaml", strings.Replace(asynchronous, "1h", "2s", 1))
	submit := newProgram(t, "submit", "plan.yaml")
	h := listen(t, submit)
	await(t, "submission", h.has("run "))
	id := strings.Fields(h.find("run "))[1]
	kill(t, submit)
	await(t, "end", func() bool { return status(t, id).State == driver.Done })
	if out := must(t, "fetch", id, "--out", "fetched"); !strings.Contains(out, "record in fetched") {
		t.Error(out)
	}
	s, err := record.ReadSummary("fetched")
	if err != nil || !s.Complete || s.Runs[0].Clock != "cluster" || s.Runs[0].Duration < 1.9 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, name := range []string{"plan.yaml", "curve.csv", "links.csv", "updates.csv", "runs/0000/model.safetensors"} {
		if _, err := os.Stat(filepath.Join("fetched", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestThrowAwayClusterLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	enter(t, strings.Replace(asynchronous, "1h", "200ms", 1))
	t.Setenv("TMPDIR", t.TempDir())
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		up := newProgram(t, "up", "--nodes", "2", "--verbose")
		h := listen(t, up)
		await(t, "cluster", h.has("export "))
		for _, assignment := range strings.Fields(h.find("export "))[1:] {
			key, value, _ := strings.Cut(assignment, "=")
			t.Setenv(key, value)
		}
		out := must(t, "submit", "plan.yaml", "--out", filepath.Join("results", signal.String()))
		if !regexp.MustCompile(`record in results/\S+\n`).MatchString(out) {
			t.Error(out)
		}
		expectSummary(t, must(t, "submit", "plan.yaml", "--out", signal.String(), "--format", "json"), signal.String())
		before := must(t, "runs")
		if code, _, errs := gradwire(t, "submit", "plan.yaml", "--out", signal.String()); code != cli.ExitInput || !strings.Contains(errs, "is not empty") {
			t.Errorf("code %d: %s", code, errs)
		}
		if after := must(t, "runs"); after != before {
			t.Errorf("submitted though its record cannot be copied: %s", after)
		}
		var told map[string]string
		out = must(t, "submit", "plan.yaml", "--detach", "--format", "json")
		if err := json.Unmarshal([]byte(out), &told); err != nil || len(told) != 1 {
			t.Errorf("%v: %s", err, out)
		}
		await(t, "end", func() bool { return status(t, told["run"]).State == driver.Done })
		if keys, _ := filepath.Glob(filepath.Join(os.TempDir(), "gradwire-up-*", "*", "ca.key")); len(keys) > 0 {
			t.Errorf("the authority's key lies in %v", keys)
		}
		join := os.Getenv("GRADWIRE_JOIN")
		if err := up.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if s := up.end(t); signal == os.Interrupt && s.ExitStatus() != cli.ExitDone {
			t.Errorf("up ends with %v: %v", s, h.lines)
		}
		await(t, "end of the nodes", func() bool {
			code, _, _ := gradwire(t, "nodes", "--join", join)
			return code != cli.ExitDone
		})
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "gradwire-*")); signal == os.Interrupt && len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

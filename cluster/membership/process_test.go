package membership

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test's own program is the process of a node where this is its name.
const (
	childName = "MEMBERSHIP_TEST_NAME"
	childSeed = "MEMBERSHIP_TEST_SEED"
	childBusy = "MEMBERSHIP_TEST_BUSY"
)

// saturation is how long the cores are kept busy.
var saturation = flag.Duration("saturation", 65*time.Second, "how long all cores compute while false alarms are counted")

// child is a node in a process of its own. It writes its address and then its events,
// and lives as long as its input is open.
func child(name string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, name, err)
		return 1
	}
	var n childNode
	defer n.end()
	if err := n.start(name); err != nil {
		return fail(err)
	}
	busy, _ := strconv.Atoi(os.Getenv(childBusy)) // none where it is not set
	for range busy {
		go func() {
			for x := 1.0; x > 0; x = x*1.0000001 + 1 {
				if x > 1e300 {
					x = 1
				}
			}
		}()
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fail(err)
	}
	return 0
}

// process is such a process, seen from the test.
type process struct {
	name, address string
	cmd           *exec.Cmd
	stdin         io.Closer
	lines         chan string
}

func spawn(t *testing.T, name, seed, busy string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childName+"="+name, childSeed+"="+seed, childBusy+"="+busy)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, cmd: cmd, stdin: stdin, lines: make(chan string, 10_000)}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p.address = p.line(t)
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	select {
	case l, ok := <-p.lines:
		if ok {
			return l
		}
		t.Fatalf("process %s ended", p.name)
	case <-time.After(patienceOfTests):
		t.Fatalf("process %s says nothing", p.name)
	}
	return ""
}

// heard returns when the process heard this, which must be the next it says.
func (p *process) heard(t *testing.T, kind Kind, name string) time.Time {
	t.Helper()
	l := p.line(t)
	what, at, _ := strings.Cut(l, "@")
	if want := kind.String() + " " + name; what != want {
		t.Fatalf("process %s says %q, want %q", p.name, what, want)
	}
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, ns)
}

// spawnAll starts processes that have all heard of each other.
func spawnAll(t *testing.T, n int, busy string) []*process {
	t.Helper()
	var all []*process
	for i := range n {
		seed := ""
		if i > 0 {
			seed = all[0].address
		}
		all = append(all, spawn(t, fmt.Sprintf("p%d", i), seed, busy))
	}
	for _, p := range all {
		for range n - 1 {
			if l := p.line(t); !strings.HasPrefix(l, "joined") {
				t.Fatalf("process %s says %q", p.name, l)
			}
		}
	}
	return all
}

// A process is killed; the others hear of it in time.
func TestKilledProcessIsNoticed(t *testing.T) {
	all := spawnAll(t, 8, "")
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	var first, last, every []float64
	for i := range rounds {
		victim := all[len(all)-1-i%7]
		killed := time.Now()
		if err := victim.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var times []float64
		for _, p := range all {
			if p != victim {
				times = append(times, p.heard(t, Failed, victim.name).Sub(killed).Seconds())
			}
		}
		slices.Sort(times)
		first, last, every = append(first, times[0]), append(last, times[6]), append(every, times...)
		j := slices.Index(all, victim)
		all[j] = spawn(t, victim.name, all[0].address, "")
		for _, p := range all {
			if p != all[j] {
				p.heard(t, Returned, victim.name)
			}
		}
		for range 7 {
			all[j].line(t)
		}
	}
	slices.Sort(every)
	slices.Sort(first)
	slices.Sort(last)
	t.Logf("8 processes, %d killed: heard by the first after %.2f to %.2f s, by the last after %.2f to %.2f s, in the median %.2f s",
		rounds, first[0], first[rounds-1], last[0], last[rounds-1], every[len(every)/2])
	if worst := last[rounds-1]; worst > 10 {
		t.Errorf("a killed process was noticed after %.1f s", worst)
	}
}

// Every process computes on all cores; nobody may be taken for dead.
func TestSaturatedProcessesAreNotTakenForDead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a minute")
	}
	all := spawnAll(t, 8, strconv.Itoa(runtime.NumCPU()))
	time.Sleep(*saturation) // what is measured is that nothing happens in this time
	alarms := 0
	for _, p := range all {
		for len(p.lines) > 0 {
			l := <-p.lines
			t.Logf("process %s says %q", p.name, l)
			if strings.HasPrefix(l, "failed") {
				alarms++
			}
		}
	}
	t.Logf("8 processes on %d cores, each with %d computing goroutines, %v: %d false alarms", runtime.NumCPU(), runtime.NumCPU(), *saturation, alarms)
	if alarms > 0 {
		t.Errorf("%d false alarms", alarms)
	}
}

package processes

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
)

// running is the execution of a programme.
type running struct {
	*cluster
	submissions []*submission
	random      *rand.Rand // used by one goroutine at a time
}

// submission is a workload of a programme, with the answers that clients have received about it.
type submission struct {
	*workload
	r *running

	mu       sync.Mutex
	id       string            // empty until a process has acknowledged it
	last     driver.Submission // the latest answer
	holders  []string          // processes that have held the record or a copy
	survives bool              // several processes have held copies
	ended    driver.Submission // the first answer with a final state
	kept     []restart         // interruptions that the record must mention
	stopped  bool              // an operator has stopped the submission
}

// restart is a run that was under way, with checkpoints, when all processes were killed.
type restart struct {
	run     string
	damaged bool // the fault damaged each checkpoint
	at      time.Time
}

// now returns the latest answer about the submission.
func (s *submission) now() driver.Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// acknowledged returns the submission's id; empty until a process has acknowledged it.
func (s *submission) acknowledged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// submit repeats the submission until a process acknowledges it, and then watches it.
func (s *submission) submit(ctx context.Context) {
	if rest(ctx, s.At) != nil {
		return
	}
	path := s.r.path(s.Name + ".yaml")
	if err := os.WriteFile(path, []byte(s.yaml()), 0o600); err != nil {
		s.r.failed(err)
		return
	}
	first := s.r.process(s.To).address
	for tries := 0; ctx.Err() == nil; tries++ {
		addresses := append([]string{first}, s.r.addresses()...)
		args := []string{"submit", path, "--detach", "--repeats", strconv.Itoa(s.Runs)}
		code, out, errs := s.r.ask(ctx, addresses, args...)
		if code == cli.ExitInput && ctx.Err() == nil && strings.Contains(errs, s.Name+".yaml") {
			s.r.event("submit of %s fails: %.200s", s.Name, errs)
		}
		if code == cli.ExitDone {
			s.mu.Lock()
			s.id = strings.TrimSpace(out)
			s.mu.Unlock()
			s.r.event("%s is acknowledged as %s %s", s.Name, s.id, strings.TrimSpace(errs))
			break
		}
		if rest(ctx, time.Second) != nil {
			return
		}
	}
	s.watch(ctx)
}

// watch polls the state of the submission until the programme is over.
func (s *submission) watch(ctx context.Context) {
	random := rand.New(rand.NewPCG(s.r.programme.Seed, 12)) //nolint:gosec // a random order of processes
	for ctx.Err() == nil {
		s.poll(ctx, random)
		if s.Stop {
			s.halt(ctx)
		}
		if rest(ctx, 150*time.Millisecond) != nil {
			return
		}
	}
}

// poll asks the processes that can answer, in random order, for the submission's state.
func (s *submission) poll(ctx context.Context, random *rand.Rand) {
	before := map[string]int{}
	var addresses []string
	for _, i := range random.Perm(len(s.r.processes)) {
		p := s.r.processes[i]
		if changes, answers := p.state(); answers {
			before[p.name] = changes
			addresses = append(addresses, p.address)
		}
	}
	if len(addresses) == 0 {
		return
	}
	asked := time.Now()
	code, out, errs := s.r.ask(ctx, addresses, "status", s.acknowledged(), "--format", "json")
	if ctx.Err() != nil {
		return
	}
	if took := time.Since(asked); took > 15*time.Second {
		s.r.event("status of %s took %v", s.Name, took.Round(time.Millisecond))
	}
	var now driver.Submission
	switch {
	case code == cli.ExitInput, code == cli.ExitTryAgain:
		s.unknown(code, before, errs)
	case json.Unmarshal([]byte(out), &now) == nil && now.ID != "":
		s.heard(now)
	}
}

// unknown checks the answer that no process knows the submission: no process that could answer has
// it.
func (s *submission) unknown(code int, before map[string]int, errs string) {
	s.mu.Lock()
	holders := s.holders
	s.mu.Unlock()
	for _, name := range holders {
		p := s.r.process(name)
		changes, answers := p.state()
		if was, up := before[name]; up && answers && changes == was && !p.hasLost() {
			if code == cli.ExitTryAgain { // on a busy machine, answers come late
				s.r.event("status of %s, which %s has, ends with exit code %d: %s", s.Name, name, code, errs)
				return
			}
			s.r.broken("known", "status of %s, which %s has, ends with exit code %d: %s", s.Name, name, code, errs)
			return
		}
	}
}

// heard records an answer, and compares it with earlier answers.
func (s *submission) heard(now driver.Submission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.last
	s.last = now
	s.survives = s.survives || len(now.Holders) > 0
	for _, name := range append(slices.Clone(now.Holders), now.Process) {
		lacks := slices.ContainsFunc(now.Lacking, func(why string) bool { return strings.HasPrefix(why, name+":") })
		if name != "" && !lacks && !slices.Contains(s.holders, name) {
			s.holders = append(s.holders, name)
		}
	}
	if now.State != before.State || now.Process != before.Process {
		s.r.event("%s is %s at %s, %d of %d %s", s.Name, now.State, now.Process, now.Done, now.Total, now.Error)
	}
	if now.State != driver.Done && now.State != driver.Degraded && now.State != driver.Failed &&
		now.State != driver.Stopped || !now.Away.IsZero() {
		return
	}
	switch {
	case s.ended.ID == "":
		s.ended = now
	case s.ended.State != now.State || s.ended.Done != now.Done:
		s.r.broken("one-owner", "%s ended as %s with %d runs at %s, and as %s with %d runs at %s", s.Name,
			s.ended.State, s.ended.Done, s.ended.Process, now.State, now.Done, now.Process)
	}
}

// halt stops the submission, as an operator, once it has aborted a process.
func (s *submission) halt(ctx context.Context) {
	now := s.now()
	if s.r.poisoned() == 0 || now.Over() {
		return
	}
	s.Stop = false
	began := time.Now()
	for ctx.Err() == nil {
		code, out, errs := s.r.ask(ctx, s.r.addresses(), "stop", s.acknowledged())
		took := time.Since(began)
		switch {
		case code == cli.ExitDone, strings.Contains(errs, "is over already"):
			s.r.event("stop of %s took %v: %s", s.Name, took.Round(time.Millisecond),
				strings.TrimSpace(out+errs))
			s.mu.Lock()
			s.stopped = true
			s.mu.Unlock()
			return
		case took > time.Minute && ctx.Err() == nil:
			s.r.broken("poison-ends", "stop of %s fails for %v: exit code %d: %s", s.Name, took, code, errs)
			return
		}
		_ = rest(ctx, time.Second)
	}
}

// logs returns the log of the submission; empty if no process answers.
func (s *submission) logs(ctx context.Context) string {
	_, out, _ := s.r.ask(ctx, s.r.addresses(), "logs", s.acknowledged())
	return out
}

// diskFault matches a status or log line about a disk that rejects writes.
var diskFault = regexp.MustCompile(`no space left on device|read-only file system|could not keep the record`)

// named waits until the status or log of a running submission names a process whose disk rejects
// writes. It reports a violation if several runs finish before that.
func (r *running) named(ctx context.Context, p *process) {
	const enough = 5 // finished runs, each copied by the holders
	began := time.Now()
	first := map[*submission]int{}
	for ctx.Err() == nil {
		held := false
		for _, s := range r.submissions {
			now := s.now()
			here := now.Process == p.name || slices.Contains(now.Holders, p.name)
			if now.ID == "" || now.Over() || s.poisonous() || !here {
				continue
			}
			held = true
			if _, seen := first[s]; !seen {
				first[s] = now.Done
			}
			_, out, _ := r.ask(ctx, r.addresses(), "status", s.acknowledged())
			for line := range strings.Lines(out + s.logs(ctx)) {
				if diskFault.MatchString(line) && regexp.MustCompile(`\b`+p.name+`\b`).MatchString(line) {
					r.event("clients learn of the disk of %s after %v: %s", p.name,
						time.Since(began).Round(time.Millisecond), strings.TrimSpace(line))
					return
				}
			}
			if now.Done >= first[s]+enough {
				r.broken("disk-named", "%s finished %d runs; neither status nor log names the disk of %s\n%s", s.Name,
					now.Done-first[s], p.name, out)
				return
			}
		}
		if !held || time.Since(began) > 2*time.Minute {
			r.event("no client learned of the disk of %s; a running submission uses it: %v", p.name, held)
			return
		}
		_ = rest(ctx, 2*look)
	}
}

// runFolders returns the folders of a submission's runs at a process, in the record or its copy.
func (p *process) runFolders(id string) []string {
	own, _ := filepath.Glob(filepath.Join(p.records(), "*-"+id, "runs", "*"))
	copies, _ := filepath.Glob(filepath.Join(p.records(), ".held-*", id, "runs", "*"))
	return append(own, copies...)
}

// checkpointsOf returns the complete checkpoints of a run that has not finished.
func checkpointsOf(run string) []string {
	if _, err := os.Stat(filepath.Join(run, "run.json")); err == nil {
		return nil
	}
	all, _ := filepath.Glob(filepath.Join(run, "checkpoints", "*.state"))
	return slices.DeleteFunc(all, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "manifest.json"))
		return err != nil
	})
}

// savedRuns returns, by unfinished run of a submission, the number of processes with a checkpoint.
func (r *running) savedRuns(s *submission) map[string]int {
	n := map[string]int{}
	for _, p := range r.processes {
		for _, run := range p.runFolders(s.acknowledged()) {
			if len(checkpointsOf(run)) > 0 {
				n[filepath.Base(run)]++
			}
		}
	}
	return n
}

// savedEverywhere reports whether each holder has a checkpoint of a run under way.
func (r *running) savedEverywhere(s *submission) bool {
	if s.acknowledged() == "" {
		return false
	}
	for _, n := range r.savedRuns(s) {
		if n >= 3 {
			return true
		}
	}
	return false
}

// interrupted records the runs that have checkpoints at all holders, and flips a bit in each
// checkpoint if damage is true. No process is running.
func (r *running) interrupted(damage bool) {
	for _, s := range r.submissions {
		if s.acknowledged() == "" {
			continue
		}
		for run, n := range r.savedRuns(s) {
			if n >= 3 {
				r.event("run %s of %s has checkpoints at %d processes", run, s.Name, n)
				s.mu.Lock()
				s.kept = append(s.kept, restart{run, damage, time.Now()})
				s.mu.Unlock()
			}
		}
		for _, p := range r.processes {
			for _, run := range p.runFolders(s.acknowledged()) {
				all, _ := filepath.Glob(filepath.Join(run, "checkpoints", "*.state"))
				for _, dir := range all {
					if damage {
						r.failed(changeBit(dir, r.random))
					}
				}
			}
		}
	}
}

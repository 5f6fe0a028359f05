package processes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
)

// stuckAfter is how long a submission of a cluster that nothing disturbs may show no progress.
const stuckAfter = 2 * time.Minute

// quiet waits until each submission has ended and its copies are complete.
func (r *running) quiet(ctx context.Context) {
	var before string
	for last := time.Now(); ctx.Err() == nil; {
		var now strings.Builder
		over := true
		for _, s := range r.submissions {
			n := s.now()
			fmt.Fprintf(&now, "%s: %q is %q at %q, %d of %d, %.1f %%, away %v, lacking %v\n", s.Name, n.ID,
				n.State, n.Process, n.Done, n.Total, 100*n.Share, !n.Away.IsZero(), n.Lacking)
			copied := len(n.Lacking) == 0 || r.lostDisk() // known: a holder that has lost its copy may get no other
			over = over && n.ID != "" && n.Over() && n.State != driver.Lost && n.Away.IsZero() && copied
		}
		switch {
		case over:
			return
		case now.String() != before:
			before, last = now.String(), time.Now()
		case time.Since(last) > stuckAfter:
			r.broken("ends", "nothing happens for %v, and no fault is left:\n%s", stuckAfter, before)
			return
		}
		_ = rest(ctx, 5*look)
	}
}

// lostDisk reports whether a fault has deleted records.
func (r *running) lostDisk() bool {
	return slices.ContainsFunc(r.processes, (*process).hasLost)
}

// check checks a submission that has ended.
func (s *submission) check(ctx context.Context) {
	now := s.now()
	s.mu.Lock()
	stopped, survives := s.stopped, s.survives
	s.mu.Unlock()
	switch {
	case s.poisonous() && now.State != driver.Failed && now.State != driver.Stopped && !stopped,
		s.poisonous() && now.State == driver.Failed && !strings.Contains(now.Error, "died"):
		s.r.broken("poison-ends", "%s, which kills its processes, is %s: %s", s.Name, now.State, now.Error)
	case now.State == driver.Failed && now.Error == "",
		now.State == driver.Interrupted && (now.Error == "" || survives),
		now.State == driver.Stopped && !stopped:
		s.r.broken("ends", "%s is %s: %q", s.Name, now.State, now.Error)
	}
	if all := s.enders(now.ID); len(all) > 1 {
		s.r.broken("one-owner", "several processes brought %s to its end: %s", s.Name, strings.Join(all, "; "))
	} else {
		s.r.event("%s was brought to its end by %s", s.Name, strings.Join(all, ""))
	}
	dir := s.r.path("fetched-" + s.Name)
	if code, _, errs := s.r.ask(ctx, s.r.addresses(), "fetch", now.ID, "--out", dir); code != 0 && ctx.Err() == nil {
		if now.State == driver.Done || now.State == driver.Degraded {
			s.r.broken("record-whole", "%s is %s, and its record cannot be fetched: exit code %d: %s", s.Name,
				now.State, code, errs)
		}
		return
	}
	if now.State == driver.Done || now.State == driver.Degraded {
		s.whole(ctx, dir)
	}
	s.copies(ctx, dir)
}

// enders are the processes that have brought the submission to its end, with what they say of it.
func (s *submission) enders(id string) (all []string) {
	ended := regexp.MustCompile(`(?m)^\S+ ` + id + ` ((done|degraded), record in .*|(failed|stopped): .*)$`)
	for _, p := range s.r.processes {
		text, err := os.ReadFile(p.logPath())
		if err != nil {
			s.r.failed(err)
		}
		if m := ended.FindSubmatch(text); m != nil {
			all = append(all, fmt.Sprintf("%s: %s", p.name, m[1]))
		}
	}
	return all
}

// whole checks that a record has each run once, and says what has become of it.
func (s *submission) whole(ctx context.Context, dir string) {
	sum, err := record.ReadSummary(dir)
	if err != nil {
		s.r.broken("record-whole", "%s: %v", s.Name, err)
		return
	}
	var numbers []int
	reason := s.now().State == driver.Done
	for _, run := range sum.Runs {
		numbers = append(numbers, run.Number)
		reason = reason || run.Outcome != record.Done && len(run.Incidents) > 0
		if _, err := os.Stat(filepath.Join(dir, record.RunFile(run.Number))); err != nil {
			s.r.broken("record-whole", "%s: %v", s.Name, err)
		}
	}
	slices.Sort(numbers)
	if len(numbers) != s.Runs || len(slices.Compact(numbers)) != s.Runs || numbers[s.Runs-1] != s.Runs-1 {
		s.r.broken("record-whole", "%s is %s with runs %v of %d", s.Name, s.now().State, numbers, s.Runs)
	}
	if !reason {
		s.r.broken("ends", "%s is %s, and no run has an incident", s.Name, s.now().State)
	}
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	if len(kept) > 0 {
		log := s.logs(ctx)
		for _, k := range kept {
			s.loss(&sum, k, log)
		}
	}
}

// loss checks that a run whose processes were all killed has resumed from a checkpoint, or that its
// record says that it has begun anew.
func (s *submission) loss(sum *record.Summary, k restart, log string) {
	number, err := strconv.Atoi(k.run)
	i := slices.IndexFunc(sum.Runs, func(r record.Run) bool { return r.Number == number })
	if err != nil || i < 0 {
		return // record-whole
	}
	if after := resumption(log, number, k.at); k.damaged && strings.Contains(after, "goes on from its checkpoint") {
		s.r.broken("damage-refused", "each checkpoint of run %d of %s was changed, and %s", number, s.Name, after)
	}
	says := func(what string) bool {
		return slices.ContainsFunc(sum.Runs[i].Incidents, func(i record.Incident) bool {
			return strings.Contains(i.What, what)
		})
	}
	resumed, lost := says("went on from its state here"), says("what was saved of the run was lost")
	if k.damaged && !lost || !k.damaged && !resumed {
		s.r.broken("loss-told", "run %d of %s was killed when each holder had a checkpoint (damaged: %v); its record "+
			"does not say that it went on or was lost: %+v", number, s.Name, k.damaged, sum.Runs[i])
	}
}

// resumption is the first line of a log after an instant that says whether a run resumes.
func resumption(log string, number int, after time.Time) string {
	run := fmt.Sprintf("run %d", number)
	for line := range strings.Lines(log) {
		text, what, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || !at.After(after) || !strings.HasPrefix(what, run+" ") && !strings.HasPrefix(what, run+":") {
			continue
		}
		if strings.Contains(what, "begins anew") || strings.Contains(what, "goes on from its checkpoint") {
			return strings.TrimSpace(what)
		}
	}
	return ""
}

// compared are the files of a record that all of its copies have.
var compared = []string{"plan.yaml", "summary.json", "curve.csv", "links.csv", "updates.csv"}

// copies waits until one process has the record, and others have equal copies.
func (s *submission) copies(ctx context.Context, fetched string) {
	id, fault := s.now().ID, ""
	limit := time.Now().Add(stuckAfter)
	for ctx.Err() == nil {
		if fault = s.differ(id, fetched); fault == "" {
			return
		}
		if time.Now().After(limit) {
			s.r.broken("copies-agree", "%s: %s", s.Name, fault)
			return
		}
		_ = rest(ctx, 5*look)
	}
}

// differ says how the copies of a record differ from the fetched one; empty if they do not.
func (s *submission) differ(id, fetched string) string {
	records, copies := 0, 0
	for _, p := range s.r.processes {
		own, _ := filepath.Glob(filepath.Join(p.records(), "*-"+id))
		held, _ := filepath.Glob(filepath.Join(p.records(), ".held-*", id))
		if p.name != s.now().Process && p.handed { // known: it leaves an incomplete folder of the record behind
			own = slices.DeleteFunc(own, func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, "summary.json"))
				if err != nil {
					s.r.event("%s is left of the record that %s has handed over", dir, p.name)
				}
				return err != nil
			})
		}
		records, copies = records+len(own), copies+len(own)+len(held)
		for _, dir := range append(own, held...) {
			if _, err := os.Stat(filepath.Join(fetched, "summary.json")); err != nil {
				continue // it ended before its first run
			}
			for _, name := range compared {
				want, err := os.ReadFile(filepath.Join(fetched, name))
				if err != nil {
					return err.Error()
				}
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
					return fmt.Sprintf("%s of the copy in %s is not that of the fetched record: %v", name, dir, err)
				}
			}
		}
	}
	now := s.now()
	if records > 1 || len(now.Holders) > 1 && copies < 2 {
		return fmt.Sprintf("%d records and %d copies in all, with holders %v", records, copies, now.Holders)
	}
	return ""
}

// final checks what must hold when all has ended, and ends the processes.
func (r *running) final(ctx context.Context) {
	_, list, _ := r.ask(ctx, r.addresses(), "submissions")
	for _, s := range r.submissions {
		if n := strings.Count(list, s.acknowledged()); n != 1 && ctx.Err() == nil {
			r.broken("record-whole", "%s is listed %d times:\n%s", s.Name, n, list)
		}
		s.check(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	var ends sync.WaitGroup
	for _, p := range r.processes {
		ends.Go(func() { p.end(syscall.SIGTERM) })
	}
	ends.Wait()
	r.event("all processes have ended")
}

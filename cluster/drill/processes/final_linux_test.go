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

// stuckAfter bounds the time without progress of any submission in an undisturbed cluster.
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
			copied := len(n.Lacking) == 0 || r.lostDisk() // known: a lost copy may not be replaced
			over = over && n.ID != "" && n.Over() && n.State != driver.Lost && n.Away.IsZero() && copied
		}
		switch {
		case over:
			return
		case now.String() != before:
			before, last = now.String(), time.Now()
		case time.Since(last) > stuckAfter:
			r.broken("ends", "no progress for %v after the last fault:\n%s", stuckAfter, before)
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
		s.r.broken("one-owner", "several processes ended %s: %s", s.Name, strings.Join(all, "; "))
	} else {
		s.r.event("%s ended at %s", s.Name, strings.Join(all, ""))
	}
	dir := s.r.path("fetched-" + s.Name)
	if code, _, errs := s.r.ask(ctx, s.r.addresses(), "fetch", now.ID, "--out", dir); code != 0 && ctx.Err() == nil {
		if now.State == driver.Done || now.State == driver.Degraded {
			s.r.broken("record-whole", "fetch fails for the record of %s, which is %s: exit code %d: %s", s.Name,
				now.State, code, errs)
		}
		return
	}
	if now.State == driver.Done || now.State == driver.Degraded {
		s.whole(ctx, dir)
	}
	s.copies(ctx, dir)
}

// enders returns the processes whose logs say that they ended the submission, with that log line.
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

// whole checks that a record has each run exactly once, and gives a reason for each degraded
// submission.
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
		s.r.broken("record-whole", "%s is %s, but its record has runs %v of %d", s.Name, s.now().State, numbers, s.Runs)
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

// loss checks a run that was under way when all processes were killed: it has resumed from a
// checkpoint, or its record reports the loss.
func (s *submission) loss(sum *record.Summary, k restart, log string) {
	number, err := strconv.Atoi(k.run)
	i := slices.IndexFunc(sum.Runs, func(r record.Run) bool { return r.Number == number })
	if err != nil || i < 0 {
		return // whole reports the missing run
	}
	if after := resumption(log, number, k.at); k.damaged && strings.Contains(after, "goes on from its checkpoint") {
		s.r.broken("damage-refused", "each checkpoint of run %d of %s is damaged, but the log says: %s", number,
			s.Name, after)
	}
	says := func(what string) bool {
		return slices.ContainsFunc(sum.Runs[i].Incidents, func(i record.Incident) bool {
			return strings.Contains(i.What, what)
		})
	}
	resumed, lost := says("went on from its state here"), says("what was saved of the run was lost")
	if k.damaged && !lost || !k.damaged && !resumed {
		s.r.broken("loss-told", "all processes were killed when each holder had a checkpoint of run %d of %s "+
			"(damaged: %v), but the record says neither that the run resumed nor that its state was lost: %+v",
			number, s.Name, k.damaged, sum.Runs[i])
	}
}

// resumption returns the first log line after a time that says whether a run resumes; empty
// without one.
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

// compared are the files that a record has in common with all its copies.
var compared = []string{"plan.yaml", "summary.json", "curve.csv", "links.csv", "updates.csv"}

// copies waits until one process has the record and the other holders have equal copies.
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

// differ describes the first difference between the fetched record and its copies; empty without
// one.
func (s *submission) differ(id, fetched string) string {
	records, copies := 0, 0
	for _, p := range s.r.processes {
		own, _ := filepath.Glob(filepath.Join(p.records(), "*-"+id))
		held, _ := filepath.Glob(filepath.Join(p.records(), ".held-*", id))
		if p.name != s.now().Process && p.handed { // known: a handover after a disk fault leaves an incomplete folder
			own = slices.DeleteFunc(own, func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, "summary.json"))
				if err != nil {
					s.r.event("%s is incomplete after %s has handed over the record", dir, p.name)
				}
				return err != nil
			})
		}
		records, copies = records+len(own), copies+len(own)+len(held)
		for _, dir := range append(own, held...) {
			if _, err := os.Stat(filepath.Join(fetched, "summary.json")); err != nil {
				continue // the submission ended before its first run
			}
			for _, name := range compared {
				want, err := os.ReadFile(filepath.Join(fetched, name))
				if err != nil {
					return err.Error()
				}
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
					return fmt.Sprintf("%s in the copy %s differs from the fetched record: %v", name, dir, err)
				}
			}
		}
	}
	now := s.now()
	if records > 1 || len(now.Holders) > 1 && copies < 2 {
		return fmt.Sprintf("%d records and %d copies in total, with holders %v", records, copies, now.Holders)
	}
	return ""
}

// final checks all submissions after their end, and then ends the processes.
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

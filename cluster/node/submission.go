package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/nn/kernel"
	"github.com/gradwire/gradwire/protos"
)

// Bounds of what a process keeps.
const (
	// maxWaiting is how many submissions wait at most.
	maxWaiting = 100
	// maxSubmissions is how many are remembered; of more, those that have ended first are forgotten, but not their records.
	maxSubmissions = 1000
	// maxLines is how many lines of a submission's log are kept, the latest.
	maxLines = 10_000
)

// maxLine bounds a line of a log in bytes, of which a message carries maxTold.
const maxLine = 8 << 10

// removed is the state of a submission in a ledger that is not there any more.
const removed = "removed"

// logTime is how instants stand in logs.
const logTime = "2006-01-02T15:04:05.000Z07:00"

// errDegraded says that a submission went to its end, with a run that is degraded.
var errDegraded = errors.New("a run is degraded")

// errStopped is why the runs of a submission end that somebody stops.
type errStopped struct{ by string }

func (e errStopped) Error() string { return "stopped by " + e.by }

// submission is a plan that was submitted to this process.
type submission struct {
	process *process
	id      string
	number  uint64 // the upper half of its runs' numbers
	file    string
	plan    string // the plan's name
	by      string
	at      time.Time
	out     string           // the folder of its record
	target  float64          // the plan's; 0 if it has none
	source  *experiment.Plan // nil when it has ended
	rules   []rule
	stop    context.Context
	end     context.CancelCauseFunc

	mu        sync.Mutex
	changed   chan struct{} // closed at the next change
	state     string
	progress  experiment.Progress
	err       error
	runs      uint64 // so far, rehearsals included
	placement map[string]string
	past      bool // an earlier life of the process carried it out
	lines     []string
	dropped   int    // lines that were not kept
	last      int    // percent of the latest line about progress
	noted     uint64 // the number of the latest change that others are told of
}

// submit checks a plan and queues it. What cannot run is told at once. Until its turn comes, only the plan is kept.
func (p *process) submit(ctx context.Context, by string, m *protos.SubmitPlan) (*submission, error) {
	rules, err := parseRules(m.Place)
	if err != nil {
		return nil, refusal.Input(err)
	}
	file := filepath.Base(m.File)
	pl, err := experiment.Parse(file, []byte(m.Text), m.Set...)
	if err != nil {
		return nil, err
	}
	var draw [4]byte
	if _, err := rand.Read(draw[:]); err != nil {
		return nil, err
	}
	s := &submission{
		process: p, id: fmt.Sprintf("%x", draw), number: uint64(binary.BigEndian.Uint32(draw[:])), file: file, by: by, at: time.Now(),
		state: request.Waiting, changed: make(chan struct{}), last: -1, source: pl, rules: rules,
	}
	s.out = filepath.Join(p.config.Out, planName(file)+"-"+s.id)
	s.stop, s.end = context.WithCancelCause(p.stop)
	if err := s.try(ctx); err != nil {
		s.end(nil)
		return nil, err
	}
	if err := p.enqueue(s); err != nil {
		s.end(nil)
		return nil, errors.Join(err, os.RemoveAll(s.out))
	}
	s.change(s.note)
	return s, nil
}

const (
	// maxTried is how many submissions are tried at a time: each loads its data.
	maxTried = 2
	// maxLeft is how much memory in bytes one that was tried may leave to be collected some time.
	maxLeft = 64 << 20
)

// heap is how much memory objects take, whether in use or not collected yet, in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// try finds out whether the plan can run, and makes the folder of its record.
func (s *submission) try(ctx context.Context) error {
	select {
	case s.process.trying <- struct{}{}:
		defer func() { <-s.process.trying }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before := heap()
	defer func() {
		if heap() > before+maxLeft {
			runtime.GC() // while nobody else tries: what many leave would add up
		}
	}()
	r, err := s.prepare(ctx, false)
	if errors.Is(err, fs.ErrNotExist) { // whoever submits the plan may well have the file
		err = fmt.Errorf("process %s: %w", s.process.config.Name, err)
	}
	if err != nil {
		return err
	}
	first := r.Plan()
	s.plan, s.progress.Total = first.Name, r.Missing()
	s.target, _ = experiment.Target(first)
	return r.Close() // until the submission's turn has come
}

// prepare makes everything ready to run: for a new record, or, when that was done before, to go on with it.
func (s *submission) prepare(ctx context.Context, goOn bool) (*experiment.Runner, error) {
	o := experiment.Options{Catalog: s.process.catalog, Data: s.process.config.Data, Progress: s.tell, Out: s.out, Continue: goOn}
	at := experiment.Site{Venue: &venue{process: s.process, submission: s, place: s.rules}, Common: &s.process.common, Tried: goOn}
	return experiment.Prepare(ctx, s.source, o, at)
}

// planName is a plan's file without its folder and ending.
func planName(file string) string { return strings.TrimSuffix(file, filepath.Ext(file)) }

// enqueue has a submission wait for its turn.
func (p *process) enqueue(s *submission) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == maxWaiting {
		return refusal.Again(fmt.Errorf("%d submissions wait already, which is as many as can", maxWaiting))
	}
	if len(p.submissions) == maxSubmissions {
		i := slices.IndexFunc(p.submissions, (*submission).over)
		p.submissions = slices.Delete(p.submissions, max(i, 0), max(i, 0)+1)
	}
	p.submissions = append(p.submissions, s)
	p.queue = append(p.queue, s)
	select {
	case p.queued <- struct{}{}:
	default: // it is known already that something waits
	}
	return nil
}

// remove forgets a submission that has ended, and deletes its record. It comes first in the ledger: what is not deleted
// then, because the process is killed, is in nobody's way.
func (p *process) remove(s *submission) error {
	s.change(func() {
		s.state = removed
		s.note()
	})
	p.mu.Lock()
	p.submissions = slices.DeleteFunc(p.submissions, func(o *submission) bool { return o == s })
	p.removed++
	p.mu.Unlock()
	p.others.tell()
	return os.RemoveAll(s.out)
}

// dequeue takes the submission whose turn it is; nil if none waits or the process is stopping.
func (p *process) dequeue() *submission {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 || p.stop.Err() != nil {
		return nil
	}
	s := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	return s
}

// unqueue takes a submission out of the queue; false if it is not there.
func (p *process) unqueue(s *submission) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.queue, s)
	if i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	return i >= 0
}

// carryOut carries out what is submitted, one after the other.
func (p *process) carryOut() {
	for {
		if s := p.dequeue(); s != nil {
			s.run()
			continue
		}
		select {
		case <-p.queued:
		case <-p.stop.Done():
			return
		}
	}
}

// halt ends a submission, which is over at once if it waits.
func (s *submission) halt(why error) {
	s.end(why)
	if s.process.unqueue(s) {
		_, err := s.closeRecord()
		s.finish(errors.Join(why, err))
	}
}

// find returns the submission whose id begins so.
func (p *process) find(id string) (*submission, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *submission
	for _, s := range p.submissions {
		if id != "" && strings.HasPrefix(s.id, id) {
			if found != nil {
				return nil, refusal.Input(fmt.Errorf("%s stands for more than one run: %s and %s", id, found.id, s.id))
			}
			found = s
		}
	}
	if found == nil {
		return nil, refusal.Input(fmt.Errorf("process %s has no run %.40q", p.config.Name, id))
	}
	return found, nil
}

// run carries the submission out.
func (s *submission) run() {
	s.change(func() {
		s.state = request.Running
		s.note()
	})
	s.log("%s, %d runs, submitted by %s", s.file, s.progress.Total, s.by)
	began := time.Now()
	r, err := s.prepare(s.stop, true)
	if err == nil {
		failure := r.All(s.stop)
		var report *experiment.Report
		report, err = r.Report(time.Since(began))
		if err = errors.Join(failure, err); err == nil && slices.ContainsFunc(report.Runs, func(row record.Run) bool { return row.Outcome == record.Degraded }) {
			err = errDegraded
		}
	} else {
		if cause := context.Cause(s.stop); cause != nil {
			err = cause
		}
		_, failure := s.closeRecord()
		err = errors.Join(err, failure)
	}
	s.finish(err)
}

// closeRecord writes the summary of a record whose runs have not all finished; done is how many have.
func (s *submission) closeRecord() (done int, err error) {
	folder, err := record.OpenToWrite(s.out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	_, err = folder.Write(record.Overview{
		Plan: s.plan, Build: record.ReadBuild(kernel.Name()), RunsPlanned: s.progress.Total, Target: s.target,
	})
	return min(len(folder.Runs()), s.progress.Total), err
}

// finish is the end of the submission, with the error that it ended with, if any.
func (s *submission) finish(err error) {
	state := request.Done
	var stopped errStopped
	switch {
	case errors.As(err, &stopped):
		state = request.Stopped
	case errors.Is(err, experiment.ErrStopping):
		state = request.Interrupted
	case errors.Is(err, errDegraded):
		state, err = request.Degraded, nil
	case err != nil:
		state = request.Failed
	}
	if err != nil {
		s.log("%s: %v", state, err)
	} else {
		s.log("%s, record in %s", state, s.out)
	}
	s.change(func() {
		s.state, s.err, s.source = state, err, nil
		s.note()
	})
	s.end(nil)
}

// change changes the submission and wakes those who follow it.
func (s *submission) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// over reports whether the submission has ended.
func (s *submission) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended()
}

func (s *submission) ended() bool { return s.state != request.Waiting && s.state != request.Running }

// log adds a line.
func (s *submission) log(format string, args ...any) {
	text := request.Text(fmt.Sprintf(format, args...), maxLine)
	line := time.Now().Format(logTime) + " " + text
	s.process.log("%s %s", s.id, text)
	if err := s.write(line); err != nil {
		s.process.log("the log of %s is not whole: %v", s.id, err)
	}
	s.change(func() {
		if len(s.lines) == maxLines {
			s.lines = s.lines[1:]
			s.dropped++
		}
		s.lines = append(s.lines, line)
	})
}

// logName is the file of a submission's log, in the folder of its record.
const logName = "log.txt"

// maxLog bounds a log that is read back, in bytes: its end.
const maxLog = 4 << 20

// write adds a line to the file of the log, which outlives the process.
func (s *submission) write(line string) error {
	if s.out == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(s.out, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// written are the last lines of the log's file, which anybody may have changed.
func (s *submission) written() []string {
	f, err := os.Open(filepath.Join(s.out, logName))
	if err != nil {
		return nil // there is no log, as before it was kept
	}
	defer f.Close() //nolint:errcheck // it was only read
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(size-maxLog, 0), maxLog))
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	lines = lines[max(len(lines)-maxLines, 0):]
	for i, line := range lines {
		lines[i] = request.Text(line, maxLine)
	}
	return lines
}

// said reports whether the log has a line with a text.
func (s *submission) said(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.lines, func(line string) bool { return strings.Contains(line, text) })
}

// tell is told by the runner how far it is.
func (s *submission) tell(pr experiment.Progress) {
	s.change(func() { s.progress = pr })
	percent := int(100 * pr.Share)
	switch row := pr.Finished; {
	case row != nil:
		s.log("run %d %s: seed %d, accuracy %.2f %%, %.1f s", row.Number, row.Outcome, row.Seed, 100*float64(row.FinalAccuracy), row.Duration)
		for _, i := range row.Incidents {
			if s.said(i.What) {
				continue // when it happened
			}
			s.log("run %d, at %.3g s, %s: %s", row.Number, i.At, i.Node, i.What)
		}
		s.last = percent
	case percent >= s.last+10:
		s.log("%d %%", percent)
		s.last = percent
	}
}

// placed takes note of where the nodes of a run live.
func (s *submission) placed(names, where []string) {
	s.change(func() {
		s.placement = map[string]string{}
		for i, name := range where {
			s.placement[names[i]] = name
		}
	})
}

// nextRun returns a number that tells a run apart from all others in the cluster.
func (s *submission) nextRun() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	return s.number<<32 | s.runs
}

// message is the submission as a client hears of it; s.mu is held.
func (s *submission) message() *protos.Submission {
	m := &protos.Submission{
		Id: s.id, Plan: s.plan, Folder: s.out, Process: s.process.config.Name, By: s.by, State: s.state,
		Done: int32(s.progress.Done), Total: int32(s.progress.Total), Share: s.progress.Share,
		Submitted: s.at.UnixNano(), Placement: map[string]string{}, Insecure: s.process.config.Insecure,
	}
	for node, where := range s.placement {
		m.Placement[node] = where
	}
	if s.err != nil {
		m.Error = request.Text(s.err.Error(), request.MaxText)
	}
	return m
}

// news is what other processes are told of the submission, and the number of the change.
func (s *submission) news() (*protos.Submission, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.message()
	m.Placement, m.Plan, m.Error = nil, request.Text(m.Plan, request.MaxListed), request.Text(m.Error, request.MaxListed)
	return m, s.noted
}

// now returns the present state, and a channel that is closed when it is not the present any more.
func (s *submission) now() (m *protos.Submission, over bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.message(), s.ended(), s.changed
}

// since returns the lines from the given number on, and the number of the next.
func (s *submission) since(from int) (lines []string, next int, over bool, changed <-chan struct{}) {
	if s.past { // nothing comes any more
		lines = append(s.written(), s.lines...)
		return lines[min(from, len(lines)):], len(lines), true, s.changed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from = max(from, s.dropped)
	lines = slices.Clone(s.lines[from-s.dropped:])
	return lines, from + len(lines), s.ended(), s.changed
}

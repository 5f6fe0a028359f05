// Package submission keeps the plans that clients submit to a process of a cluster: the plan that
// runs, the ones that wait, and the ones that have ended, with their logs. A ledger on disk carries
// them over a restart of the process. Those that have not ended other processes hold as well, see
// package holders.
package submission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/holders"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/nn/kernel"
	"github.com/gradwire/gradwire/protos"
)

// Bounds of what a process keeps.
const (
	// maxWaiting is how many submissions wait at most.
	maxWaiting = 100
	// MaxKept is how many are remembered; of more, those that have ended first are forgotten, but
	// not their records.
	MaxKept = 1000
	// maxContinued bounds the submissions that a submission remembers to continue: the latest ones.
	maxContinued = 100
	// maxLines is how many lines of a submission's log are kept, the latest.
	maxLines = 10_000
)

// maxLine bounds a line of a log in bytes, of which a message carries maxTold.
const maxLine = 8 << 10

// removed is the state in a ledger of a submission that was removed.
const removed = "removed"

// logTime is how instants stand in logs.
const logTime = "2006-01-02T15:04:05.000Z07:00"

// errDegraded says that a submission went to its end, with a run that is degraded.
var errDegraded = errors.New("a run is degraded")

// errStopped is why the runs of a submission end that somebody stops.
type errStopped struct{ by string }

func (e errStopped) Error() string { return "stopped by " + e.by }

// Config is the process that a queue belongs to.
type Config struct {
	// Process is its name.
	Process string
	// Stop ends when it stops.
	Stop context.Context
	// Out is the folder of all records, Data the folder of data sets.
	Out, Data string
	// Insecure says that the cluster's connections are not protected.
	Insecure bool
	// Key signs checkpoints; nil stands for the user's.
	Key []byte
	// Catalog is what plans can name.
	Catalog *catalog.Catalog
	// Shared are the data that are in use.
	Shared *shelf.Shared
	// Venue returns where the runs of a submission take place, whose nodes live as the rules of its
	// client say.
	Venue func(s *Submission, rules []string) (experiment.Venue, error)
	// Changed is called when something changes that other processes are told of, and returns the
	// number of the change.
	Changed func() uint64
	// Removed is called when other processes are to forget a submission.
	Removed func()
	// Holders has other processes hold what is submitted; nil if this one alone does.
	Holders *holders.Service
	// Log is told in a line what has happened.
	Log func(format string, args ...any)
}

// Queue is what was submitted to a process, which carries it out one after the other.
type Queue struct {
	config Config

	mu      sync.Mutex
	all     []*Submission
	waiting []*Submission
	queued  chan struct{} // has room for one: something waits
	goingOn sync.Mutex    // held while a submission goes on with another's record
	trying  chan struct{} // holds one for each submission that is tried
}

// New returns the queue of a process to which nothing was submitted.
func New(c Config) *Queue {
	return &Queue{config: c, queued: make(chan struct{}, 1), trying: make(chan struct{}, maxTried)}
}

// All returns the submissions, the latest last.
func (q *Queue) All() []*Submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.all)
}

// Submission is a plan that was submitted to this process.
type Submission struct {
	queue  *Queue
	number uint64           // the upper half of its runs' numbers
	source *experiment.Plan // nil when it has ended
	venue  experiment.Venue
	stop   context.Context
	end    context.CancelCauseFunc
	left   chan struct{} // closed when another process carries it out and nothing is written here
	gone   func()        // closes left

	mu        sync.Mutex
	entry                   // its ID, file, plan, folder and who submitted it never change
	share     float64       // of the whole that is done
	changed   chan struct{} // closed at the next change
	runs      uint64        // so far, rehearsals included
	placement map[string]string
	past      bool // an earlier life of the process carried it out
	lines     []string
	dropped   int      // lines that were not kept
	last      int      // percent of the latest line about progress
	saved     []int    // the numbers of the finished runs, whose files the record must have
	reached   *float64 // share at the first evaluation of the run under way, in this attempt; nil before
	noted     uint64   // the number of the latest change that others are told of
	moved     *string  // the process that carries it out instead of this one, empty if it is not known
	succeeds  string   // what happened to the process that carried it out before; empty once Succeeds has returned it

	held *protos.Submission // what this process knows of it as a holder; nil if it has or had it itself
}

// newSubmission returns the submission of an entry that has not ended.
func (q *Queue) newSubmission(e entry) *Submission {
	s := &Submission{queue: q, entry: e, changed: make(chan struct{}), left: make(chan struct{}), last: -1}
	s.gone = sync.OnceFunc(func() { close(s.left) })
	s.stop, s.end = context.WithCancelCause(q.config.Stop)
	return s
}

// read takes in what was submitted. The id, of which nobody else has one, gives the runs their
// numbers.
func (s *Submission) read(m *protos.SubmitPlan) (err error) {
	if s.number, err = strconv.ParseUint(s.ID, 16, 32); err != nil {
		return err
	}
	if s.venue, err = s.queue.config.Venue(s, m.Place); err != nil {
		return refusal.Input(err)
	}
	s.source, err = experiment.Parse(s.File, []byte(m.Text), m.Set...)
	return err
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

// try finds out whether the plan can run, and makes the folder of its record, unless it goes on
// with one.
func (s *Submission) try(ctx context.Context, goOn bool) error {
	return s.queue.trial(ctx, func() error {
		r, err := s.prepare(ctx, goOn, false)
		if errors.Is(err, fs.ErrNotExist) { // whoever submits the plan may well have the file
			err = fmt.Errorf("process %s: %w", s.queue.config.Process, err)
		}
		if err != nil {
			return err
		}
		first := r.Plan()
		s.Plan, s.Total = first.Name, r.Total()
		s.Done = s.Total - r.Missing()
		s.Target, _ = experiment.Target(first)
		return r.Close() // until the submission's turn has come
	})
}

// trial tries something that loads data, when not too many others do.
func (q *Queue) trial(ctx context.Context, do func() error) error {
	select {
	case q.trying <- struct{}{}:
		defer func() { <-q.trying }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before := heap()
	defer func() {
		if heap() > before+maxLeft {
			runtime.GC() // while nobody else tries: what many leave would add up
		}
	}()
	return do()
}

// prepare makes everything ready to run: for a new record, or to go on with one; tried says that it
// was found out before that the plan can run.
func (s *Submission) prepare(ctx context.Context, goOn, tried bool) (*experiment.Runner, error) {
	o := experiment.Options{Catalog: s.queue.config.Catalog, Data: s.queue.config.Data, Progress: s.progressed,
		Out: s.folder(), Continue: goOn, FromCheckpoint: true}
	at := experiment.Site{Venue: s.venue, Shared: s.queue.config.Shared, Tried: tried,
		Key: s.queue.config.Key}
	return experiment.Prepare(ctx, s.source, o, at)
}

// enqueue has a submission wait for its turn.
func (q *Queue) enqueue(s *Submission) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == maxWaiting {
		return refusal.Again(fmt.Errorf("%d submissions wait already, which is as many as can", maxWaiting))
	}
	q.add(s)
	q.waiting = append(q.waiting, s)
	q.wake()
	return nil
}

// add has the queue know a submission; q.mu is held.
func (q *Queue) add(s *Submission) {
	if len(q.all) == MaxKept {
		i := slices.IndexFunc(q.all, (*Submission).over)
		q.all = slices.Delete(q.all, max(i, 0), max(i, 0)+1)
	}
	q.all = append(q.all, s)
}

// wake says that something waits; q.mu is held.
func (q *Queue) wake() {
	select {
	case q.queued <- struct{}{}:
	default: // it is known already
	}
}

// remove forgets a submission that has ended, and deletes its record. It comes first in the ledger:
// what is not deleted then, because the process is killed, is in nobody's way.
func (q *Queue) remove(s *Submission) error {
	q.forget(s)
	s.disown()
	return os.RemoveAll(s.folder())
}

// forget removes a submission from the list and the ledger.
func (q *Queue) forget(s *Submission) {
	s.change(func() {
		s.State = removed
		s.publish()
	})
	q.mu.Lock()
	q.all = slices.DeleteFunc(q.all, func(o *Submission) bool { return o == s })
	q.mu.Unlock()
	q.config.Removed()
}

// disown has other processes forget a submission.
func (s *Submission) disown() {
	if len(s.holders()) > 0 {
		s.queue.config.Holders.Remove(s.ID)
	}
}

// dequeue takes the submission whose turn it is; nil if none waits or the process is stopping.
func (q *Queue) dequeue() *Submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.config.Stop.Err() != nil {
		return nil
	}
	s := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return s
}

// unqueue takes a submission out of the queue; false if it is not there.
func (q *Queue) unqueue(s *Submission) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, s)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// Work carries out what is submitted, one after the other.
func (q *Queue) Work() {
	for {
		if s := q.dequeue(); s != nil {
			s.run()
			continue
		}
		select {
		case <-q.queued:
		case <-q.config.Stop.Done():
			return
		}
	}
}

// halt ends a submission, which is over at once if it waits.
func (s *Submission) halt(why error) {
	s.end(why)
	if s.queue.unqueue(s) {
		_, err := s.closeRecord()
		s.finish(errors.Join(why, err))
	}
}

// own returns the submission of an id; nil if it is not this process's.
func (q *Queue) own(id string) *Submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.all, func(s *Submission) bool { return s.ID == id }); i >= 0 {
		return q.all[i]
	}
	return nil
}

// find returns the submission of an id, of whose record this process may have a copy alone, or
// which it only holds.
func (q *Queue) find(id string) (*Submission, error) {
	s := q.own(id)
	if s == nil {
		s = q.copied(id)
	}
	if s == nil { // the client has heard of it here, or from another process
		return nil, refusal.Again(fmt.Errorf("process %s has no submission %.40q now", q.config.Process, id))
	}
	return s, nil
}

// run carries the submission out.
func (s *Submission) run() {
	defer s.watchRecord()()
	if err := s.attempt(); err != nil {
		s.giveUp(err)
		return
	}
	s.change(func() {
		s.State = request.Running
		s.publish()
	})
	s.Log("%s, %d runs, submitted by %s", s.File, s.Total, s.By)
	began := time.Now()
	r, err := s.prepare(s.stop, true, true)
	if err != nil {
		s.giveUp(err)
		return
	}
	s.change(func() {
		s.Done = s.Total - r.Missing()
		if folder, err := record.Open(s.folder()); err == nil {
			s.saved = finished(folder.Runs())
		}
	})
	if err := r.StartUploads(s.stop); err != nil {
		s.giveUp(errors.Join(err, r.Close()))
		return
	}
	failure := r.RunAll(s.stop)
	report, err := r.Report(time.Since(began))
	if err = errors.Join(failure, err, r.Upload(s.stop)); err == nil && slices.ContainsFunc(report.Runs,
		func(row record.Run) bool { return row.Outcome == record.Degraded }) {
		err = errDegraded
	}
	s.finish(err)
}

// giveUp ends a submission whose runs cannot begin.
func (s *Submission) giveUp(err error) {
	if cause := context.Cause(s.stop); cause != nil {
		err = cause
	}
	_, failure := s.closeRecord()
	s.finish(errors.Join(err, failure))
}

// closeRecord writes the summary of a record whose runs have not all finished; done is how many
// have.
func (s *Submission) closeRecord() (done int, err error) {
	folder, err := record.OpenToWrite(s.folder())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	_, err = folder.Write(record.Overview{
		Plan: s.Plan, Build: record.ReadBuild(kernel.Name()), RunsPlanned: s.Total, Target: s.Target,
	})
	return min(len(folder.Runs()), s.Total), err
}

// finish is the end of the submission, with the error that it ended with, if any; here, if another
// process goes on.
func (s *Submission) finish(err error) {
	if s.leaves(err) {
		return
	}
	var stopped errStopped
	if !errors.As(err, &stopped) {
		fault := s.recordFault(err)
		if fault != nil && s.handOver(fault) {
			return
		}
		if fault != nil {
			s.end(fault) // its status does not wait for a copy
			err = fault
		}
	}
	state := request.Done
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
	why := ""
	if err != nil {
		why = s.placed(err).Error()
	}
	if err := s.agree(state, why); err != nil {
		s.leave()
		return
	}
	if why != "" {
		s.Log("%s: %s", state, why)
	} else {
		s.Log("%s, record in %s", state, s.folder())
	}
	s.change(func() {
		s.State, s.Error, s.source = state, why, nil
		s.publish()
	})
	s.end(nil)
}

// placed has an error about a file name the process whose file it is.
func (s *Submission) placed(err error) error {
	if errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError)) {
		return fmt.Errorf("process %s: %w", s.queue.config.Process, err)
	}
	return err
}

// change changes the submission and wakes those who follow it.
func (s *Submission) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// over reports whether the submission has ended.
func (s *Submission) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended()
}

func (s *Submission) ended() bool { return request.Over(s.State) }

// folder is where its record is.
func (s *Submission) folder() string { return filepath.Join(s.queue.config.Out, s.Folder) }

// Log adds a line.
func (s *Submission) Log(format string, args ...any) {
	text := request.Text(fmt.Sprintf(format, args...), maxLine)
	line := time.Now().Format(logTime) + " " + text
	s.queue.config.Log("%s %s", s.ID, text)
	if err := s.write(line); err != nil {
		s.queue.config.Log("the log of %s is not whole: %v", s.ID, err)
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
func (s *Submission) write(line string) error {
	f, err := os.OpenFile(filepath.Join(s.folder(), logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// written are the last lines of the log's file, which anybody may have changed.
func (s *Submission) written() []string {
	f, err := os.Open(filepath.Join(s.folder(), logName))
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
func (s *Submission) said(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.lines, func(line string) bool { return strings.Contains(line, text) })
}

// progressed is told by the runner how far it is.
func (s *Submission) progressed(pr experiment.Progress) {
	if pr.Finished != nil {
		s.change(func() { s.saved = append(s.saved, pr.Finished.Number) })
		if !s.commit() {
			return
		}
	}
	s.advanced(pr)
	s.change(func() { s.Done, s.Total, s.share = pr.Done, pr.Total, pr.Share })
	if pr.Note != "" {
		s.Log("%s", pr.Note)
	}
	percent := int(100 * pr.Share)
	switch row := pr.Finished; {
	case row != nil:
		s.Log("run %d %s: seed %d, accuracy %.2f %%, %.1f s", row.Number, row.Outcome, row.Seed,
			100*float64(row.FinalAccuracy), row.Duration)
		for _, i := range row.Incidents {
			if s.said(i.What) {
				continue // when it happened
			}
			s.Log("run %d, at %.3g s, %s: %s", row.Number, i.At, i.Node, i.What)
		}
		s.last = percent
	case percent >= s.last+10:
		s.Log("%d %%", percent)
		s.last = percent
	}
}

// Placed takes note of where the nodes of a run live.
func (s *Submission) Placed(names, where []string) {
	s.change(func() {
		s.placement = map[string]string{}
		for i, name := range where {
			s.placement[names[i]] = name
		}
	})
}

// Succeeds says, once, what happened to the process that carried the submission out before. It returns
// "" if there was none, or after an orderly handover.
func (s *Submission) Succeeds() (why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, s.succeeds = s.succeeds, ""
	return why
}

// NextRun returns a number that tells a run apart from all others in the cluster.
func (s *Submission) NextRun() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	return s.number<<32 | s.runs
}

// message is the submission as a client hears of it; s.mu is held.
func (s *Submission) message() *protos.Submission {
	if s.held != nil {
		return proto.CloneOf(s.held)
	}
	return &protos.Submission{
		Id: s.ID, Plan: s.Plan, Folder: s.folder(), Process: s.queue.config.Process, By: s.By, State: s.State,
		Done: int32(s.Done), Total: int32(s.Total), Share: s.share, Error: request.Text(s.Error, request.MaxText),
		Submitted: s.Submitted.UnixNano(), Placement: maps.Clone(s.placement), Insecure: s.queue.config.Insecure,
		Holders: s.Holders, Lacking: s.lacking(), Lost: s.lost(), Continues: s.Continues,
	}
}

// lost reports whether the submission has ended and its record is not in its folder any more; s.mu
// is held.
func (s *Submission) lost() bool {
	if !s.ended() {
		return false
	}
	_, err := os.Lstat(filepath.Join(s.folder(), record.PlanName))
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Listed is the submission as it stands in lists, and as other processes are told of it, with the
// number of its latest change. Its placement is left out: with many runs of many nodes it would be
// long.
func (s *Submission) Listed() (*protos.Submission, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.message()
	m.Placement, m.Plan = nil, request.Text(m.Plan, request.MaxListed)
	m.Error = request.Text(m.Error, request.MaxListed)
	return m, s.noted
}

// Now returns the present state, and a channel that is closed when it changes.
func (s *Submission) Now() (m *protos.Submission, over bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.message(), s.ended(), s.changed
}

// since returns the lines from the given number on, and the number of the next.
func (s *Submission) since(from int) (lines []string, next int, over bool, changed <-chan struct{}) {
	var written []string
	if s.past {
		written = s.written()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.past { // nothing more comes
		lines = slices.Concat(written, s.lines)
		return lines[min(from, len(lines)):], len(lines), true, s.changed
	}
	from = max(from, s.dropped)
	lines = slices.Clone(s.lines[from-s.dropped:])
	return lines, from + len(lines), s.ended(), s.changed
}

package holders

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/archive"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

const (
	// openPatience bounds the time to connect for a copy, stallPatience the time without progress on the
	// connection, and readyPatience a holder's check of a plan, which reads the plan's data.
	openPatience  = 3 * time.Second
	stallPatience = 10 * time.Second
	readyPatience = 2 * time.Minute
	// againAfter is the first delay before a failed copy is repeated, and longestAgain the longest.
	againAfter   = 500 * time.Millisecond
	longestAgain = 3 * time.Second
)

// copyState is the state of another process's copy of a submission that this process owns.
type copyState struct {
	has     Version          // version after the latest copy; zero if that failed
	latest  Version          // latest version that the process has acknowledged
	files   map[string]stamp // files of the copy; nil if the next copy must be whole
	knows   bool             // the process has the last files, or has dropped its copy
	sending bool
	failed  int           // number of consecutive failed copies
	why     string        // reason of the latest failure; empty without one
	refused time.Duration // time of the first consecutive refusal; 0 without one
	told    bool          // the log has reported the failure
	unfit   time.Duration // earliest time at which the process may become a holder
	unable  bool          // the process could not store the latest whole copy
	retry   time.Duration // time of the next copy to an unable holder
}

// stamp detects changes of a file.
type stamp struct{ size, at int64 }

// supplyOne keeps one process's copy up to date, until another process owns the submission, or until
// the process knows its end.
func (s *Service) supplyOne(d *duty, name string, c *copyState) {
	for again := againAfter; ; {
		s.mu.Lock()
		head, changed, over := s.nextCopy(d, name, c), d.changed, d.lost || c.knows && d.ending
		s.mu.Unlock()
		if over || s.config.Stop.Err() != nil {
			return
		}
		if head != nil {
			err := s.copyTo(s.config.Stop, d, name, head)
			if err == nil {
				again = againAfter
			}
			if err == nil || s.isUnable(c) { // due delays copies to an unable holder
				continue
			}
			changed = nil // wait for the whole delay
			again = min(2*again, longestAgain)
		}
		select {
		case <-changed:
		case <-time.After(again):
		case <-s.config.Stop.Done():
		}
	}
}

// isUnable reports whether a holder cannot store a copy.
func (s *Service) isUnable(c *copyState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.unable
}

// nextCopy returns the head of the next copy for a process; nil if none is due; s.mu is held.
func (s *Service) nextCopy(d *duty, name string, c *copyState) *protos.CopyHead {
	h := d.of
	stays := !d.removed && (name == d.next || slices.Contains(h.plan.Holders, name))
	switch {
	case c.knows:
		return nil
	case stays && (s.now() < c.retry || !d.ending && c.files != nil && c.has == h.version):
		return nil
	case !stays && !d.removed && slices.Contains(d.replicas, name): // the registry lists it still
		return nil
	}
	head := s.head(h, c)
	head.Ended, head.Dismissed = d.ending && stays, !stays
	return head
}

// head returns the head of a copy of the present version; s.mu is held.
func (s *Service) head(h *holding, c *copyState) *protos.CopyHead {
	return &protos.CopyHead{From: s.config.Process, Version: h.version.message(), Plan: h.plan, Whole: c.files == nil}
}

// copyTo sends a copy to one process, and records the result.
func (s *Service) copyTo(ctx context.Context, d *duty, name string, head *protos.CopyHead) error {
	s.mu.Lock()
	h, c := d.of, d.copies[name]
	files := maps.Clone(c.files)
	dir := filepath.Join(s.config.Out, h.folder)
	c.sending = true
	s.mu.Unlock()
	if files == nil {
		files = map[string]stamp{}
	}
	answer, err := s.send(ctx, name, head, dir, files)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.sending = false
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	switch {
	case err != nil:
		s.copyFailed(d, name, c, err, answer)
		if c.unable = head.Whole && answer.GetUnable(); c.unable {
			c.retry = s.now() + min(againAfter<<min(c.failed, 8), longestAgain)
		}
	case head.Dismissed:
		c.files, c.has, c.latest, c.knows = nil, Version{}, Version{}, true
	default:
		told := c.told
		c.files, c.has, c.failed, c.knows = files, versionOf(head.Version), 0, head.Ended
		c.latest = c.has
		c.why, c.refused, c.told, c.unable, c.retry = "", 0, false, false, 0
		if told {
			s.logCopies(h, "")
		}
	}
	d.change()
	return err
}

// tellAfter is how many copies fail, one after the other, until the log says so: one that fails
// alone may have met a holder that is busy.
const tellAfter = 2

// copyFailed records a failed copy. The answer is the holder's; nil without one; s.mu is held.
func (s *Service) copyFailed(d *duty, name string, c *copyState, err error, answer *protos.CopyAnswer) {
	c.files, c.failed, c.has = nil, c.failed+1, Version{}
	c.why = request.Text(err.Error(), request.MaxListed)
	switch {
	case answer == nil:
		c.refused = 0
	case c.refused == 0:
		c.refused = s.now()
	}
	if c.failed >= tellAfter && !c.told && slices.Contains(d.of.plan.Holders, name) {
		c.told = true
		s.logCopies(d.of, "")
	}
}

// send makes one copy. It adds what it has sent to the files.
func (s *Service) send(ctx context.Context, name string, head *protos.CopyHead, dir string,
	files map[string]stamp) (*protos.CopyAnswer, error) {
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	conn, err := s.config.Open(opening, name)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // all was said
	defer context.AfterFunc(ctx, func() {
		conn.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // the copy is given up in any case
	})()
	out, in := bufio.NewWriterSize(lively{conn}, 64<<10), bufio.NewReader(conn)
	if err := errors.Join(request.Write(out, head), out.Flush()); err != nil {
		return nil, err
	}
	answer, err := readAnswer(conn, in)
	if err != nil || answer.Error != "" || answer.Enough || head.Dismissed {
		return answer, err
	}
	states := newest{}
	fresh := func(name string, info fs.FileInfo) bool {
		is := stamp{info.Size(), info.ModTime().UnixNano()}
		if files[name] == is || !head.Ended && !finished(dir, name) && !states.goesOn(dir, name) ||
			head.Ended && unfinished(name) {
			return false
		}
		files[name] = is
		return true
	}
	if err := s.pack(out, head.Plan.Id, dir, fresh); err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	return readAnswer(conn, in)
}

// pack sends the files of a record. It fails if a file is missing before or afterwards.
func (s *Service) pack(out io.Writer, id, dir string, fresh func(name string, info fs.FileInfo) bool) error {
	err := s.config.Intact(id)
	if err == nil {
		err = archive.Pack(out, dir, fresh)
	}
	if err == nil {
		err = s.config.Intact(id)
	}
	return err
}

// readAnswer reads an answer to a copy.
func readAnswer(conn net.Conn, in *bufio.Reader) (*protos.CopyAnswer, error) {
	if err := conn.SetReadDeadline(time.Now().Add(readyPatience)); err != nil {
		return nil, err
	}
	answer := &protos.CopyAnswer{}
	if err := request.Read(in, answer); err != nil {
		return nil, fmt.Errorf("it has not answered: %w", err)
	}
	return answer, nil
}

// finished reports whether a file of a record is part of a finished run, a tuning or the log.
func finished(dir, name string) bool {
	folder, file := path.Split(name)
	runs, run := path.Split(strings.TrimSuffix(folder, "/"))
	switch {
	case folder == "":
		return file == "tuning.json" || file == "log.txt"
	case runs != "runs/" || run == "" || unfinished(name):
		return false
	}
	return over(filepath.Join(dir, "runs", run))
}

// unfinished reports whether a file of a record belongs to the program that writes the record, such as
// a lock.
func unfinished(name string) bool {
	return strings.HasSuffix(name, ".partial") || strings.Contains(name, ".partial/") ||
		strings.HasPrefix(path.Base(name), ".")
}

// lively is a connection that fails after stallPatience without progress.
type lively struct{ net.Conn }

func (l lively) Write(b []byte) (int, error) {
	if err := l.SetWriteDeadline(time.Now().Add(stallPatience)); err != nil {
		return 0, err
	}
	return l.Conn.Write(b)
}

func (l lively) Read(b []byte) (int, error) {
	if err := l.SetReadDeadline(time.Now().Add(stallPatience)); err != nil {
		return 0, err
	}
	return l.Conn.Read(b)
}

// Take receives a copy over a connection from another process. The process's name is empty if the
// cluster has no certificates.
func (s *Service) Take(conn net.Conn, from string) {
	s.config.Begin(func() {
		defer conn.Close() //nolint:errcheck // all was said
		defer context.AfterFunc(s.config.Stop, func() {
			conn.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // the copy is given up in any case
		})()
		in := bufio.NewReaderSize(lively{conn}, 64<<10)
		head := &protos.CopyHead{}
		err := request.Read(in, head)
		if err == nil {
			err = check(head, from)
		}
		if err != nil {
			s.config.Log("a copy that process %s sends: %v", cmp.Or(from, head.From), err)
			return
		}
		if err := s.receiveCopy(conn, in, head); err != nil {
			s.config.Log("copy of submission %s: %v", head.Plan.Id, err)
		}
	})
	if s.config.Stop.Err() != nil {
		conn.Close() //nolint:errcheck // nothing has begun
	}
}

// check returns an error for a head that no process has sent that calls itself so.
func check(head *protos.CopyHead, from string) error {
	id, folder := head.Plan.GetId(), head.Plan.GetFolder()
	switch {
	case from != "" && head.From != from:
		return fmt.Errorf("it says that it is process %.40q", head.From)
	case !single(id):
		return fmt.Errorf("it is about submission %.40q", id)
	case !single(folder):
		return fmt.Errorf("folder %.80q", folder)
	}
	return nil
}

// single reports whether a name is one of a folder or a file within another folder.
func single(name string) bool {
	return name == filepath.Base(name) && filepath.IsLocal(name) && name != "."
}

// receiveCopy handles one copy. It answers the head, and then the files.
func (s *Service) receiveCopy(conn net.Conn, in *bufio.Reader, head *protos.CopyHead) error {
	if head.Asks {
		return request.Write(lively{conn}, s.answerWhetherHas(head.Plan.Id))
	}
	h, answer := s.admitCopy(head, s.entryOf(head.Plan.Id))
	if h == nil {
		return request.Write(lively{conn}, answer)
	}
	files := filepath.Join(s.config.Out, s.copyName(head.Plan.Id)+".partial")
	err := s.makeRoom(head, files)
	if err == nil {
		if err = request.Write(lively{conn}, answer); err == nil {
			err = s.config.Disk.Unpack(in, files)
		}
	}
	if err = s.finishCopy(h, head, files, err); err != nil {
		answer.Error = request.Text(cause(err), request.MaxText)
		answer.Unable = !errors.As(err, new(errOvertaken))
		// The sender reads the answer only after it has sent all files: read them to their end.
		var rest sync.WaitGroup
		defer rest.Wait()
		rest.Go(func() { _, _ = io.Copy(io.Discard, in) })
	}
	return request.Write(lively{conn}, answer)
}

// errOvertaken names a process that took the submission over while a copy arrived.
type errOvertaken string

func (e errOvertaken) Error() string {
	return fmt.Sprintf("process %s has taken over meanwhile", string(e))
}

// makeRoom makes a new folder for the files of a copy: that of a record, if the copy is made anew
// and may have to be gone on with.
func (s *Service) makeRoom(head *protos.CopyHead, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if !head.Whole || head.Ended {
		return s.config.Disk.MakeFolder(dir)
	}
	ctx, cancel := context.WithTimeout(s.config.Stop, readyPatience)
	defer cancel()
	return s.config.Ready(ctx, head.Plan, dir)
}

// finishCopy installs the files of an admitted copy, unless there is an error. It removes the rest of
// the files before another copy can begin, which uses the same folder.
func (s *Service) finishCopy(h *holding, head *protos.CopyHead, files string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer os.RemoveAll(files) //nolint:errcheck // the next copy says so
	h.busy = false
	if term := head.Version.GetTerm(); err == nil && h.term > term {
		err = errOvertaken(h.entry.GetOwner().GetName())
	}
	if err == nil {
		err = s.install(h, head, files)
	}
	if err == nil {
		h.copyFault = ""
		return nil
	}
	s.failed(h, &h.copyFault, err)
	if h.folder == "" { // there was no copy before
		delete(s.all, head.Plan.Id)
	}
	return err
}

// entryOf returns the entry of a submission in this process's state of the registry; nil without one.
func (s *Service) entryOf(id string) (e *protos.RegistrySubmission) {
	if r := s.config.Registry(); r != nil {
		_ = r.ReadLocal(s.config.Stop, func(state *registry.State) { e = proto.CloneOf(state.Submission(id)) })
	}
	return e
}

// admitCopy decides whether a copy is accepted. If so, it returns the copy's holding, which is busy
// then; otherwise it returns the refusal. The entry is the registry's; nil without one.
func (s *Service) admitCopy(head *protos.CopyHead, e *protos.RegistrySubmission) (*holding, *protos.CopyAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[head.Plan.Id]
	refused := func(why string) (*holding, *protos.CopyAnswer) { return nil, &protos.CopyAnswer{Error: why} }
	known, term := h != nil && !h.dismissed(), head.Version.GetTerm()
	owns := e.GetOwner().GetName() == head.From && e.GetTerm() == term
	switch {
	case !s.ready || s.leaving:
		return refused("its process has just begun, or leaves")
	case known && h.ended && !head.Dismissed && (!head.Ended || h.by != head.From):
		return refused("it has ended, at process " + h.by)
	case known && h.ended && !head.Dismissed && h.folder != "":
		return nil, &protos.CopyAnswer{Enough: true}
	case known && h.ended && !head.Dismissed && !head.Whole:
		return refused("its copy is not here")
	case known && h.busy:
		return refused("it is being changed")
	case h != nil && term < h.term && !owns || term < e.GetTerm():
		return refused("another process has owned it since")
	case term == e.GetTerm() && !e.GetEnded() && e.GetOwner().GetName() != head.From:
		return refused("its owner is another process: " + cmp.Or(e.GetOwner().GetName(), "none at present"))
	case known && !h.ended && versionOf(head.Version).Before(h.version) && (!owns || !head.Whole):
		return refused("something later is here")
	case !known && head.Dismissed:
		return nil, &protos.CopyAnswer{}
	case !known && !head.Whole:
		return refused("it is not here")
	case known && h.duty != nil:
		return refused("it is still carried out here")
	case known && !h.ended && s.hasRecord(h):
		s.yield(h, head.From)
		return refused("it is being changed")
	case head.Dismissed:
		s.drop(h, "")
		return nil, &protos.CopyAnswer{}
	case !known:
		h = &holding{plan: head.Plan}
		s.all[head.Plan.Id] = h
	}
	h.term, h.busy = term, true
	return h, &protos.CopyAnswer{}
}

// install makes the received files the copy, or adds them to it; s.mu is held.
func (s *Service) install(h *holding, head *protos.CopyHead, files string) error {
	name := s.copyName(head.Plan.Id)
	dir := filepath.Join(s.config.Out, name)
	if head.Whole {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := s.config.Disk.Rename(files, dir); err != nil {
			return err
		}
	} else {
		if _, err := os.Stat(dir); err != nil { // without what came before, these files are no copy
			return fmt.Errorf("the copy is gone: %w", err)
		}
		if err := errors.Join(s.merge(files, dir), dropStates(dir)); err != nil {
			return err
		}
	}
	h.plan, h.version = proto.CloneOf(head.Plan), versionOf(head.Version)
	h.folder, h.recordless, h.useless = name, h.recordless && !head.Whole, 0
	return s.writeNote(h)
}

// merge moves the files of one folder into another: in each folder, what finishes it last.
func (s *Service) merge(from, to string) error {
	var names []string
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(mergeOrder(a), mergeOrder(b)) })
	for _, name := range names {
		at, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, at)
		if err := s.config.Disk.MakeFolder(filepath.Dir(target)); err != nil {
			return err
		}
		if err := s.config.Disk.Rename(name, target); err != nil {
			return err
		}
	}
	return nil
}

// mergeOrder orders the files of a record for merge. A checkpoint's manifest comes after the checkpoint's
// other files, because it makes the checkpoint complete. run.json comes last, because it marks the run
// as finished.
func mergeOrder(name string) int {
	return slices.Index([]string{checkpoint.Manifest, "run.json"}, filepath.Base(name))
}

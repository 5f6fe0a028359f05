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
	// openPatience is how long a connection for a copy may take, stallPatience how long nothing may
	// move on it, and readyPatience how long a holder may take to find out whether it can carry a
	// plan out, whose data it reads.
	openPatience  = 3 * time.Second
	stallPatience = 10 * time.Second
	readyPatience = 2 * time.Minute
	// againAfter is how long it takes until a copy that has failed is tried again, and longestAgain
	// how long after many that have.
	againAfter   = 500 * time.Millisecond
	longestAgain = 3 * time.Second
)

// held is what another process has of a submission that this process carries out.
type held struct {
	has     Version
	latest  Version          // that it has stored, though later copies may have failed
	files   map[string]stamp // nil if the copy is to be made anew
	knows   bool             // it has the last files, or has dropped its copy
	sending bool
	failed  int           // copies, one after the other
	why     string        // the latest of them failed; empty if none did
	refused time.Duration // since when it has refused them all; 0 if it does not
	told    bool          // the log says so
	unfit   time.Duration // it is not to become a holder before
	unable  bool          // its disk or the plan's data refused the latest whole copy
	retry   time.Duration // time of the next copy to an unable holder
}

// stamp tells whether a file has changed.
type stamp struct{ size, at int64 }

// supplyOne keeps one process up to date, until another one takes over or it knows that the
// submission has ended.
func (s *Service) supplyOne(d *duty, name string, c *held) {
	for again := againAfter; ; {
		s.mu.Lock()
		head, changed, over := s.due(d, name, c), d.changed, d.lost || c.knows && d.ending
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
			changed = nil // it needs time
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
func (s *Service) isUnable(c *held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.unable
}

// due returns what a process is to be sent now; nil if it has all; s.mu is held.
func (s *Service) due(d *duty, name string, c *held) *protos.CopyHead {
	h := d.of
	stays := !d.removed && (name == d.next || slices.Contains(h.plan.Holders, name))
	switch {
	case c.knows:
		return nil
	case stays && (s.now() < c.retry || !d.ending && c.files != nil && c.has == h.version):
		return nil
	case !stays && !d.removed && slices.Contains(d.replicas, name): // until the registry knows
		return nil
	}
	head := s.head(h, c)
	head.Ended, head.Dismissed = d.ending && stays, !stays
	return head
}

// head returns the beginning of the next copy; s.mu is held.
func (s *Service) head(h *holding, c *held) *protos.CopyHead {
	return &protos.CopyHead{From: s.config.Process, Version: h.version.message(), Plan: h.plan, Whole: c.files == nil}
}

// copyTo brings one process up to date, and takes in its answer to the question.
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
			s.tellCopies(h, "")
		}
	}
	d.change()
	return err
}

// tellAfter is how many copies fail, one after the other, until the log says so: one that fails
// alone may have met a holder that is busy.
const tellAfter = 2

// copyFailed notes that a copy has failed. The answer is the holder's, or nil if it gave none; s.mu
// is held.
func (s *Service) copyFailed(d *duty, name string, c *held, err error, answer *protos.CopyAnswer) {
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
		s.tellCopies(d.of, "")
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
	answer, err := heard(conn, in)
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
	return heard(conn, in)
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

// heard reads an answer.
func heard(conn net.Conn, in *bufio.Reader) (*protos.CopyAnswer, error) {
	if err := conn.SetReadDeadline(time.Now().Add(readyPatience)); err != nil {
		return nil, err
	}
	answer := &protos.CopyAnswer{}
	if err := request.Read(in, answer); err != nil {
		return nil, fmt.Errorf("it has not answered: %w", err)
	}
	return answer, nil
}

// finished reports whether a file of a record belongs to what has finished: to a run, to what was
// chosen, or to the log.
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

// unfinished reports whether a file of a record belongs to a program that writes into it, as its
// lock does.
func unfinished(name string) bool {
	return strings.HasSuffix(name, ".partial") || strings.Contains(name, ".partial/") ||
		strings.HasPrefix(path.Base(name), ".")
}

// lively is a connection on which something has to move.
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

// Take takes a copy over a connection that another process has made. Its name is empty if the
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
		if err := s.take(conn, in, head); err != nil {
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

// take carries out what a copy's head says. It answers twice: whether it wants the files, and
// whether it has them.
func (s *Service) take(conn net.Conn, in *bufio.Reader, head *protos.CopyHead) error {
	if head.Asks {
		return request.Write(lively{conn}, s.tellWhetherHas(head.Plan.Id))
	}
	h, answer := s.enter(head, s.entryOf(head.Plan.Id))
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
	if err = s.settle(h, head, files, err); err != nil {
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

// settle ends what enter has begun: the files have come, unless there is an error. What is left of
// them is gone before another copy can begin, which has its files in the same folder.
func (s *Service) settle(h *holding, head *protos.CopyHead, files string, err error) error {
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
	if h.folder == "" { // it was never taken
		delete(s.all, head.Plan.Id)
	}
	return err
}

// entryOf returns the registry's entry of a submission, as far as this process knows it; nil without.
func (s *Service) entryOf(id string) (e *protos.RegistrySubmission) {
	if r := s.config.Registry(); r != nil {
		_ = r.ReadLocal(s.config.Stop, func(state *registry.State) { e = proto.CloneOf(state.Submission(id)) })
	}
	return e
}

// enter finds out whether a copy is to be taken, and returns its holding, which is busy then. The
// entry is the registry's; nil if it has none.
func (s *Service) enter(head *protos.CopyHead, e *protos.RegistrySubmission) (*holding, *protos.CopyAnswer) {
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
	case head.Dismissed:
		s.forget(h, "")
		return nil, &protos.CopyAnswer{}
	case !known:
		h = &holding{plan: head.Plan}
		s.all[head.Plan.Id] = h
	case s.hasRecord(h):
		s.giveUp(h, head.From)
		return refused("it is being changed")
	}
	h.term, h.busy = term, true
	return h, &protos.CopyAnswer{}
}

// install makes what has come the copy, or a part of it: a run as a whole; s.mu is held.
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
	return s.keep(h)
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

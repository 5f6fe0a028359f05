package submission

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/request"
)

// Bounds of a ledger that is read back.
const (
	// maxEntry is the longest line in bytes; others are passed over.
	maxEntry = 64 << 10
	// maxLedger is how much of the end of the file is read. Three lines are written for each
	// submission.
	maxLedger = 16 << 20
)

// entry is a submission as it is at a time, and a line of the ledger, where it holds from then on.
type entry struct {
	// ID tells it apart from all others of the cluster.
	ID string `json:"id"`
	// Plan is the plan's name, and File the plan's file without its folder.
	Plan string `json:"plan"`
	File string `json:"file"`
	// By is the name of who submitted it.
	By        string    `json:"by"`
	Submitted time.Time `json:"submitted"`
	State     string    `json:"state"`
	// Done and Total count runs.
	Done  int `json:"done"`
	Total int `json:"total"`
	// Target is the plan's; 0 if it has none.
	Target float64 `json:"target,omitempty"`
	// Error is why it has failed, or was stopped or interrupted.
	Error string `json:"error,omitempty"`
	// Place says where nodes live, as it was submitted.
	Place []string `json:"place,omitempty"`
	// Folder of the record, within the process's folder of records.
	Folder string `json:"folder"`
	// Holders are the processes that hold it, the one that it was submitted to first; none if that
	// one alone does.
	Holders []string `json:"holders,omitempty"`
	// Alone says why no other process holds it; empty if others do.
	Alone string `json:"alone,omitempty"`
	// Continues are the ids of the submissions that this one continues, the latest first.
	Continues []string `json:"continues,omitempty"`
}

// check returns an error for an entry that no process has written.
func (e *entry) check() error {
	if e.ID == "" || e.Plan == "" || e.Folder != filepath.Base(e.Folder) || !filepath.IsLocal(e.Folder) || e.Done < 0 ||
		e.Total < e.Done {
		return fmt.Errorf("entry %.80q of plan %.80q in folder %.80q with %d of %d runs", e.ID, e.Plan, e.Folder,
			e.Done, e.Total)
	}
	return nil
}

// ledger is the file in which a process keeps what was submitted to it, so that its next life
// knows: a line of JSON for each state, the last of a submission being the present. It lies in the
// folder of records and has the name of the process in its own.
type ledger struct{ path string }

func (q *Queue) ledger() ledger {
	return ledger{filepath.Join(q.config.Out, "submissions-"+q.config.Process+".jsonl")}
}

// append writes an entry at the end. What was cut short before does not spoil it.
func (l ledger) append(e *entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	var last [1]byte
	if size, _ := f.Seek(0, io.SeekEnd); size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err != nil || last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// read returns the last entry of each of the latest submissions, in the order of their first ones.
// Lines that cannot be read, as those that were being written when the process was killed, are
// passed over and counted.
func (l ledger) read() (entries []*entry, bad int, err error) {
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, max(size-maxLedger, 0), maxLedger), maxEntry)
	at := map[string]int{} // of an entry, by id
	for {
		line, more, err := in.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.State == removed })
			return entries[max(len(entries)-MaxKept, 0):], bad, nil
		case err != nil:
			return nil, bad, err
		case more: // it is too long
			bad++
			for more && err == nil {
				_, more, err = in.ReadLine()
			}
			continue
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		e := &entry{}
		if json.Unmarshal(line, e) != nil || e.check() != nil {
			bad++
		} else if i, known := at[e.ID]; known {
			entries[i] = e
		} else {
			at[e.ID] = len(entries)
			entries = append(entries, e)
		}
	}
}

// replace rewrites the ledger.
func (l ledger) replace(entries []*entry) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for _, e := range entries {
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	return record.WriteFile(l.path, text.Bytes())
}

// Remember takes over what was submitted to earlier lives of this process. What had not ended was
// interrupted: its record is closed with what had finished. What others hold as well is carried out
// by the one that owns it.
func (q *Queue) Remember() {
	l := q.ledger()
	entries, bad, err := l.read()
	if err != nil {
		q.config.Log("what was submitted to this process before is not known: %v", err)
		return
	}
	if bad > 0 {
		q.config.Log("%s: %d lines cannot be read and are passed over", l.path, bad)
	}
	written := len(entries) > 0
	if h := q.config.Holders; h != nil {
		entries = slices.DeleteFunc(entries, func(e *entry) bool { return !request.Over(e.State) && h.Holds(e.ID) })
	}
	var all []*Submission
	for i, e := range entries {
		s := q.submissionOf(e)
		all, entries[i] = append(all, s), &s.entry
	}
	if written {
		if err := l.replace(entries); err != nil {
			q.config.Log("%v", err)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = all
}

// submissionOf returns what an earlier life of the process has noted, and notes that it is over.
func (q *Queue) submissionOf(e *entry) *Submission {
	s := q.newSubmission(*e)
	if !s.ended() {
		s.interrupted()
	}
	s.recall("in an earlier life of the process; record")
	return s
}

// recall has what has ended elsewhere, or in an earlier life, be told from its record, which is
// where it says.
func (s *Submission) recall(where string) {
	s.past = true
	s.end(nil)
	if s.Total > 0 {
		s.share = float64(s.Done) / float64(s.Total)
	}
	line := fmt.Sprintf("%s, %s in %s", s.State, where, s.folder())
	if s.Error != "" {
		line += ": " + s.Error
	}
	s.lines = []string{s.Submitted.Format(logTime) + " " + line}
}

// interrupted closes the record of a submission whose process has ended before it.
func (s *Submission) interrupted() {
	s.Error = fmt.Sprintf("the process ended while this was %s; what had finished is in %s", s.State, s.folder())
	s.State = request.Interrupted
	done, err := s.closeRecord()
	if err != nil {
		s.Error += "; it cannot be closed: " + err.Error()
		return
	}
	s.Done = done
}

// publish writes the submission's state into the ledger, and has others told; s.mu is held.
func (s *Submission) publish() {
	s.noted = s.queue.config.Changed()
	s.note(s.entry)
}

// note writes an entry into the ledger.
func (s *Submission) note(e entry) {
	e.Error = e.Error[:min(len(e.Error), maxEntry/4)]
	if err := s.queue.ledger().append(&e); err != nil {
		s.queue.config.Log("the next life of this process will not know that %s is %s: %v", s.ID, e.State, err)
	}
}

package submission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/record"
)

// The record's folder can be deleted, renamed or replaced while its process writes it; its disk can
// become full or read-only. The other holders have copies: the process hands the submission over to
// them, and sends no incomplete record in place of a copy.

// recordEvery is the interval between checks of a record under way.
const recordEvery = time.Second

// errRecord is the reason why this process cannot keep a submission's record.
type errRecord struct{ error }

func (e errRecord) Unwrap() error { return e.error }

// Intact returns an error if the record of a submission that this process conducts is incomplete; see
// holders.Config.
func (q *Queue) Intact(id string) error {
	if s := q.own(id); s != nil {
		return s.intact()
	}
	return nil
}

// intact returns an error if the plan or a finished run is missing from the record's folder.
func (s *Submission) intact() error {
	info, err := os.Stat(s.folder())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errRecord{fmt.Errorf("the folder of its record, %s, is gone", s.folder())}
	case err != nil:
		return errRecord{fmt.Errorf("the folder of its record: %w", err)}
	case !info.IsDir():
		return errRecord{fmt.Errorf("the folder of its record, %s, is a file now", s.folder())}
	}
	s.mu.Lock()
	saved := slices.Clone(s.saved)
	s.mu.Unlock()
	names := []string{record.PlanName}
	for _, n := range saved {
		names = append(names, record.RunFile(n))
	}
	for _, name := range names {
		switch _, err := os.Lstat(filepath.Join(s.folder(), name)); {
		case errors.Is(err, fs.ErrNotExist):
			return errRecord{fmt.Errorf("%s is gone from the folder of its record, %s", name, s.folder())}
		case err != nil:
			return errRecord{fmt.Errorf("its record: %w", err)}
		}
	}
	return nil
}

// finished returns the numbers of the runs that did not fail.
func finished(runs []record.Run) (numbers []int) {
	for i := range runs {
		if runs[i].Outcome != record.Failed {
			numbers = append(numbers, runs[i].Number)
		}
	}
	return numbers
}

// watchRecord ends the submission when its record is lost. stop ends the watch.
func (s *Submission) watchRecord() (stop func()) {
	over := make(chan struct{})
	look := func() {
		if err := s.intact(); err != nil {
			s.end(err)
		}
	}
	look()
	go func() {
		ticks := time.NewTicker(recordEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				look()
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

// recordFault returns the reason why the record cannot be kept here, or nil if the submission ends for
// another reason. err is the error of its runs.
func (s *Submission) recordFault(err error) error {
	var fault errRecord
	if errors.As(err, &fault) {
		return fault
	}
	if lost := s.intact(); lost != nil {
		return lost
	}
	var path *fs.PathError
	var link *os.LinkError
	within := func(name string) bool {
		at, failed := filepath.Rel(s.folder(), name)
		return failed == nil && filepath.IsLocal(at)
	}
	if errors.As(err, &path) && within(path.Path) || errors.As(err, &link) && (within(link.Old) || within(link.New)) {
		return errRecord{s.placed(err)}
	}
	return nil
}

// handOver lets another holder continue from its copy of the record, and reports whether one can.
func (s *Submission) handOver(fault error) bool {
	others := slices.DeleteFunc(slices.Clone(s.holders()), func(name string) bool {
		return name == s.queue.config.Process
	})
	if len(others) == 0 || !s.queue.config.Holders.HandOver(s.ID) {
		return false
	}
	s.Log("%v; %s can go on with a copy", fault, strings.Join(others, " or "))
	s.leave()
	return true
}

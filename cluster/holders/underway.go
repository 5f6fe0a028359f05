package holders

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gradwire/gradwire/cluster/checkpoint"
)

// Saved has the other holders given the state of a run under way, which has just been written. It
// does not wait.
func (s *Service) Saved(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[id]
	if h == nil || h.duty == nil || h.duty.lost || h.ended {
		return
	}
	s.saved(h)
	s.advance(h)
}

// advance takes note that something has been added to a submission; s.mu is held.
func (s *Service) advance(h *holding) {
	h.version.Number++
	_ = s.writeNote(h) // it has logged its error
	h.duty.change()
}

// events is the file of the events of a run under way.
const events = "events.jsonl.partial"

// newest caches the newest checkpoint of each run of a record, by the run's folder. While files are
// copied, the run may write a newer checkpoint; the copy still gets all files of the cached one.
type newest map[string]string

// goesOn reports whether a run under way needs a file of its record to continue: its events, or a file
// of its newest checkpoint.
func (n newest) goesOn(dir, name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) < 3 || parts[0] != "runs" {
		return false
	}
	run := filepath.Join(dir, parts[0], parts[1])
	state, known := n[run]
	if !known {
		if states, err := checkpoint.NewFolder(run, 1).Names(); err == nil && len(states) > 0 && !over(run) {
			state = states[0]
		}
		n[run] = state
	}
	return state != "" && (name == "runs/"+parts[1]+"/"+events || len(parts) > 3 && parts[2] == checkpoint.Name &&
		parts[3] == filepath.Base(state))
}

// over reports whether a run has finished, by its folder.
func over(run string) bool {
	_, err := os.Stat(filepath.Join(run, "run.json"))
	return err == nil
}

// dropStates removes from a copy the checkpoints that are not needed any more.
func dropStates(dir string) error {
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	for _, run := range runs {
		folder := checkpoint.NewFolder(run, 1)
		if over(run) {
			err = errors.Join(err, folder.Remove(), os.RemoveAll(filepath.Join(run, events)))
			continue
		}
		err = errors.Join(err, folder.DropOld())
	}
	return err
}

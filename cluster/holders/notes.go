package holders

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/record/strict"
	"github.com/gradwire/gradwire/protos"
)

// note is the JSON file of a holding, in the process's folder of copies.
type note struct {
	// Term is the latest known term of the submission.
	Term uint64 `json:"term"`
	// Version is the version of the copy or record in Folder, a folder within the folder of records.
	Version Version `json:"version"`
	Folder  string  `json:"folder"`
	// EndedBy is the process that ended the submission; empty before the end. If both EndedBy and Folder
	// are empty, this process is a holder no longer.
	EndedBy string `json:"ended_by,omitempty"`
	// Plan is a protos.HeldPlan.
	Plan []byte `json:"plan"`
}

// notes returns the name of the folder of copies and notes. Its dot hides it from readers of records.
func (s *Service) notes() string { return ".held-" + s.config.Process }

// copyName returns the name of a copy's folder, within the folder of records.
func (s *Service) copyName(id string) string { return filepath.Join(s.notes(), id) }

func (s *Service) notePath(id string) string {
	return filepath.Join(s.config.Out, s.notes(), id+".json")
}

// writeNote writes a holding to the disk; s.mu is held. It logs the first of consecutive errors.
func (s *Service) writeNote(h *holding) error {
	n := note{Term: h.term, Version: h.version, Folder: h.folder, EndedBy: h.by}
	var err error
	if n.Plan, err = proto.Marshal(h.plan); err == nil {
		var text []byte
		if text, err = json.Marshal(n); err == nil {
			path, disk := s.notePath(h.plan.Id), s.config.Disk
			err = errors.Join(disk.MakeFolder(filepath.Dir(path)), disk.WriteFile(path, append(text, '\n')))
		}
	}
	if err != nil {
		s.failed(h, &h.noteFault, err)
		return err
	}
	h.noteFault = ""
	return nil
}

// dismissed reports whether this process is a holder no longer.
func (h *holding) dismissed() bool { return h.ended && h.by == "" }

// end records that a process has ended a submission; s.mu is held.
func (s *Service) end(h *holding, by string) {
	h.ended, h.by = true, by
	h.plan = proto.CloneOf(h.plan)
	h.plan.Submitted = &protos.SubmitPlan{File: h.plan.Submitted.GetFile(), Place: h.plan.Submitted.GetPlace()}
	s.tidy(maxCopies, s.hasCopy, func(old *holding) {
		s.removeCopy(old)
		_ = s.writeNote(old) // it has logged its error
	})
	s.tidy(maxEnded, func(h *holding) bool { return h.ended }, func(old *holding) {
		s.removeCopy(old)
		delete(s.all, old.plan.Id)
		s.removeNote(old)
	})
}

// removeNote removes a holding's note, if there is one; s.mu is held.
func (s *Service) removeNote(h *holding) {
	if err := os.Remove(s.notePath(h.plan.Id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.config.Log("%v", err)
	}
}

// tidy drops the holdings of a kind that were submitted first, until at most most are left; s.mu is
// held.
func (s *Service) tidy(most int, kind func(h *holding) bool, drop func(h *holding)) {
	all := slices.DeleteFunc(slices.Collect(maps.Values(s.all)), func(h *holding) bool { return !kind(h) })
	slices.SortFunc(all, func(a, b *holding) int { return cmp.Compare(a.plan.At, b.plan.At) })
	for _, old := range all[:max(len(all)-most, 0)] {
		drop(old)
	}
}

// hasCopy reports whether this process has a copy of an ended submission's record.
func (s *Service) hasCopy(h *holding) bool { return h.ended && h.folder == s.copyName(h.plan.Id) }

// removeCopy removes the copy of a record, if there is one; s.mu is held.
func (s *Service) removeCopy(h *holding) {
	if h.folder != s.copyName(h.plan.Id) {
		return
	}
	if err := os.RemoveAll(filepath.Join(s.config.Out, h.folder)); err != nil {
		s.config.Log("copy of submission %s: %v", h.plan.Id, err)
	}
	h.folder = ""
}

// drop removes a copy, because a process has ended the submission without it, or because this process
// is a holder no longer, if the name is empty; s.mu is held.
func (s *Service) drop(h *holding, by string) {
	if s.removeCopy(h); by == "" {
		h.folder, h.version = "", Version{}
	}
	s.end(h, by)
	_ = s.writeNote(h) // it has logged its error
}

// rename gives a folder of records another name, if it is there.
func (s *Service) rename(from, to string) error {
	if from == to || from == "" {
		return nil
	}
	target := filepath.Join(s.config.Out, to)
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	err := s.config.Disk.Rename(filepath.Join(s.config.Out, from), target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// vacant is the name that the folder of a submission has when this process carries it out: the one
// that it has, if that is no copy's.
func (s *Service) vacant(h *holding) string {
	if h.folder != s.copyName(h.plan.Id) {
		return h.folder
	}
	name := filepath.Base(h.plan.Folder)
	if s.missing(name) {
		return name
	}
	// Processes of one machine may have one folder of records.
	name = fmt.Sprintf("%s-%s-%d", name, s.config.Process, h.term)
	return name
}

func (s *Service) missing(folder string) bool {
	_, err := os.Lstat(filepath.Join(s.config.Out, folder))
	return errors.Is(err, fs.ErrNotExist)
}

// Remember loads the notes of earlier incarnations of this process.
func (s *Service) Remember() {
	paths, err := filepath.Glob(s.notePath("*"))
	if err != nil {
		s.config.Log("%v", err)
	}
	halves, _ := filepath.Glob(filepath.Join(s.config.Out, s.notes(), "*.partial")) // the same error
	for _, path := range halves {
		if err := os.RemoveAll(path); err != nil {
			s.config.Log("%v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	for _, path := range paths {
		if err := s.load(path); err != nil {
			s.config.Log("%s: %v", path, err)
		}
	}
}

// load loads one note; s.mu is held. It completes a rename of the folder that a crash interrupted.
func (s *Service) load(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var n note
	if err := strict.DecodeKnown(text, &n); err != nil {
		return fmt.Errorf("line %w", err)
	}
	plan := &protos.HeldPlan{}
	if err := proto.Unmarshal(n.Plan, plan); err != nil {
		return err
	}
	if n.Folder != "" && !filepath.IsLocal(n.Folder) || plan.Id+".json" != filepath.Base(path) {
		return fmt.Errorf("it is about submission %.40q in folder %.80q", plan.Id, n.Folder)
	}
	if n.EndedBy == "" && n.Folder != "" && s.missing(n.Folder) {
		if s.missing(s.copyName(plan.Id)) {
			n.Version = Version{}
		} else if err := s.rename(s.copyName(plan.Id), n.Folder); err != nil {
			return err
		}
	}
	h := &holding{plan: plan, folder: n.Folder, version: n.Version, term: n.Term, by: n.EndedBy,
		ended: n.EndedBy != "" || n.Folder == ""}
	s.all[plan.Id] = h
	if !h.ended {
		_ = s.writeNote(h) // it logs its error: a process that cannot write does not claim
	}
	return nil
}

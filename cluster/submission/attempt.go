package submission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/protos"
)

const (
	// fatalDeaths is how many processes may die of a submission whose run has not got ahead in any
	// of these attempts, and mostDeaths how many may die in all between two runs or checkpoints.
	fatalDeaths = 2
	mostDeaths  = 4
	// attemptPause is the time for which a process serves clients before it carries out a submission that
	// may have killed another process.
	attemptPause = time.Second
)

// attempt tells the other holders that this process is about to run the submission. It returns an
// error if too many processes have died of it.
func (s *Submission) attempt() error {
	if len(s.holders()) == 0 {
		return nil
	}
	dead, unrecorded := split(s.queue.config.Holders.Deaths(s.ID))
	if err := errors.Join(fatal(dead), unkeepable(unrecorded)); err != nil {
		return err
	}
	if len(unrecorded) > 0 {
		s.Log("%s could not keep the record; a copy takes its place", processes(unrecorded))
	}
	if len(dead) > 0 {
		s.Log("%s died while carrying this out; it is tried again in %v", processes(dead), attemptPause)
		if err := await(s.stop, time.After(attemptPause)); err != nil {
			return err
		}
	}
	return s.queue.config.Holders.Attempt(s.stop, s.ID)
}

// fatal returns an error if processes that died while they carried a submission out died of it: two
// whose run had not got ahead, or a few in all.
func fatal(dead []*protos.Attempt) error {
	stuck := slices.DeleteFunc(slices.Clone(dead), func(a *protos.Attempt) bool { return a.Advanced })
	switch {
	case len(stuck) >= fatalDeaths:
		return fmt.Errorf("%s died of it, each before its run had got ahead; it is not tried again. Does it need more "+
			"memory than they have? Their logs end with the reason", processes(stuck))
	case len(dead) >= mostDeaths:
		return fmt.Errorf("%s died while carrying it out, and no run was finished or saved meanwhile; it is not tried "+
			"again. With checkpoints (checkpoint: {every: 1m}) a run goes on where it was saved", processes(dead))
	}
	return nil
}

// split separates the attempts of dead processes from those that handed the record over.
func split(all []*protos.Attempt) (dead, unrecorded []*protos.Attempt) {
	for _, a := range all {
		if a.Unrecorded {
			unrecorded = append(unrecorded, a)
		} else {
			dead = append(dead, a)
		}
	}
	return dead, unrecorded
}

// unkeepable returns an error if the record was handed over several times and no run finished or saved
// a checkpoint in between.
func unkeepable(unrecorded []*protos.Attempt) error {
	if len(unrecorded) < mostDeaths {
		return nil
	}
	return fmt.Errorf("%s could not keep its record, and no run was finished or saved meanwhile; it is not tried "+
		"again. Their logs say why", processes(unrecorded))
}

// processes names the processes of attempts.
func processes(all []*protos.Attempt) string {
	var names []string
	count := map[string]int{}
	for _, a := range all {
		if count[a.Process]++; count[a.Process] == 1 {
			names = append(names, a.Process)
		}
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d times)", name, n)
		}
	}
	if len(names) == 1 {
		return "process " + names[0]
	}
	return "processes " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// advanced tells the other holders that the run makes progress, at its second evaluation in this
// attempt: the first may be of the initial model.
func (s *Submission) advanced(pr experiment.Progress) {
	if len(s.holders()) == 0 {
		return
	}
	switch {
	case pr.Finished != nil:
		s.reached = nil
	case pr.Note != "":
	case s.reached == nil:
		s.reached = &pr.Share
	case pr.Share > *s.reached:
		s.queue.config.Holders.Advanced(s.ID)
	}
}

// Fail ends the submission because it harms its processes.
func (s *Submission) Fail(err error) { s.end(err) }

package registry

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// Before reports whether version a is older than version b. A missing version is older than all
// others.
func Before(a, b *protos.Version) bool {
	return cmp.Or(cmp.Compare(a.GetTerm(), b.GetTerm()), cmp.Compare(a.GetNumber(), b.GetNumber())) < 0
}

// claimSubmission grants a submission without an owner to a process that has the committed version.
func (s *State) claimSubmission(index uint64, by *protos.RegistryProcess,
	k *protos.ClaimSubmission) *protos.RegistryResult {
	v := s.submissions[k.GetId()]
	if v == nil {
		v = &protos.RegistrySubmission{Id: k.GetId(), Replicas: k.GetReplicas(), Version: k.GetVersion()}
		s.submissions[k.GetId()] = v
	}
	code := protos.RegistryResult_TAKEN
	switch {
	case v.Ended:
		code = protos.RegistryResult_ENDED
	case v.Owner == nil && k.GetTerm() > v.Term && Before(k.GetVersion(), v.Version):
		code = protos.RegistryResult_STALE
	case v.Owner == nil && k.GetTerm() > v.Term:
		v.Owner, v.Term, v.Index = by, k.GetTerm(), index
		code = protos.RegistryResult_DONE
	case proto.Equal(v.Owner, by) && k.GetTerm() == v.Term:
		code = protos.RegistryResult_DONE
	}
	return submissionResult(code, v)
}

func submissionResult(code protos.RegistryResult_Code, v *protos.RegistrySubmission) *protos.RegistryResult {
	return &protos.RegistryResult{Code: code, Owner: v.Owner, Index: v.Index, Term: v.Term}
}

// owned returns a submission that a process owns in a term, or the result that denies a command
// about it.
func (s *State) owned(by *protos.RegistryProcess, id string,
	term uint64) (v *protos.RegistrySubmission, denied *protos.RegistryResult) {
	v = s.submissions[id]
	switch {
	case v == nil:
		return nil, result(protos.RegistryResult_ABSENT)
	case v.Ended:
		return nil, submissionResult(protos.RegistryResult_ENDED, v)
	case v.Owner == nil || v.Term != term || !proto.Equal(v.Owner, by):
		return nil, submissionResult(protos.RegistryResult_TAKEN, v)
	}
	return v, nil
}

// release ends the ownership of a submission.
func release(v *protos.RegistrySubmission, why protos.Release) *protos.RegistryResult {
	v.Previous, v.Owner, v.Release = v.Owner, nil, why
	return submissionResult(protos.RegistryResult_DONE, v)
}

func (s *State) commitVersion(by *protos.RegistryProcess, k *protos.CommitVersion) *protos.RegistryResult {
	v, denied := s.owned(by, k.GetId(), k.GetTerm())
	if denied != nil {
		return denied
	}
	if !Before(k.GetVersion(), v.Version) {
		v.Version, v.Replicas = k.GetVersion(), k.GetReplicas()
	}
	return submissionResult(protos.RegistryResult_DONE, v)
}

func (s *State) giveUpSubmission(by *protos.RegistryProcess, k *protos.GiveUpSubmission) *protos.RegistryResult {
	v, denied := s.owned(by, k.GetId(), k.GetTerm())
	if denied != nil {
		return denied
	}
	return release(v, k.GetRelease())
}

func (s *State) releaseSubmission(k *protos.ReleaseSubmission) *protos.RegistryResult {
	v, denied := s.owned(s.submissions[k.GetId()].GetOwner(), k.GetId(), k.GetTerm())
	if denied != nil {
		return denied
	}
	return release(v, protos.Release_OWNER_GONE)
}

func (s *State) endSubmission(index uint64, by *protos.RegistryProcess,
	k *protos.EndSubmission) *protos.RegistryResult {
	v, denied := s.owned(by, k.GetId(), k.GetTerm())
	if denied != nil {
		return denied
	}
	v.Ended, v.Index = true, index
	r := release(v, protos.Release_OWNER_GONE)
	s.evictEnded()
	return r
}

// evictEnded deletes the submission that ended first, if more than maxEnded have ended.
func (s *State) evictEnded() {
	ended := map[string]*protos.RegistrySubmission{}
	for id, v := range s.submissions {
		if v.Ended {
			ended[id] = v
		}
	}
	if len(ended) > maxEnded {
		delete(s.submissions, leastRecent(ended, func(v *protos.RegistrySubmission) uint64 { return v.Index }))
	}
}

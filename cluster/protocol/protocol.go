// Package protocol says which versions of the protocol between processes a build speaks. Each
// process announces its range of versions. Two processes agree on the newest version that both
// speak. A cluster refuses a process if no version is common to it and all members; the error names
// that process.
package protocol

import "fmt"

// The versions that this build speaks. If an earlier build would misunderstand a change of
// metadata, of the transport's records, of frames or of the meaning of messages, raise newest, and
// keep the earlier behaviour where the agreed version is lower. When a release drops the earlier
// behaviour, raise oldest. A new field or message that an earlier build ignores needs no new
// version.
const (
	newest = 5
	oldest = 5
)

// Negotiated is the first version whose builds announce a range. Earlier builds speak one version.
const Negotiated = 5

// Range is the range of versions that a build speaks, both bounds included.
type Range struct{ Oldest, Newest byte }

// Spoken returns the range of this build.
func Spoken() Range { return Range{Oldest: oldest, Newest: newest} }

// Of returns the range of a build that speaks one version.
func Of(version byte) Range { return Range{version, version} }

// Valid reports whether a range contains a version.
func (r Range) Valid() bool { return r.Oldest > 0 && r.Oldest <= r.Newest }

// Meet returns the intersection of two ranges. If it is empty, the result is not Valid.
func (r Range) Meet(other Range) Range {
	return Range{max(r.Oldest, other.Oldest), min(r.Newest, other.Newest)}
}

// Agreed returns the newest version in both ranges, which their processes speak with each other; 0
// if there is none.
func (r Range) Agreed(other Range) byte {
	if both := r.Meet(other); both.Valid() {
		return both.Newest
	}
	return 0
}

// String returns the range for people, as in "5" or "5 to 6".
func (r Range) String() string {
	if r.Oldest == r.Newest {
		return fmt.Sprint(r.Newest)
	}
	return fmt.Sprintf("%d to %d", r.Oldest, r.Newest)
}

// Error says that a process and a cluster, or another process, have no version in common.
type Error struct {
	// Name, Range and Build describe the process. An empty Build is unknown.
	Name  string
	Range Range
	Build string
	// Others is the range of the cluster or the other process. Whom names it, as in "this cluster".
	Others Range
	Whom   string
}

func (e *Error) Error() string {
	build := ""
	if e.Build != "" {
		build = " (build " + e.Build + ")"
	}
	text := fmt.Sprintf("process %s%s speaks protocol %v, %s %v: ", e.Name, build, e.Range, e.Whom, e.Others)
	if e.Range.Newest < e.Others.Oldest {
		return text + "upgrade " + e.Name
	}
	return text + "first upgrade the others to a build that speaks both"
}

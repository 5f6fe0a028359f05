// Package protocol says which versions of the protocol between processes a build speaks. Each process
// announces its range. Processes speak the newest version that both know, and a process whose range
// does not meet those of a cluster is refused by name.
package protocol

import "fmt"

// The versions that this build speaks. A change of metadata, of the transport's records, of frames or
// of the meaning of messages that an earlier build would misunderstand is a new version: raise newest,
// and keep the earlier behaviour where the agreed version is lower. A release that drops that behaviour
// raises oldest. A new field or message that an earlier build ignores needs no version.
const (
	newest = 5
	oldest = 5
)

// Negotiated is the first version with a range. Builds before it speak one version.
const Negotiated = 5

// Range is the versions that a build speaks, both bounds included.
type Range struct{ Oldest, Newest byte }

// Spoken returns the range of this build.
func Spoken() Range { return Range{Oldest: oldest, Newest: newest} }

// Of returns the range of a build that speaks one version.
func Of(version byte) Range { return Range{version, version} }

// Valid reports whether a range has a version.
func (r Range) Valid() bool { return r.Oldest > 0 && r.Oldest <= r.Newest }

// Meet returns the versions of both ranges. If there are none, the result is not Valid.
func (r Range) Meet(other Range) Range {
	return Range{max(r.Oldest, other.Oldest), min(r.Newest, other.Newest)}
}

// Agreed returns the version that processes with these ranges speak with each other; 0 for none.
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
	// Name, Range and Build are of the process. Build is empty if it is unknown.
	Name  string
	Range Range
	Build string
	// Others is the range of the cluster, or of the other process, which Whom names.
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

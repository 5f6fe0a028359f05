package synthetic

import (
	"slices"

	"github.com/gradwire/gradwire/datasets/nslkdd"
)

// The columns and words of NSL-KDD in the order of its 122-input encoding: 38
// numeric columns, then one column for each protocol, service and flag.

// numeric is a numeric column of the 122-input encoding.
type numeric int

const (
	duration numeric = iota
	srcBytes
	dstBytes
	land
	wrongFragment
	urgent
	hot
	failedLogins
	loggedIn
	compromised
	rootShell
	suAttempted
	numRoot
	fileCreations
	shells
	accessFiles
	outboundCommands
	hostLogin
	guestLogin
	count
	srvCount
	serrorRate
	srvSerrorRate
	rerrorRate
	srvRerrorRate
	sameSrvRate
	diffSrvRate
	srvDiffHostRate
	hostCount
	hostSrvCount
	hostSameSrvRate
	hostDiffSrvRate
	hostSameSrcPortRate
	hostSrvDiffHostRate
	hostSerrorRate
	hostSrvSerrorRate
	hostRerrorRate
	hostSrvRerrorRate
	numerics
)

// correlated are the numeric columns of the 93-input encoding.
var correlated = []numeric{
	loggedIn, count, serrorRate, srvSerrorRate, sameSrvRate,
	hostSrvCount, hostSameSrvRate, hostSerrorRate, hostSrvSerrorRate,
}

// The words of the symbolic columns are the reader's.
var protocols, services, flags = nslkdd.Words()

// The classes, in the order of their labels.
const (
	normal = iota
	dos
	probe
	r2l
	u2r
	classes
)

// word returns the index of a word in a sorted vocabulary; profiles name
// nothing else.
func word(words []string, name string) int {
	i, found := slices.BinarySearch(words, name)
	if !found {
		panic("synthetic: a profile names an unknown word: " + name)
	}
	return i
}

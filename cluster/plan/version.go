package plan

import (
	"strconv"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Version is today's version of the language of plans. A plan without a version is read as one of
// this version.
//
// In version 2, parameter servers had the one consistency asp. Version 3 did at first without the
// key, and has it again with others.
const Version = 3

// Upgrade rewrites the tree of a plan that says an earlier version, such as the plan of a record,
// into the language of this one. It reports whether it has changed the tree. A version that was
// never written stays as it is, for [ReadPlan] to refuse.
func Upgrade(root *syntax.Node) bool {
	version, given := root.Get("version")
	if !given || version.Text != "2" {
		return false
	}
	version.Text = strconv.Itoa(Version)
	return true
}

package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Version is today's version of the language of plans. A plan without a version is read as one of
// this version.
//
// In version 2, parameter servers had the one consistency asp. Version 3 did at first without the
// key, and has it again with others. In versions 2 and 3, an all-reduce without an algorithm was a
// ring.
const Version = 4

// versionOfRings is the last version in which an all-reduce without an algorithm was a ring.
const versionOfRings = 3

// Upgrade rewrites the tree of a plan that says an earlier version, such as the plan of a record,
// into the language of this one, or of [versionOfRings] where an all-reduce names no algorithm:
// [Points] names it. It reports whether it has changed the tree. A version that was never written
// stays as it is, for [ReadPlan] to refuse.
func Upgrade(root *syntax.Node) bool {
	version, given := root.Get("version")
	if !given || version.Text != "2" && version.Text != strconv.Itoa(versionOfRings) {
		return false
	}
	today := Version
	if impliesRing(root) {
		today = versionOfRings
	}
	before := version.Text
	version.Text = strconv.Itoa(today)
	return version.Text != before
}

// impliesRing reports whether some point of a plan has an all-reduce that names no algorithm.
func impliesRing(n *syntax.Node) bool {
	return unnamed(n) || slices.ContainsFunc(n.Items, impliesRing) ||
		slices.ContainsFunc(n.Fields, func(f syntax.Field) bool {
			swept := strings.HasPrefix(f.Key, "architecture.") && strings.HasSuffix(f.Key, ".kind")
			return swept || impliesRing(f.Value)
		})
}

// unnamed reports whether a section is an all-reduce that names no algorithm.
func unnamed(section *syntax.Node) bool {
	kind, given := section.Get("kind")
	_, named := section.Get("algorithm")
	return given && kind.Text == "all-reduce" && !named
}

// nameRings gives the all-reduces of a point the algorithm that they had without one in the plan's
// version.
func nameRings(root *syntax.Node) {
	if root.At("version").Text == strconv.Itoa(versionOfRings) {
		nameRing(root.At("architecture"))
	}
}

func nameRing(section *syntax.Node) {
	if unnamed(section) {
		section.Fields = append(section.Fields, syntax.Entry("algorithm", syntax.NewText("ring").Placed(section)))
	}
	for _, f := range section.Fields {
		nameRing(f.Value)
	}
}

package plan

import (
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Version is today's version of the language of plans. A plan without a version is read as one of
// this version.
//
// In version 2, parameter servers had the setting consistency: {kind: asp}, the only kind there
// was, and resolved plans spelled it out. Version 3 has no such key.
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
	dropConsistency(root)
	return true
}

// dropConsistency takes the key out of every parameter server below n: the plan's own and those
// that a sweep puts in its place.
func dropConsistency(n *syntax.Node) {
	if kind, _ := n.Get("kind"); kind != nil && kind.Text == "parameter-server" {
		asp := syntax.NewMap(syntax.Entry("kind", syntax.NewScalar("asp")))
		n.Fields = slices.DeleteFunc(n.Fields, func(f syntax.Field) bool {
			return f.Key == "consistency" && f.Value.Equal(asp)
		})
	}
	for _, item := range n.Items {
		dropConsistency(item)
	}
	for _, f := range n.Fields {
		dropConsistency(f.Value)
	}
}

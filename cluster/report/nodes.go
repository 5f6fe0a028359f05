package report

import (
	"cmp"
	"strconv"
	"strings"
)

// NodeGroup is the name that the nodes of a group of the plan share: a node's without its number.
func NodeGroup(node string) string {
	group := strings.TrimRight(node, "0123456789")
	if group == "" {
		return node
	}
	return group
}

// CompareNames orders nodes by their groups, and within a group by their numbers.
func CompareNames(a, b string) int {
	one, two := NodeGroup(a), NodeGroup(b)
	numberA, _ := strconv.Atoi(strings.TrimPrefix(a, one)) // none counts as 0
	numberB, _ := strconv.Atoi(strings.TrimPrefix(b, two))
	return cmp.Or(cmp.Compare(one, two), cmp.Compare(numberA, numberB), cmp.Compare(a, b))
}

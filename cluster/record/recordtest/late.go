// Package recordtest judges records in tests.
package recordtest

import (
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
)

// lateness begins what is said of a coordinator that evaluated or ended late, or did not run for a
// while.
var lateness = []string{"an evaluation was due at ", "the run was to end at ", "evaluated nothing from "}

// OnlyLate reports whether runs are degraded for nothing but a late coordinator, which a busy
// machine does to any run: they lost nothing.
func OnlyLate(s record.Summary) bool {
	incidents := 0
	for _, r := range s.Runs {
		for _, x := range r.Incidents {
			if !slices.ContainsFunc(lateness, func(begin string) bool { return strings.HasPrefix(x.What, begin) }) {
				return false
			}
			incidents++
		}
	}
	return incidents > 0
}

// Package recordtest judges records in tests.
package recordtest

import "github.com/gradwire/gradwire/cluster/record"

// OnlyLate reports whether runs are degraded for nothing but what came late, which a busy machine
// does to any run: they lost nothing.
func OnlyLate(s record.Summary) bool {
	for _, r := range s.Runs {
		if r.Outcome != record.Done && !record.LostNothing(r.Incidents) {
			return false
		}
	}
	return true
}

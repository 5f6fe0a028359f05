//go:build race

package kernel

// Under the race detector a sync.Pool drops things at random.
const raceEnabled = true

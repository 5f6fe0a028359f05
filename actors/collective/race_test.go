//go:build race

package collective_test

// Under the race detector the sync.Pool of the kernels drops buffers at random.
const raceEnabled = true

//go:build race

package transport

import "sync/atomic"

// order stands for the positions of all rings, where both of their sides live in one process: the
// race detector knows no atomic words in memory that is mapped.
var order atomic.Uint64

// wrote comes before what is written can be read, and reads before it is.
func wrote() { order.Add(1) }
func reads() { order.Load() }

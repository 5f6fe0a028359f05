package wire

import "sync/atomic"

// Cut says how often the state of a node has been saved before it sent a message, modulo Cuts. A
// receiver that knows its own tells by it which messages the saved state of the sender has not sent
// yet, and which are on their way between two that were saved.
type Cut uint8

const (
	tensorBits = 11 // MaxTensors and more

	// Cuts is the number of different cuts.
	Cuts = 1 << (16 - tensorBits)
)

// CutOf is the cut of a node whose state has been saved so often.
func CutOf(times uint64) Cut { return Cut(times % Cuts) }

// Since returns how much later c is than the cut of a node that was saved so often; it is negative
// if it is earlier.
func (c Cut) Since(times uint64) int {
	return (int(c)-int(times%Cuts)+Cuts+Cuts/2)%Cuts - Cuts/2
}

// Flights count packets by the cut of their frames.
type Flights [Cuts]atomic.Int64

// Before returns how many packets are there of cuts before the last of so many.
func (f *Flights) Before(times uint64) (count int64) {
	for i := range f {
		if Cut(i).Since(times) < 0 {
			count += f[i].Load()
		}
	}
	return count
}

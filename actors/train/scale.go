package train

// Scale says how much one worker's gradient counts where a server takes in those of several.
type Scale string

// The scales.
const (
	// Sum applies every gradient whole: n workers make n steps in the time of one.
	Sum Scale = "sum"
	// Mean divides every gradient by the number of workers, as synchronous averaging does.
	Mean Scale = "mean"
)

// Factor is what a gradient is multiplied by where a number of workers are there.
func (s Scale) Factor(workers int) float32 {
	if s == Mean {
		return 1 / float32(max(workers, 1))
	}
	return 1
}

package train

// Messenger is an Architecture that can say what messages a run of it takes, so that one can tell
// before what a plan costs.
type Messenger interface {
	// Messages is about how many messages, and how many models or gradients in them, a node that
	// trains sends, or is sent in answer, for each of its steps. It has that many neighbours, among
	// that many workers.
	Messages(neighbours, workers int) (messages, models float64)
}

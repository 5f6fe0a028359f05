package train

// Messenger is an Architecture that can say what messages a run of it takes, so that one can tell
// before what a plan costs.
type Messenger interface {
	// Messages is about how many messages, and how many models or gradients in them, a node that
	// trains sends, or is sent in answer, for each of its steps. It has that many neighbours, among
	// that many workers.
	Messages(neighbours, workers int) (messages, models float64)
}

// Predictable is an Architecture that states whether the messages of a run depend on the trained
// values. If they do not, a run without gradients carries the same messages, of the same sizes, at
// the same times.
type Predictable interface {
	// SendsBy describes how messages depend on the values of gradients or models, such as "moved: a
	// model is sent when it has moved far enough"; it is empty if they do not.
	SendsBy() string
}

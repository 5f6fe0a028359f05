// Package protos is the vocabulary of the wire: the generated heads of messages, and the
// Message and Tensor that carry them from mailbox to mailbox.
//
// A head is a small protobuf message. Vectors of parameters or gradients are Tensors: they
// travel beside the head, are counted by reference and are never copied into protobuf.
//
// # Heads and their tensors
//
// The heads of a run's messages, how many tensors each carries, and how many values a tensor has. P
// is the number of the model's parameters, or of those of a shard of it, S the number of vectors
// that the optimiser remembers (1 with momentum), and N the number of workers. Values are float32:
// parameters, or the loss divided by a parameter for gradients. Decoding does not check any of
// this; a receiver refuses what differs. Where a plan compresses, a Push, a Parameters, a Chunk and
// a Model have the words of a code instead, see nn/compress, but for the Parameters with which a
// worker is greeted, the Chunk of a vote, and the Model that a neighbour gets first of differences.
// The answer of AD-PSGD is then the code of the model that the sender had, not the mean.
//
//	head          tensors   values     what they are
//	Push          1         P          a gradient, or the sum of several
//	Pull          0
//	Parameters    1         P          the server's parameters, shared by all receivers
//	Shard         1 or more P          a shard's parameters and optimiser, what it has of workers
//	Holdings      0
//	Replicate     0 or more P          gradients; or all of a shard, of a model or a table
//	Replicated    0
//	Settled       0
//	Farewell      0
//	PullShards    0
//	ShardCopy     1         P          parameters of a shard at the instant of the answer
//	Access        0 to 2    0 or more  values for keys of a table; the keys, as words
//	Accessed      0 to 2    0 or more  values of keys of a table; the keys, as words
//	TableShard    1 or more 0 or more  values of a table's shard, what the update remembers; keys
//	Chunk         1         0 to P     a piece of a reduction's vector; 1 value for a vote
//	Aggregate     0 or 1    0 to P     integers of 32 bits as words, of a gradient or a sum
//	Report        0
//	Outcome       0 to S+2  0 or P     the round's mean; to join, also model and optimiser
//	Model         0 to 2    P          a peer's parameters, none if they have not moved; a tracker
//	PullModel     0
//	Busy          0
//	Join          0
//	Unready       0
//	Welcome       1         P          parameters to begin with
//	Meet          0
//	Clock         0
//	Arrived       0
//	ClientWork    1 or 2    P          the server's parameters, and its control
//	ClientUpdate  1 or 2    P          what they exceed a client's by; its control's change
//	Mirror        0 to 2    0 or more  updates of parameters, and which ones, as words
//	RoundDone     0
//	Start         0
//	View          0
//	Progress      0
//	TakeSnapshot  0
//	Snapshot      1 or more P          the parameters at the instant of the answer, others voting
package protos

//go:generate go run ./generate

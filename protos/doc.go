// Package protos is the vocabulary of the wire: the generated heads of messages, and the
// Message and Tensor that carry them from mailbox to mailbox.
//
// A head is a small protobuf message. Vectors of parameters or gradients are Tensors: they
// travel beside the head, are counted by reference and are never copied into protobuf.
package protos

//go:generate go run ./generate

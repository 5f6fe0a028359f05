// Package peer holds what architectures without a server share: a peer's own copy of the model
// (Replica), how long it stands still and because of whom (Idle), when an exchange is worth its
// messages (Drift), how far a peer may run ahead of the others (Lead), and the matrices by which
// peers average (Mixing).
package peer

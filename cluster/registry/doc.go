// Package registry is a state machine that the processes of a cluster replicate: names and their
// owners, submissions and their owners, specs of durable actors. Its log is that of
// go.etcd.io/raft, after D. Ongaro, "Consensus: bridging theory and practice", dissertation,
// Stanford University (2014).
//
// A Member is one process's replica. It has no clock, does no I/O and starts no goroutine: time
// advances with Tick, messages go in with Step, and all effects come out of Ready. Only Storage
// writes. Two members with equal seeds and equal inputs have equal histories: the election timer is
// the member's own, see timer.go.
//
// Every process has a member. Up to five of them vote: an odd number, those that joined first,
// replaced by others when they fall silent or leave, see voters.go. The rest are learners, which
// have the state but no vote. The first process of a cluster founds the registry; others join it.
//
// A member is identified by a random number that is written with its log, not by the name of its
// process. A process that has lost its log, or finds it damaged, joins as a new member without a
// vote: its promises and entries are gone, so it must not be taken for the member that made them. A
// member whose storage fails stops for good; the next incarnation of the process reads what is
// stored.
//
// Commands belong to sessions (dissertation, section 6.3): a member opens one, numbers its commands
// and repeats each until it applies the command's entry itself. The state keeps the results that a
// session may still need, so that each command has its effect once. Reads are linearizable: a read
// waits until the member has applied all that was committed when the read began (section 6.4).
//
// What a process has claimed is released when another incarnation of it opens a session, or by a
// command that declares it gone.
package registry

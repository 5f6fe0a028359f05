// Package registry is a state machine that the processes of a cluster replicate. It records the
// owners of names, the owners of submissions, and the specs of durable actors. Its replicated log
// is go.etcd.io/raft, after D. Ongaro, "Consensus: bridging theory and practice", dissertation,
// Stanford University (2014).
//
// A Member is one process's replica. It has no clock, does no I/O and starts no goroutine: Tick
// advances its time, Step receives messages, and Ready returns all effects. Only Storage writes.
// Two members with equal seeds and equal inputs have equal histories, because the member has an
// election timer of its own, see timer.go.
//
// Every process has a member. An odd number of members vote, at most five. The members that joined
// first vote; others replace voters that fall silent or leave, see voters.go. All other members are
// learners, which have the state but no vote. The first process of a cluster founds the registry;
// the others join it.
//
// The id of a member is a random number that its log records; the name of its process does not
// identify it. A process whose log is lost or damaged joins as a new member without a vote. Its
// promises and entries are lost, so it must not act as the member that made them. A member whose
// storage fails stops for good; the next incarnation of the process loads the stored log. Until
// then the process may run a new, volatile member, which keeps its log in memory. Fewer than half
// of the voters are volatile, so the registry survives the end of all processes.
//
// Commands belong to sessions (dissertation, section 6.3). A member opens a session, numbers its
// commands, and repeats each command until it has applied the command's entry itself. The state
// keeps the results that a session may still need, so each command has its effect once. Reads are
// linearizable: a read waits until the member has applied all entries that were committed when the
// read started (section 6.4).
//
// If a quorum is lost for good, an operator makes one member start a new registry from its log;
// see Member.Recover. Every frame names the sender's registry and the registries that it
// supersedes. Members of a superseded registry leave it, drop their logs, and join the new one. If
// two members of one registry recover, one of the two new registries supersedes the other; see
// lineage.go.
//
// The claims of a process are released when a later incarnation of the process opens a session, or
// by a command that declares the process dead.
package registry

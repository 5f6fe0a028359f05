// Package actors is the contract between an actor and the world that runs it: virtual time, real
// time in one process, or a cluster.
//
// An actor is an ordinary protoactor actor. It meets time, randomness,
// computation and the record only through its Env, so that the same actor runs
// in every world, and in virtual time deterministically.
//
// # Writing an architecture
//
// An architecture is a set of roles and the actor of each. The steps below build
// examples/custom-actor, a hierarchical parameter server, in the order in which they are written;
// its README explains each.
//
// Messages first. Only a protos.Message crosses from node to node: a small protobuf head, with
// vectors beside it as reference-counted tensors. Many heads exist (Push, Parameters, Model, …).
// For a new one, write a .proto file in your module; protos/generate turns it into Go. Nothing
// needs registration: every program that links the type can read it. Pools (protos.NewMessages,
// Env.Tensors) keep a cycle of messages free of allocations. An actor that knows where the values
// of a large tensor belong can receive them there, see Env.Post.
//
// Then a role is an actor.Actor with a Receive, made by a Kind:
//
//	func newWorker(env actors.Env, task *train.Task) (actor.Actor, error) {
//		local, err := task.NewLocal(env) // the walk through this node's samples
//		return &worker{env: env, local: local}, err
//	}
//
//	func (w *worker) Receive(ctx actor.Context) {
//		switch m := ctx.Message().(type) {
//		case *train.Gradient: // the step is done; its values belong to the receiver
//			push, head := w.pushes.Get(m.Values)
//			head.Node, head.Step = int32(w.env.Node()), m.Step
//			w.local.Done(m)
//			ctx.Send(w.server, push)
//		case *protos.Message:
//			if _, ok := m.Head.(*protos.Parameters); ok {
//				w.local.Begin(m.Tensors[0].Retain()) // starts the next step
//			}
//			m.Release()
//		}
//	}
//
// Every member gets a protos.Start when the run begins or when it joins. It gets a protos.View when
// others come or go; Env.View is replaced by then. A role that holds a model answers
// protos.TakeSnapshot with train.AnswerSnapshot. If an actor gets something that it does not know,
// or cannot go on, it ends the run with Env.Fail, which records the node and the reason.
//
// Then train.Architecture joins them: Roles says which parts a plan's nodes can have, which of
// them train, and which hold a model that is judged; Kind makes the actor of a node. With
// train.Fitter an architecture also checks, before anything runs, that it suits the nodes.
//
// Then a catalog gives it a name, and a main function makes a program that has every command of
// gradwire. The fields with tags are its settings in a plan; the declared value holds the defaults:
//
//	c := catalog.Default()
//	c.Architectures.Declare("hierarchical-server", hierarchy{Every: 1}, "what it does")
//	cli.Main(c)
//
// # Somebody leaves: what to do
//
// A node leaves or crashes. The same holds in virtual time, in real time and on a cluster:
//
//  1. Nobody hears of it at once. Go on; what is sent to a node that has gone is dropped.
//  2. The coordinator hears of it and sends each present member a protos.View, whose Absent names
//     the node. Members receive it at different instants.
//  3. While you handle that message, Env.View is the new view: ranks, Role and neighbours have
//     changed; positions and PIDs have not.
//  4. Give up waiting for those that are absent. Gather.Follow does that for a round of values; if
//     the round is complete with that, end it.
//  5. A message from a node that has gone, sent before, may still arrive: take it in or ignore it,
//     but never answer it, and do not end the run because of it.
//  6. A node that returns is another actor: it remembers nothing and gets a protos.Start with Joins
//     set. The others get a View that has it. Send it what it needs to begin. Before that Start it
//     may know the first view alone, and get what its former life was sent.
//  7. Put the number of the view with which a life began into heads, as Push.Life does. It tells
//     messages of a former life from those of the present one.
//  8. A View may come before or after messages of those who know it already. Keep what belongs to a
//     later view until that has come.
//  9. If your architecture cannot do without the node, end the run with Fail and the reason.
//  10. Answer Waiter, so that a run that comes to a standstill says who waited for whom.
//
// # Keeping to the world
//
// What makes the same actor run in every world, and with the same bits in virtual time:
//
//   - Time is Env.Now and Env.After; randomness is Env.Rand; a pause is a message that comes later.
//   - Hand work that takes longer than a glance at a message to Env.Compute. Where a handler
//     touches a vector of the model's size, report it to Env.Charge.
//   - No goroutine, lock, file, socket or machine's clock, and no range over a map.
//   - Sums go in the order of ranks, never of arrival.
//   - To write a tensor, obtain it from TensorPool.Writable. To keep one that came in a message,
//     retain it. After handling a message, release it.
//
// # Changing an actor from outside
//
// A Kind returns an actor, so another actor can stand in front of it and see, count, change or
// withhold its messages: examples/message-filter clips the gradients of the workers of any
// architecture.
//
// # What a new architecture costs
//
// An architecture of this module is its own room under actors/, one line in cluster/catalog, and
// one row of the table in cmd/gradwire/house_imports_test.go, which names the constant
// architecture. That test fails if the catalog does not add it, or if anything but the catalog and
// the examples names it.
//
// # Glossary
//
//   - Plan: a YAML file that describes data, model, architecture, nodes, network and when to stop.
//   - Point: one combination of the values that a plan sweeps.
//   - Run: one repeat, with one seed, of one point.
//   - Submission: a plan that was submitted to a cluster, with its runs.
//   - Process: one operating-system process that is a member of the cluster.
//   - Node: one of a plan's logical machines; a process hosts any number of them.
//   - Role: what a node does in an architecture, such as worker, server or peer.
//   - Actor: the program of a role; it has a mailbox, handles one message at a time, and knows only
//     its Env.
//   - World: what runs actors and gives them time, messages and faults: virtual time (cluster/sim)
//     or real time (cluster/live).
//   - Architecture: how workers combine what they learn; it says which roles there are and makes
//     their actors.
//   - Edge: the directed link from one node to another, with its delay, rate, loss and outages.
//   - Door: the one place where a message leaves its node. It gives the message its wire form and
//     its edge.
//   - Step: one gradient that a worker computes. Update: one change of a model that is judged,
//     which counts its version. Epoch: as many samples as the training data has.
//   - View: who is a member at a time, with a number that grows with every change.
package actors

// Package driver is the face of Gradwire to programs: they run plans, on this machine or on a
// cluster, and spawn actors that live outside of runs. Three packages do the work: experiment, node
// and client. driver only names their types and calls them.
//
// A plan on this machine (package experiment):
//
//	p, err := driver.Load("plan.yaml")
//	report, err := driver.Run(ctx, p, driver.Options{Catalog: catalog.Default()})
//
// A process of a cluster (package node):
//
//	err := driver.Serve(ctx, driver.NodeConfig{Name: "a", Bind: "127.0.0.1:7946", Insecure: true})
//
// A plan on a cluster (package client). Client.Watch, Logs, Stop and Fetch follow a submission;
// Client.Spawn and Find lead to actors:
//
//	c, err := driver.Connect(ctx, []string{"127.0.0.1:7946"}, nil)
//	id, err := c.Submit(ctx, p, driver.SubmitOptions{})
package driver

import (
	"context"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/client"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/node"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/saved"
	"github.com/gradwire/gradwire/datasets"
)

// Errors that say what a caller can do.
type (
	// InputError is about what the user gave: a plan, data, a folder. It is told before anything
	// runs.
	InputError = refusal.InputError
	// AgainError says that the same request may succeed later.
	AgainError = refusal.AgainError
)

// Plans and what comes of them.
type (
	// Plan is a plan that has been read, before a catalog gives its names a meaning.
	Plan = experiment.Plan
	// Options say how a plan is run.
	Options = experiment.Options
	// Progress says how far a plan is.
	Progress = experiment.Progress
	// Examined is everything known about a plan before it runs.
	Examined = experiment.Examined
	// Forecast approximates the total cost of a plan's runs.
	Forecast = experiment.Forecast
	// Report is what running a plan leaves.
	Report = experiment.Report
	// Evaluated says how well the saved model of a run does, class by class.
	Evaluated = experiment.Evaluated
	// Judged is how well a model does on some samples.
	Judged = saved.Judged
	// JudgedFile says how well a saved model does on the samples of a file.
	JudgedFile = saved.JudgedFile
	// Predicted is what a saved model takes the samples of a file for.
	Predicted = saved.Predicted
	// OtherFile is a file of samples for a saved model.
	OtherFile = datasets.Other
	// Replayed is what came of running a recorded run again.
	Replayed = experiment.Replayed
	// Network is what a plan emulates between its nodes at one of its points.
	Network = experiment.Network
	// Clock is the name of the time in which a plan runs.
	Clock = experiment.Clock
)

// The clocks of Options.
const (
	// Virtual time: deterministic, as fast as the machine computes.
	Virtual = experiment.VirtualTime
	// Real time: the same actors and delays, in one process.
	Real = experiment.RealTime
)

// A cluster, and who uses it.
type (
	// NodeConfig is a process of a cluster.
	NodeConfig = node.Config
	// Client is a program's way into a cluster.
	Client = client.Client
	// Node is a process of a cluster, as a client sees it.
	Node = client.Node
	// SubmitOptions say how a plan is submitted.
	SubmitOptions = client.SubmitOptions
	// Submission is a plan that was submitted, and how far it is.
	Submission = client.Submission
	// Recovery describes a registry that a process has started after the loss of a quorum.
	Recovery = client.Recovery
	// UnreachableClaim is a claim of a process that the recovering process could not reach.
	UnreachableClaim = client.UnreachableClaim
)

// The states of a Submission.
const (
	// Waiting for others that were submitted to the same process before.
	Waiting = request.Waiting
	// Running means that its runs are carried out.
	Running = request.Running
	// Done means that all of them have finished.
	Done = request.Done
	// Failed means that one of them has failed.
	Failed = request.Failed
	// Stopped means that somebody has ended it.
	Stopped = request.Stopped
	// Degraded means that all of them went to their end, but one lost state or had nodes that stood
	// still.
	Degraded = request.Degraded
	// Interrupted means that the process that carried it out has ended before it.
	Interrupted = request.Interrupted
	// Lost means that its process is away, and that no other process goes on with it.
	Lost = request.Lost
)

// DefaultNodeTimeout is the default of NodeConfig.NodeTimeout.
const DefaultNodeTimeout = node.DefaultNodeTimeout

// Actors outside of runs.
type (
	// ActorSpec is an actor that a driver wants.
	ActorSpec = client.ActorSpec
	// Restart says how often an actor is restarted when it fails.
	Restart = client.Restart
	// Actor is one as its node sees it.
	Actor = client.Actor
	// Ref refers to an actor.
	Ref = client.Ref
	// RefStats is what has become of a Ref's messages.
	RefStats = client.RefStats
)

const (
	// MaxUnderWay is how many messages of one Ref may be under way at a time.
	MaxUnderWay = client.MaxUnderWay
	// AskPatience is how long Ref.Ask waits for an answer if its context has no deadline.
	AskPatience = client.AskPatience
)

// ErrNoActor is wrapped by errors of Client.Find about a name that no actor bears.
var ErrNoActor = client.ErrNoActor

// Load reads a plan from a file and carries out assignments of the form key=value, as of --set. An
// InputError says what is wrong with them.
func Load(path string, set ...string) (*Plan, error) { return experiment.Load(path, set...) }

// Parse reads a plan from its text. Errors call it file, and the files that it names lie in the
// folder of file.
func Parse(file string, src []byte, set ...string) (*Plan, error) {
	return experiment.Parse(file, src, set...)
}

// Run runs every point and repeat of a plan on this machine. What has finished is kept and reported
// also when ctx is cancelled or a run fails; the error then says so. An InputError comes before
// anything has run.
func Run(ctx context.Context, p *Plan, o Options) (*Report, error) { return experiment.Run(ctx, p, o) }

// Evaluate judges the saved model of the run of a folder DIR/runs/NNNN of a record; see
// [experiment.Evaluate].
func Evaluate(dir, node string, o Options) (*Evaluated, error) {
	return experiment.Evaluate(dir, node, o)
}

// EvaluateOn judges a saved model by a file of labelled samples; see [Predict].
func EvaluateOn(c *catalog.Catalog, path, node string, o OtherFile) (*JudgedFile, error) {
	m, err := saved.Open(c, path, node)
	if err != nil {
		return nil, err
	}
	return m.Judge(o)
}

// Predict has a saved model say what it takes the samples of a file for. The path is the folder
// DIR/runs/NNNN of a run, or a model's file, in which node says whose it is if several nodes have
// theirs there. The file has the format of the data set that the model was trained on. An
// InputError says what is wrong with the model or the file.
func Predict(c *catalog.Catalog, path, node string, o OtherFile) (*Predicted, error) {
	m, err := saved.Open(c, path, node)
	if err != nil {
		return nil, err
	}
	return m.Predict(o)
}

// Edited returns a note if the plan of a record was edited after its runs. The note is empty if the
// plan made all runs, or if this program cannot tell. A nil catalog stands for catalog.Default().
func Edited(c *catalog.Catalog, dir string) (note string, err error) {
	return experiment.Edited(c, dir)
}

// Replay runs the run of a folder DIR/runs/NNNN of a record again, and compares the digests.
// Nothing is written.
func Replay(ctx context.Context, dir string, o Options) (*Replayed, error) {
	return experiment.Replay(ctx, dir, o)
}

// Serve is the life of a process of a cluster. It returns when ctx is cancelled: nil if the process
// has taken its leave. An error wraps identity.ErrExpired if it had to because its certificate has
// expired.
func Serve(ctx context.Context, c NodeConfig) error { return node.Serve(ctx, c) }

// CheckNodeTimeout returns an error if NodeConfig.NodeTimeout does not accept d.
func CheckNodeTimeout(d time.Duration) error { return node.CheckNodeTimeout(d) }

// Connect finds a process of a cluster that answers, among the addresses HOST:PORT of seeds. The
// identity belongs to an operator or client; it is nil for a cluster without identities.
func Connect(ctx context.Context, seeds []string, id *identity.Identity) (*Client, error) {
	return client.Connect(ctx, seeds, id)
}

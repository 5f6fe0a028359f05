package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/journal"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/placement"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/submission"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/protos"
)

// conductor carries out one run on the cluster: it has the other processes place their nodes,
// starts and ends the run, and hears what they record.
type conductor struct {
	*hosted
	log     func(format string, args ...any)
	died    func(process string) // called when a process dies soon after it has placed its nodes
	message *protos.PlaceRun
	stage   *experiment.Stage // nil while the run is only rehearsed
	events  *journal.Gatherer

	mu      sync.Mutex
	begun   bool
	names   []string          // of the other processes, in order
	parties map[string]*party // these
	changed chan struct{}     // closed at the next change of a party

	bound   time.Duration // the instant at which the run is to end; 0 if it has none
	history *journal.History
	states  *checkpoint.Gatherer // of all processes; nil if the run is not saved
	saving  sync.WaitGroup       // of a state
	saves   atomic.Int64         // of which so many are under way
	folder  sync.Mutex           // held meanwhile
	final   finalSave            // the save before a process leaves
	moves   atomic.Bool          // the run continues on other processes from its last save
	// stored is the number of the latest cut that is in the folder or being written, and storedAt
	// the cut's time on the run's clock.
	stored   atomic.Uint64
	storedAt atomic.Int64
	stalled  time.Duration   // since when nothing has moved in a bounded run; 0 if something does
	pauses   atomic.Int64    // of this process, that were noticed
	slept    []time.Duration // when those began that were noticed after the halt
}

// resultPatience is how long a run that has ended waits for what the other processes say last.
const resultPatience = 10 * time.Second

// venue is where the runs of a submission take place.
type venue struct {
	process    *process
	submission *submission.Submission
	rules      placement.Rules
	placeless  time.Time // since when there is no place for each node; zero if there is

	mu   sync.Mutex
	dead map[string]int // how often each process has died soon after it had placed its nodes
}

var _ experiment.Venue = (*venue)(nil)

// Traits of real time on several processes: runs would take the cores from each other.
func (v *venue) Traits() experiment.Traits {
	return experiment.Traits{Clock: "cluster", Alone: true, Insecure: v.process.config.Insecure,
		NodeTimeout: v.process.config.NodeTimeout}
}

// venue returns the venue of a submission.
func (p *process) venue(s *submission.Submission, rules []string) (experiment.Venue, error) {
	parsed, err := placement.Parse(rules)
	return &venue{process: p, submission: s, rules: parsed, dead: map[string]int{}}, err
}

const (
	// deathSpan is how soon after it has placed its nodes a process dies that has probably died of
	// them, and mostDeaths how often one may until the submission is failed.
	deathSpan  = 10 * time.Second
	mostDeaths = 2
)

// died notes that another process of a run died soon after it had placed its nodes.
func (v *venue) died(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead[name]++; v.dead[name] == mostDeaths {
		v.submission.Fail(fmt.Errorf("process %s died %d times, each within %v of placing its nodes; it is not tried "+
			"again. Do they need more memory than it has? Its log ends with the reason", name, mostDeaths, deathSpan))
	}
}

// conductor returns the conductor of a run on the stage, with what other processes need to know of
// it.
func (v *venue) conductor(ctx context.Context, s *experiment.Stage) (*conductor, error) {
	// Who does not answer is taken to have reserved nothing: whether it can take part is seen when
	// it is asked to.
	reserved := v.process.residents.Reserved(ctx)
	where, err := v.assign(s, reserved)
	if err != nil {
		return nil, err
	}
	text, err := s.Point.Text(s.Task.Seed)
	if err != nil {
		return nil, err
	}
	m := &protos.PlaceRun{
		Submission: v.submission.ID, File: v.submission.File, Plan: text, Processes: where,
		Catalog: v.process.fingerprint,
	}
	if s.Point.Spec.Data.Sent {
		m.Samples = sampleSet(s.Task)
	}
	c := v.process.newConductor(v.submission.NextRun(), v.submission.Log, m)
	c.died = v.died
	return c, nil
}

// assign returns the process of each node. It assigns nodes only to processes with this one's
// catalog. If that fails, it tries all processes: one with another catalog then refuses its nodes
// and says why.
func (v *venue) assign(s *experiment.Stage, reserved map[string]int) ([]string, error) {
	all := v.process.placeable()
	alike := slices.DeleteFunc(slices.Clone(all), func(m membership.Member) bool {
		return m.Meta.Catalog != v.process.fingerprint
	})
	where, err := v.rules.Assign(s.Point.Spec.Plan, alike, reserved)
	if err != nil && len(alike) < len(all) {
		return v.rules.Assign(s.Point.Spec.Plan, all, reserved)
	}
	return where, err
}

// checkSharing refuses to share downlinks. Messages of several processes meet there, each of which
// knows its own alone.
func checkSharing(s *catalog.Spec) error {
	limited := slices.IndexFunc(s.Access, func(a catalog.Access) bool { return a.Downlink != nil })
	if limited < 0 || !s.Plan.Network.Fair {
		return nil
	}
	return syntax.Errorf(s.Plan.Network.Source.At("share"), "fair, while node %s has a downlink, which processes of a "+
		"cluster cannot share; accepted are fifo, or limits of uplinks and links alone", s.Plan.Nodes[limited].Name)
}

// Rehearse asks every process that would host nodes of a point whether it can.
func (v *venue) Rehearse(ctx context.Context, s *experiment.Stage) error {
	if err := cmp.Or(checkSharing(s.Point.Spec), s.Savable()); err != nil {
		return refusal.Input(err)
	}
	c, err := v.conductor(ctx, s)
	if err != nil {
		return err
	}
	c.message.Rehearse = true
	if !v.process.register(c.hosted) {
		return experiment.ErrStopping
	}
	defer v.process.unregister(c.hosted)
	defer c.end(errRunOver)
	if err := v.process.fits(c.hosted, s, true); err != nil {
		return err
	}
	return c.placeAll(ctx)
}

// Play lets one run happen.
func (v *venue) Play(ctx context.Context, s *experiment.Stage) (experiment.Outcome, error) {
	c, err := v.awaitPlaces(ctx, s)
	if err != nil { // there was a place for each node when the plan was rehearsed
		return experiment.Outcome{Again: nextTry}, err
	}
	v.submission.Placed(s.Names, c.message.Processes)
	s.OnSaved(func() { v.process.holders.Saved(v.submission.ID) })
	c.stage, c.bound = s, time.Duration(s.Point.Spec.Plan.Stop.Time)
	c.needs(s.Point.Spec.Roles, s.Names)
	c.history = journal.NewHistory(s.Deployment, s.Point.Spec.Roles, c.log)
	c.events = journal.NewGatherer(s.Deployment.Observer, c.now, c.names)
	s.Deployment.Observer, s.Notes = c.events, notes{c.events, c.history}
	if err := v.process.supersede(c.hosted); err != nil {
		return experiment.Outcome{Again: nextTry}, err
	}
	if !v.process.register(c.hosted) {
		return experiment.Outcome{}, experiment.ErrStopping
	}
	defer v.process.unregister(c.hosted)
	defer c.end(errRunOver)
	if why := v.submission.Succeeds(); why != "" {
		c.history.Add(time.Duration(c.message.Start), actors.Coordinator, "leads the run on process "+
			v.process.config.Name+" from here on: "+why, record.NoHarm)
	}
	if err := v.process.fits(c.hosted, s, false); err != nil {
		return experiment.Outcome{Again: nextTry}, err
	}
	defer context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })()
	return c.conduct(ctx)
}

// notes are what a conductor records of its run.
type notes struct {
	*journal.Gatherer
	*journal.History
}

// newConductor returns the conductor of a run of that number.
func (p *process) newConductor(run uint64, log func(string, ...any), m *protos.PlaceRun) *conductor {
	c := &conductor{
		hosted: p.newHosted(run, p.config.Name, m.Processes),
		log:    log, message: m, parties: map[string]*party{}, changed: make(chan struct{}),
	}
	c.conductor, c.names = c, c.Others()
	for _, name := range c.names {
		c.parties[name] = &party{}
	}
	return c
}

// now is what the run's clock shows in this process.
func (c *conductor) now() time.Duration {
	if w := c.World(); w != nil {
		return w.Now()
	}
	return 0
}

// conduct places, starts and ends a run.
func (c *conductor) conduct(ctx context.Context) (experiment.Outcome, error) {
	end := sync.OnceFunc(func() {
		c.mu.Lock()
		c.begun = false
		c.mu.Unlock()
		c.tellAll(&protos.EndRun{})
	})
	defer end()
	w, err := c.placeWorld(c.stage, 0, c.ownCheckpoints())
	again := time.Duration(0)
	if err == nil {
		c.begins(c.message)
		err = c.placeAll(ctx)
		again = c.again()
		if again == 0 && slices.ContainsFunc(c.names, c.process.holders.Leaves) {
			again = movePause
		}
	}
	if err != nil {
		if w != nil {
			w.Abandon()
		}
		return experiment.Outcome{Again: again, Unbegun: true}, err
	}
	c.stage.Placed()
	c.mu.Lock()
	c.begun = true
	c.mu.Unlock()
	c.log("began on %s", strings.Join(append([]string{c.process.config.Name}, c.remaining()...), ", "))
	for name := range c.parties {
		c.events.Started(name, time.Duration(c.message.Start))
	}
	c.tellAll(&protos.BeginRun{})
	for name := range c.parties { // who has gone in between
		c.left(name)
		if peer, _ := c.process.node.Peer(name); peer.State == transport.Suspended {
			c.silent(name, transport.ErrAbsent.Error())
		}
	}
	result, err := c.watched(w)
	end()
	c.saving.Wait()
	out, failure := c.outcome(result, err)
	out.Again = c.again()
	return out, c.because(failure)
}

// nextTry is how long it takes until the others know that a process is gone, or it is back.
const nextTry = 10 * time.Second

// movePause is the pause before a run starts again without a process that leaves.
const movePause = 100 * time.Millisecond

// again is when the run can be tried again, if it has been without a process; see Outcome.
func (c *conductor) again() time.Duration {
	if c.moves.Load() {
		return movePause
	}
	if c.some((*party).missed) {
		return nextTry
	}
	return 0
}

// watched lets the run happen, and watches over it meanwhile.
func (c *conductor) watched(w *live.World) (live.Result, error) {
	over := make(chan struct{})
	timer := newTimer(c)
	var watching sync.WaitGroup
	watching.Go(func() { c.watchOver(over) })
	watching.Go(func() { every(pulseEvery, over, func() { timer.hurry(timer.look()) }) })
	result, err := w.Run(c.stop)
	close(over)
	watching.Wait()
	timer.look() // a pause that reached beyond the end of the run
	return result, err
}

// outcome waits for what the other processes say last, and sums everything up. It returns the error
// with which the run has ended, or one if its figures are none.
func (c *conductor) outcome(r live.Result, failure error) (experiment.Outcome, error) {
	if failure == nil || errors.Is(failure, errUnended) {
		c.awaitResults()
	}
	out := experiment.Outcome{End: r.Now, Watched: true, DeadLetters: r.DeadLetters,
		Stalled: cmp.Or(r.Stalled, c.stalled), Unfinished: r.Unfinished}
	late, p99 := r.Late, max(r.Messages.P99, r.Steps.P99)
	c.mu.Lock()
	for _, q := range c.parties {
		if q.result != nil {
			out.DeadLetters += q.result.DeadLetters
			out.Unfinished = out.Unfinished || q.result.Unfinished
			late, p99 = late || q.result.Late, max(p99, time.Duration(q.result.Lateness))
		}
	}
	c.mu.Unlock()
	for name := range c.parties {
		c.events.Gone(name)
	}
	out.Lateness = &record.Lateness{Late: late, P99: record.Float(p99.Seconds())}
	if failure == nil {
		out.Halted = cmp.Or(r.Halted, r.Now)
		c.excuse(out.Halted)
		w := c.waits()
		out.Waits = w.causes
		still := c.stoodStill(out.Halted, out.Stalled, w)
		out.Stalled = cmp.Or(still, out.Stalled) // a watchdog takes some time to be sure
	}
	var bereft error
	out.Incidents, out.Degraded, bereft = c.history.Close(r.Now)
	if more := c.stage.Interrupted(); more != nil {
		out.Incidents, out.Degraded = slices.Concat(more, out.Incidents), true
	}
	return out, cmp.Or(failure, bereft)
}

// silentLooks is how many looks those are waited for of whom nothing is heard.
const silentLooks = 4

// awaitResults waits for what the other processes say last, and less long for those that are not
// heard of. It counts looks: time in which this process was paused is nobody's fault. Who says
// nothing is missing in the counters, which is all that it has left to tell.
func (c *conductor) awaitResults() {
	looks := 0
	ctx, cancel := context.WithCancel(c.process.stop)
	defer cancel()
	_ = c.await(ctx, func(name string, q *party) (bool, error) {
		return q.result != nil || q.err != nil || looks >= silentLooks && !c.Up(name), nil
	}, func() {
		if looks++; time.Duration(looks)*askEvery > resultPatience {
			cancel()
		}
	})
}

// because adds to the error of a run that has not come to its end by itself who waited for what.
func (c *conductor) because(err error) error {
	if !errors.Is(err, journal.ErrNoModel) && !errors.Is(err, errUnended) {
		return err
	}
	w := c.waits()
	for _, node := range slices.Sorted(maps.Keys(w.causes)) {
		if node < len(c.stage.Deployment.Nodes) {
			err = fmt.Errorf("%w; %s waits for %s", err, c.stage.Names[node], w.causes[node])
		}
	}
	return fmt.Errorf("%w%s", err, w.losses)
}

// placeAll has the other processes make their worlds, or say why they cannot.
func (c *conductor) placeAll(ctx context.Context) error {
	for _, name := range c.remaining() {
		if err := c.place(name, c.message); err != nil {
			return fmt.Errorf("process %s: %w", name, err)
		}
	}
	return c.await(ctx, c.placed)
}

// place has a process make its world.
func (c *conductor) place(name string, m *protos.PlaceRun) error {
	peer, _ := c.process.node.Peer(name)
	connection := peer.Connections
	if !peer.Connected {
		connection++ // the message waits for the next one
	}
	c.note(name, func(q *party) { q.connection, q.asked = connection, time.Now() })
	return c.process.tell(name, c.Number(), m)
}

// placed reports whether a process has made its world. What was under way when a connection broke
// is lost: the order to place nodes, the samples, or the answer.
func (c *conductor) placed(name string, q *party) (bool, error) {
	peer, _ := c.process.node.Peer(name)
	if q.err == nil && !q.placed && peer.Connections > q.connection {
		return false, errors.New("its connection broke before its nodes were placed")
	}
	return q.placed, q.err
}

// await waits until something holds for all parties, and returns all their errors if there are any.
// Holds is asked with c.mu held, after every change and from time to time, when the looks are
// called as well.
func (c *conductor) await(ctx context.Context, holds func(name string, q *party) (bool, error), looks ...func()) error {
	look := time.NewTicker(askEvery)
	defer look.Stop()
	for {
		c.mu.Lock()
		all := true
		var errs []error
		for _, name := range c.names {
			done, err := holds(name, c.parties[name])
			if err != nil {
				errs = append(errs, fmt.Errorf("process %s: %w", name, err))
			}
			all = all && (done || err != nil)
		}
		changed := c.changed
		c.mu.Unlock()
		if all {
			return errors.Join(errs...)
		}
		select {
		case <-changed:
		case <-look.C:
			for _, do := range looks {
				do()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// some reports whether something holds for one of the parties.
func (c *conductor) some(holds func(q *party) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.parties {
		if holds(q) {
			return true
		}
	}
	return false
}

// note changes what is known of a party.
func (c *conductor) note(name string, change func(q *party)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.parties[name]; q != nil {
		change(q)
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

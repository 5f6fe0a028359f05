package experiment

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/traffic"
	"github.com/gradwire/gradwire/datasets"
)

// play lets a run happen from the newest of its checkpoints that can be used, or else from its
// beginning. A run that fails because the venue has lost a process resumes from its newest
// checkpoint, or begins again if it had not begun. The caller closes the stage.
func (r *Runner) play(ctx context.Context, next run) (*Stage, Outcome, error, error) {
	folder := r.checkpoints(next)
	if folder != nil && !r.FromCheckpoint && r.Venue.Traits().Clock == VirtualTime {
		if err := r.startOver(next, folder); err != nil {
			return nil, Outcome{}, nil, err
		}
	}
	names, err := folder.Names()
	unused := ""
	for tries := 0; err == nil; {
		s, out, failure, err := r.attempt(ctx, next, folder, names)
		if err != nil {
			return nil, Outcome{}, nil, err
		}
		if unused != "" && r.Venue.Traits().Clock != VirtualTime {
			out.lost(unused)
		}
		note, pause := fmt.Sprintf("run %d: %v", next.number, failure), out.Again
		if errors.Is(failure, checkpoint.ErrUnusable) {
			if names, pause = names[1:], 0; len(names) == 0 {
				note, unused = note+"; it begins anew", failure.Error()
			}
		} else {
			var newest string
			mayGoOn := failure != nil && pause > 0 && ctx.Err() == nil
			if mayGoOn {
				newest = folder.Newest()
			}
			if tries++; newest != "" && !slices.Contains(names, newest) {
				tries = 0
			}
			switch {
			case newest == "" && (!mayGoOn || !out.Unbegun) || tries == maxAttempts:
				return s, out, failure, nil
			case newest == "":
				note += fmt.Sprintf("; it begins again in %v", pause)
			default:
				note += fmt.Sprintf("; it goes on from its newest checkpoint in %v", pause)
			}
		}
		if err := s.close(); err != nil {
			return nil, Outcome{}, nil, err
		}
		r.note(note)
		if pause == 0 {
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, Outcome{}, nil, context.Cause(ctx)
		}
		if names, err = folder.Names(); err != nil {
			return nil, Outcome{}, nil, err
		}
	}
	return nil, Outcome{}, nil, err
}

// lost notes that a run in real time began anew, because nothing that was saved of it can be used.
func (o *Outcome) lost(why string) {
	o.Degraded = true
	o.Incidents = slices.Concat([]record.Incident{{Node: actors.Coordinator, Harm: record.ToTimes,
		What: "what was saved of the run was lost, and it began anew: " + why}}, o.Incidents)
}

// maxAttempts bounds the attempts to begin a run, or to resume it from one checkpoint.
const maxAttempts = 3

// attempt lets a run happen from the first of some checkpoints, or from its beginning if there are
// none.
func (r *Runner) attempt(ctx context.Context, next run, folder *checkpoint.Folder,
	names []string) (s *Stage, out Outcome, failure, err error) {
	if s, err = r.setup(next); err != nil {
		return nil, Outcome{}, nil, err
	}
	if folder != nil {
		folder.Written = r.changed
		s.saves = &checkpoint.Run{Folder: folder, Told: func(at time.Duration) {
			r.note(fmt.Sprintf("run %d goes on from its checkpoint at %v", next.number, at.Round(time.Millisecond)))
		}}
	}
	if len(names) > 0 {
		out, failure = r.goOn(ctx, next, s, names[0])
		if errors.Is(failure, errClock) || errors.Is(failure, checkpoint.ErrNew) {
			return nil, Outcome{}, nil, refusal.Input(failure)
		}
		return s, out, failure, nil
	}
	if err := r.observe(s, next, 0); err != nil {
		return nil, Outcome{}, nil, err
	}
	out, failure = r.Venue.Play(ctx, s)
	return s, out, failure, nil
}

// startOver removes the checkpoints of an interrupted run in virtual time before the run is repeated. It
// returns an error and removes nothing if the newest readable checkpoint is of a run in real time, or if a
// later version wrote one.
func (r *Runner) startOver(next run, folder *checkpoint.Folder) error {
	names, err := folder.Names()
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		from, err := folder.Read(name)
		switch {
		case errors.Is(err, checkpoint.ErrNew):
			return refusal.Input(err)
		case err != nil:
			continue
		}
		if err := r.checkClock(name, &from); err != nil {
			return refusal.Input(err)
		}
		break
	}
	if err := folder.Remove(); err != nil {
		return err
	}
	const note = "run %d is repeated from its start, with the same result as without an interruption"
	r.note(fmt.Sprintf(note, next.number))
	return nil
}

// errClock says that a checkpoint is of a run in another kind of time.
var errClock = errors.New("this checkpoint is of a run on another clock")

// checkClock returns an error if a checkpoint is of a run on another clock than this one.
func (r *Runner) checkClock(name string, from *checkpoint.State) error {
	clock := map[bool]Clock{true: VirtualTime, false: RealTime}[from.Virtual]
	if (r.Venue.Traits().Clock == VirtualTime) == from.Virtual {
		return nil
	}
	return fmt.Errorf("%s: %w: go on with --clock %s", name, errClock, clock)
}

// goOn lets a run happen from a checkpoint on. The error wraps [checkpoint.ErrUnusable] if that
// cannot be used.
func (r *Runner) goOn(ctx context.Context, next run, s *Stage, name string) (Outcome, error) {
	from, err := s.saves.Folder.Read(name)
	if err != nil {
		return Outcome{}, fmt.Errorf("its checkpoint %w: %w", checkpoint.ErrUnusable, err)
	}
	if err := r.checkClock(name, &from); err != nil {
		return Outcome{}, err
	}
	s.saves.From = &from
	if err := r.observe(s, next, from.Events); err != nil {
		return Outcome{}, fmt.Errorf("its checkpoint at %v %w: %w", from.At, checkpoint.ErrUnusable, err)
	}
	out, failure := r.Venue.Play(ctx, s)
	if !from.Virtual || !next.point.Spec.Exact() {
		out.Resumed = from.At
	}
	return out, failure
}

// note reports something.
func (r *Runner) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reportProgress(nil, text)
}

// checkpoints is the folder of a run's checkpoints; nil where the plan has none.
func (r *Runner) checkpoints(next run) *checkpoint.Folder {
	c := next.point.Spec.Plan.Checkpoint
	if c == nil {
		return nil
	}
	f := checkpoint.NewFolder(r.folder.RunDir(next.number), c.Keep)
	f.Key = r.key().For(fmt.Sprintf("%s, seed %d", settings(next.point.Labels).Key(), next.seed))
	return f
}

// key signs the checkpoints: it is the venue's, or the user's.
func (r *Runner) key() checkpoint.Key {
	r.keyOnce.Do(func() {
		if r.Key != nil {
			return
		}
		var err error
		if r.Key, err = checkpoint.UserKey(); err != nil {
			r.Key = checkpoint.RandomKey()
			r.note(
				fmt.Sprintf(
					"the key that signs checkpoints cannot be kept (%v): no other process can go on from those "+
						"of this one",
					err,
				),
			)
		}
	})
	return r.Key
}

// close waits for what is being written, and ends the file of events.
func (s *Stage) close() (err error) {
	if s.saves != nil {
		err = s.saves.Folder.Wait()
	}
	if s.events != nil {
		err = errors.Join(err, s.events.Close())
	}
	return err
}

// simulate makes the virtual world of the stage, which goes on where it was saved if it was.
func (s *Stage) simulate() (*sim.World, error) {
	c := s.simulation()
	if s.saves == nil {
		return sim.New(c)
	}
	s.saved(&c, time.Duration(s.Point.Spec.Plan.Checkpoint.Every), nil)
	var err error
	if s.saves.Origin, err = s.origin(); err != nil {
		return nil, err
	}
	s.saves.Origin.Data = s.fingerprint()
	s.saves.Events, s.saves.Held = s.events, func(_ uint64, do func()) error { return s.Collector.Held(do) }
	return s.saves.World(c)
}

// Live makes a world in real time of what is on the stage, which goes on where it was saved if it
// was.
func (s *Stage) Live(c live.Config) (*live.World, error) {
	if s.saves == nil {
		return s.live(c)
	}
	s.saves.Events, s.saves.Held = s.events, s.held
	c.Checkpoints = cmp.Or(c.Checkpoints, &live.Checkpoints{})
	c.Checkpoints.Every = time.Duration(s.Point.Spec.Plan.Checkpoint.Every)
	c.Checkpoints.With = append([]state.Declared{&s.kept}, s.recorders...)
	w, err := s.saves.Live(c, s.live)
	if err == nil && s.from != nil {
		s.goOn(s.from)
	}
	return w, err
}

func (s *Stage) live(c live.Config) (*live.World, error) {
	if c.Checkpoints != nil {
		var err error
		if c.Checkpoints.Origin, err = s.origin(); err != nil {
			return nil, err
		}
		c.Checkpoints.Origin.Data = s.fingerprint()
		s.from = c.Checkpoints.From
	}
	c.Deployment, c.Network, c.Changes = s.Deployment, s.Network, s.Changes
	w, err := live.New(c)
	if err == nil {
		s.Locked = w.Locked
	}
	return w, err
}

// origin identifies the run of a checkpoint by its seed and its plan, without the plan's name, seed and
// checkpoint section.
func (s *Stage) origin() (live.Origin, error) {
	p := *s.Point
	spec, of := *p.Spec, *p.Spec.Plan
	of.Name, of.Checkpoint = "", nil
	p.Spec, spec.Plan = &spec, &of
	text, err := p.Text(0)
	return live.Origin{Plan: text, Seed: s.Task.Seed}, err
}

// fingerprint hashes the samples and their assignment to workers. It is empty in a process that has only
// its own workers' samples.
func (s *Stage) fingerprint() string {
	t := s.Task
	if s.Point.Spec.Data.Sent && t.Test == nil {
		return ""
	}
	h := xxhash.New()
	for _, set := range []*datasets.Set{t.Train, t.Test, t.Validation} {
		if set == nil {
			continue
		}
		fmt.Fprintln(h, set.Inputs, set.Classes, len(set.Y))
		writeNumbers(h, set.Y, func(label int32) uint32 { return uint32(label) })
		writeNumbers(h, set.X, math.Float32bits)
	}
	for _, shard := range t.Shards {
		fmt.Fprintln(h, len(shard))
		writeNumbers(h, shard, func(row int32) uint32 { return uint32(row) })
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// writeNumbers hashes numbers as four little-endian bytes each.
func writeNumbers[T any](h *xxhash.Digest, all []T, bits func(T) uint32) {
	var b [1 << 12]byte
	for chunk := range slices.Chunk(all, len(b)/4) {
		for i, x := range chunk {
			binary.LittleEndian.PutUint32(b[4*i:], bits(x))
		}
		_, _ = h.Write(b[:4*len(chunk)])
	}
}

// Saves reports whether the run is saved from time to time.
func (s *Stage) Saves() bool { return s.saves != nil }

// Save begins to write the state of a run of which worlds in several processes have their parts.
func (s *Stage) Save(state *live.State) error { return s.saves.Save(state) }

// AwaitSaved waits until the state of the latest Save is on the disk.
func (s *Stage) AwaitSaved() error { return s.saves.Folder.Wait() }

// OnSaved adds a function to call whenever a state has been saved.
func (s *Stage) OnSaved(do func()) {
	if s.saves == nil {
		return
	}
	before := s.saves.Folder.Written
	s.saves.Folder.Written = func() {
		if before != nil {
			before()
		}
		do()
	}
}

// From is the state in which a run in real time goes on, until Placed; nil if it begins.
func (s *Stage) From() *live.State { return s.from }

// Placed says that all nodes are in the state in which the run goes on.
func (s *Stage) Placed() { s.from = nil }

// Interrupted says that a run in real time went on, and what was noticed until then; nil if not.
func (s *Stage) Interrupted() []record.Incident { return s.past }

// goOn takes over what a run in real time that goes on knows of its beginning.
func (s *Stage) goOn(from *live.State) {
	at := Positions(s.Names)
	links := slices.DeleteFunc(s.kept.links, func(l record.Link) bool {
		_, saved := from.Nodes[int(at[l.From])]
		return saved
	})
	for _, n := range from.Nodes {
		links = append(links, traffic.Of(s.Names, n.Sent)...)
	}
	s.before = traffic.Sum(s.Names, s.kept.before, links)
	s.past = slices.Concat(s.kept.incidents, []record.Incident{{At: from.At.Seconds(), Node: actors.Coordinator,
		Harm: record.ToTimes, What: "the run was interrupted, and went on from its state here: what was on its way " +
			"arrived at once"}})
	for _, e := range from.Tail {
		s.Deployment.Observer.Observe(e.At, e.Node, e.Event)
	}
}

// kept is what a run in real time that goes on knows of its beginning besides its actors' state.
type kept struct {
	before, links []record.Link // as the stage has them when a cut begins
	incidents     []record.Incident
}

// State declares the link counts and the incidents of the run so far.
func (k *kept) State(s *state.State) {
	link := func(s *state.State, l *record.Link) { state.Exported(s, l) }
	state.List(s, "before", &k.before, link)
	state.List(s, "links", &k.links, link)
	state.List(s, "incidents", &k.incidents, func(s *state.State, i *record.Incident) { state.Exported(s, i) })
}

// held calls a function while nothing of the run is recorded: its world tells of nothing meanwhile.
func (s *Stage) held(cut uint64, do func()) (err error) {
	hold := func() {
		s.kept.links, s.kept.before = s.carried()
		err = s.Collector.Held(do)
	}
	if s.kept.incidents = s.past; s.Notes == nil {
		hold()
		return err
	}
	s.kept.incidents = slices.Concat(s.past, s.Notes.Incidents())
	s.Notes.Held(cut, hold)
	return err
}

// simulation is the stage as a virtual world takes it.
func (s *Stage) simulation() sim.Config {
	c := sim.Config{Deployment: s.Deployment, Network: s.Network, Changes: s.Changes, Audit: s.audit,
		Late: s.Point.Late}
	if s.Threads > 1 {
		c.Threads = s.Threads
	}
	return c
}

// saved has a virtual world save its state from time to time.
func (s *Stage) saved(c *sim.Config, every time.Duration, save func(at time.Duration, saved *state.Saved) error) {
	c.Checkpoints = &sim.Checkpoints{Every: every, Save: save, With: s.recorders}
}

// Savable returns an error if the plan has checkpoints, but an actor of the run declares no state.
func (s *Stage) Savable() error {
	p := s.Point.Spec.Plan.Checkpoint
	if p == nil {
		return nil
	}
	if err := s.declares(); err != nil {
		return syntax.Errorf(p.Source, "this run cannot be saved: %w", err)
	}
	return nil
}

// declares returns an error if an actor of the run declares no state.
func (s *Stage) declares() error {
	c, d := s.simulation(), *s.Deployment
	c.Deployment, d.Nodes = &d, slices.Clone(d.Nodes)
	for i := range d.Nodes {
		n := &d.Nodes[i]
		kind := n.Kind
		n.Kind = func(env actors.Env) (actor.Actor, error) {
			a, err := kind(env)
			if err == nil {
				_, err = state.Of(a)
			}
			return a, err
		}
	}
	_, err := sim.New(c)
	return err
}

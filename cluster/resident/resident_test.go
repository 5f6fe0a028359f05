package resident_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/resident"
	"github.com/gradwire/gradwire/protos"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The verbs of calls.
const (
	send = protos.ActorCall_SEND
	ask  = protos.ActorCall_ASK
	stop = protos.ActorCall_STOP
)

// scribe notes the words that it is sent and answers each with all that it has noted. Its words
// "panic", "fail", "late" and "gate" do what they say.
type scribe struct {
	env   actors.Base
	gate  chan struct{}
	enter chan struct{}
	notes string
	kept  bool // whether it saves its notes
}

func text(m *protos.Message) string { return m.Head.(*wrapperspb.StringValue).Value }

func word(s string) *protos.Message { return protos.NewMessage(wrapperspb.String(s)) }

func (s *scribe) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case string:
		s.notes += m
	case *protos.Message:
		w := text(m)
		m.Release()
		switch w {
		case "panic":
			panic("out of ink")
		case "panic at length":
			panic(strings.Repeat("é", 200) + "\xe9")
		case "fail":
			s.env.Fail(errors.New("out of paper"))
		case "after":
			s.env.After(time.Millisecond, "A")
		case "compute":
			s.env.Compute(actors.Job{Do: func() any { return "C" }})
		case "broken job":
			s.env.Compute(actors.Job{Do: func() any { panic("no light") }})
		case "child":
			child := ctx.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if _, ok := c.Message().(string); ok {
					panic("the child fell")
				}
			}))
			ctx.Send(child, "x")
		case "silent":
			return
		case "gate":
			s.enter <- struct{}{}
			<-s.gate
		case "?":
		default:
			s.notes += w
		}
		if ctx.Sender() != nil {
			ctx.Respond(word(s.notes))
		}
	}
}

func (s *scribe) Save() *protos.Message {
	if !s.kept {
		return nil
	}
	return word(s.notes)
}

func (s *scribe) Restore(m *protos.Message) error {
	s.notes = text(m)
	if strings.Contains(s.notes, "!") {
		return errors.New("these notes cannot be read")
	}
	return nil
}

// desk is a host with one scribe.
type desk struct {
	t        *testing.T
	host     *resident.Host
	info     *protos.Actor
	gate     chan struct{}
	enter    chan struct{}
	made     atomic.Int32
	sequence uint64
}

func newDesk(t *testing.T, change ...func(*protos.SpawnActor, *actors.ResidentKind)) *desk {
	t.Helper()
	d := &desk{t: t, gate: make(chan struct{}), enter: make(chan struct{}, 10)}
	d.host = resident.New(resident.Config{Node: "a", Cores: 4, Tensors: &protos.TensorPool{}, Log: t.Logf})
	t.Cleanup(func() {
		select {
		case <-d.gate:
		default:
			close(d.gate)
		}
		if err := d.host.Close(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
	s := &protos.SpawnActor{Name: "scribe", Kind: "scribe"}
	kind := actors.ResidentKind(func(env actors.Base) (actor.Actor, error) {
		d.made.Add(1)
		return &scribe{env: env, gate: d.gate, enter: d.enter, kept: true}, nil
	})
	for _, c := range change {
		c(s, &kind)
	}
	place, err := d.host.Reserve(s, kind)
	if err != nil {
		t.Fatal(err)
	}
	if d.info, err = place.Begin(); err != nil {
		t.Fatal(err)
	}
	return d
}

// end is how a call has ended.
type end struct {
	answer string
	err    error
}

// call delivers a call and returns where its end will be told.
func (d *desk) call(verb protos.ActorCall_Verb, w string, change ...func(*protos.ActorCall)) <-chan end {
	ended := make(chan end, 2)
	d.sequence++
	c := &resident.Call{Want: &protos.ActorCall{Name: "scribe", Id: d.info.Id, Verb: verb, Client: 1,
		Sequence: d.sequence, Patience: int64(time.Minute)}}
	c.Done = func(answer *protos.Message, err error) {
		e := end{err: err}
		if answer != nil {
			e.answer = text(answer)
			answer.Release()
		}
		ended <- e
	}
	if verb != stop {
		c.Message = word(w)
	}
	for _, f := range change {
		f(c.Want)
	}
	d.host.Deliver(c)
	return ended
}

func (d *desk) expect(what string, got <-chan end, answer, err string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	select {
	case e := <-got:
		if e.answer != answer || (e.err == nil) != (err == "") || e.err != nil && !strings.Contains(e.err.Error(),
			err) {
			d.t.Errorf("%s: answer %q, error %v; want %q, %q", what, e.answer, e.err, answer, err)
		}
	case <-ctx.Done():
		d.t.Fatalf("%s: no end", what)
	}
}

func (d *desk) look() *protos.Actor {
	d.t.Helper()
	list := d.host.List("")
	if len(list) != 1 {
		d.t.Fatalf("%d actors", len(list))
	}
	return list[0]
}

func times(n int32, within time.Duration) func(*protos.SpawnActor, *actors.ResidentKind) {
	return func(s *protos.SpawnActor, _ *actors.ResidentKind) { s.Restarts, s.Within = n, int64(within) }
}

func TestCallsAreHandledInOrderAndQuestionsAnswered(t *testing.T) {
	d := newDesk(t)
	want := ""
	for i := range 500 {
		w := fmt.Sprintf("%d ", i)
		want += w
		d.call(send, w)
	}
	d.expect("question", d.call(ask, "?"), want, "")
	if i := d.look(); i.Handled != 501 || i.Lost != 0 || i.Mailbox != 0 || i.Restarts != 0 {
		t.Errorf("%+v", i)
	}
}

func TestCallBehindALaterOneIsLost(t *testing.T) {
	d := newDesk(t)
	d.expect("first", d.call(send, "b", func(c *protos.ActorCall) { c.Sequence = 7 }), "", "")
	d.expect("earlier", d.call(send, "a", func(c *protos.ActorCall) { c.Sequence = 6 }), "",
		"message 6 to actor scribe on node a comes behind message 7")
	d.expect("again", d.call(send, "b", func(c *protos.ActorCall) { c.Sequence = 7 }), "", "comes behind")
	d.expect("of another client", d.call(ask, "c", func(c *protos.ActorCall) { c.Client, c.Sequence = 2, 1 }),
		"bc", "")
	if i := d.look(); i.Handled != 2 || i.Lost != 2 {
		t.Errorf("%+v", i)
	}
}

func TestRestartedActorKeepsItsStateAndItsMailboxButNotTheMessageItFailedAt(t *testing.T) {
	d := newDesk(t, times(2, 0))
	gate := d.call(send, "gate")
	<-d.enter
	silent := d.call(ask, "silent")
	sent := d.call(send, "a")
	first, second := d.call(ask, "panic"), d.call(send, "fail")
	after := d.call(ask, "b")
	if n := d.look().Mailbox; n != 5 {
		t.Errorf("%d messages wait; want 5", n)
	}
	close(d.gate)
	d.expect("gate", gate, "", "")
	d.expect("a", sent, "", "")
	d.expect("open question", silent, "",
		"failed before it was done with this message, and restarted: panic: out of ink")
	d.expect("panic", first, "",
		"actor scribe on node a failed before it was done with this message, and restarted: panic: out of ink")
	d.expect("fail", second, "", "and restarted: out of paper")
	d.expect("b", after, "ab", "")
	if i := d.look(); i.Restarts != 2 || i.Handled != 4 || i.Lost != 2 || i.Failure != "out of paper" ||
		d.made.Load() != 3 {
		t.Errorf("%+v, made %d times", i, d.made.Load())
	}
	d.expect("third failure", d.call(send, "panic"), "", "and ended: panic: out of ink")
	for len(d.host.List("")) > 0 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	d.expect("after the end", d.call(send, "x"), "",
		"is no longer on node a: it failed once more than the 2 times that it may: panic: out of ink")
}

func TestRestartsAreCountedWithinASpanOfTime(t *testing.T) {
	d := newDesk(t, times(1, time.Second))
	d.expect("first", d.call(send, "panic"), "", "restarted")
	// The span is one of real time: this is the least wait after which a second failure is allowed.
	<-time.After(1100 * time.Millisecond)
	d.expect("second, later", d.call(send, "panic"), "", "restarted")
	d.expect("third, at once", d.call(send, "panic"), "", "ended")
}

func TestStateThatCannotBeRestoredIsAFailure(t *testing.T) {
	d := newDesk(t, times(3, 0))
	d.expect("note", d.call(send, "!"), "", "")
	d.expect("panic", d.call(send, "panic"), "", "restarted")
	d.expect("next", d.call(send, "x"), "", "its state cannot be restored: these notes cannot be read")
	if n := d.made.Load(); n != 4 {
		t.Errorf("made %d times; want 4", n)
	}
}

func TestFailuresOfChildrenJobsAndTimersAreTheActors(t *testing.T) {
	d := newDesk(t, times(10, 0), func(s *protos.SpawnActor, _ *actors.ResidentKind) { s.Cores = 2 })
	if free := d.host.Free(); free != 2 {
		t.Errorf("%d cores are free; want 2", free)
	}
	for _, w := range []string{"child", "broken job"} {
		before := d.look().Restarts
		d.call(send, w)
		for d.look().Restarts == before && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	d.call(send, "after")
	d.call(send, "compute")
	answer := func() string { return (<-d.call(ask, "?")).answer }
	for got := answer(); got != "AC" && got != "CA"; got = answer() {
		if len(got) > 2 {
			t.Fatalf("notes %q", got)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestComputingWithoutCoresIsAFailure(t *testing.T) {
	d := newDesk(t)
	d.expect("compute", d.call(send, "compute"), "",
		"kind scribe computes, but actor scribe was spawned without cores")
}

func TestStopHandlesWhatWasSentBeforeAndFreesNameAndCores(t *testing.T) {
	d := newDesk(t, func(s *protos.SpawnActor, _ *actors.ResidentKind) { s.Cores = 4 })
	if _, err := d.host.Reserve(&protos.SpawnActor{Name: "other", Cores: 1}, nil); !errors.Is(err, resident.ErrCores) ||
		!strings.Contains(err.Error(), "node a has 0 free of 4") {
		t.Errorf("more cores than are free: %v", err)
	}
	if _, err := d.host.Reserve(&protos.SpawnActor{Name: "scribe"}, nil); err == nil || !strings.Contains(err.Error(),
		"the name scribe is taken by an actor of kind scribe on node a") {
		t.Errorf("a name that is taken: %v", err)
	}
	gate := d.call(send, "gate")
	<-d.enter
	before := d.call(send, "a")
	open := d.call(ask, "silent")
	end := d.call(stop, "")
	behind := d.call(ask, "b")
	close(d.gate)
	d.expect("gate", gate, "", "")
	d.expect("before", before, "", "")
	d.expect("open question", open, "", "was not done with this message when it ended: it was stopped")
	d.expect("stop", end, "", "")
	d.expect("behind", behind, "", "was not done with this message when it ended: it was stopped")
	place, err := d.host.Reserve(&protos.SpawnActor{Name: "scribe", Cores: 4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.expect("its successor's", d.call(send, "x"), "", "is no longer on node a: it was stopped")
	place.Release()
	if free := d.host.Free(); free != 4 {
		t.Errorf("%d cores are free; want 4", free)
	}
}

func TestQuestionThatIsNotAnsweredEnds(t *testing.T) {
	d := newDesk(t)
	soon := func(c *protos.ActorCall) { c.Patience = int64(time.Millisecond) }
	d.expect("question", d.call(ask, "silent", soon), "", "has not answered within 1ms")
	d.expect("next", d.call(ask, "a"), "a", "")
}

func TestMailboxIsBounded(t *testing.T) {
	d := newDesk(t)
	d.call(send, "gate")
	<-d.enter
	var last <-chan end
	for range resident.MaxMailbox {
		last = d.call(send, ".")
	}
	d.expect("one too many", d.call(send, "x"), "",
		"the mailbox of actor scribe on node a is full: 10000 messages wait")
	close(d.gate)
	d.expect("the last of those", last, "", "")
	d.expect("question", d.call(ask, "?"), strings.Repeat(".", resident.MaxMailbox), "")
	if i := d.look(); i.Lost != 1 {
		t.Errorf("%d lost; want 1", i.Lost)
	}
}

func TestClosingTellsWhoWaits(t *testing.T) {
	d := newDesk(t)
	d.call(send, "gate")
	<-d.enter
	waiting, end := d.call(ask, "a"), d.call(stop, "")
	if err := d.host.Close(time.Millisecond); err == nil || !strings.Contains(err.Error(),
		"1 actors or their computations were still at work") {
		t.Errorf("%v", err)
	}
	d.expect("waiting", waiting, "", "was still at work when its process ended")
	d.expect("stop", end, "", "")
	d.expect("late", d.call(send, "x"), "", "is no longer on node a")
	if _, err := d.host.Reserve(&protos.SpawnActor{Name: "b"}, nil); err == nil || !strings.Contains(err.Error(),
		"node a is stopping") {
		t.Errorf("%v", err)
	}
}

func TestSpecificationsAreChecked(t *testing.T) {
	for _, c := range []struct {
		spec *protos.SpawnActor
		want string
	}{
		{&protos.SpawnActor{Name: ""}, "accepted are 1 to 128 printable"},
		{&protos.SpawnActor{Name: "a b"}, "accepted are 1 to 128 printable"},
		{&protos.SpawnActor{Name: "a", Cores: -1}, "-1 cores"},
		{&protos.SpawnActor{Name: "a", Restarts: 1001}, "1001 restarts; accepted are 0 to 1000"},
		{&protos.SpawnActor{Name: "a", Restarts: 1, Within: int64(time.Millisecond)}, "within 1ms"},
	} {
		if _, err := resident.New(resident.Config{Node: "a"}).Reserve(c.spec, nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
}

func TestFailureIsToldAsTextThatMessagesCarry(t *testing.T) {
	for _, indent := range []int{0, 1} { // one of the two has the bound within a letter
		d := newDesk(t, func(s *protos.SpawnActor, kind *actors.ResidentKind) {
			s.Restarts = 1
			inner := *kind
			*kind = func(env actors.Base) (actor.Actor, error) {
				a, err := inner(env)
				return &prefixed{Actor: a, prefix: strings.Repeat(" ", indent)}, err
			}
		})
		d.expect("panic", d.call(send, "panic at length"), "", "éé")
		if list := d.host.List(""); len(list) != 1 || !strings.Contains(list[0].Failure, "éé") ||
			!utf8.ValidString(list[0].Failure) {
			t.Errorf("%+v", list)
		}
	}
}

// prefixed puts something before what its actor fails with.
type prefixed struct {
	actor.Actor
	prefix string
}

func (p *prefixed) Receive(ctx actor.Context) {
	defer func() {
		if reason := recover(); reason != nil {
			panic(fmt.Sprint(p.prefix, reason))
		}
	}()
	p.Actor.Receive(ctx)
}

func TestActorThatCannotBeMadeLeavesNothing(t *testing.T) {
	h := resident.New(resident.Config{Node: "a", Cores: 1})
	for _, make := range []actors.ResidentKind{
		func(actors.Base) (actor.Actor, error) { return nil, errors.New("no such pen") },
		func(actors.Base) (actor.Actor, error) { panic("no such pen") },
	} {
		place, err := h.Reserve(&protos.SpawnActor{Name: "scribe", Cores: 1}, make)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := place.Begin(); err == nil || !strings.Contains(err.Error(), "actor scribe on node a: ") ||
			!strings.Contains(err.Error(), "no such pen") {
			t.Errorf("%v", err)
		}
		if left := h.List(""); len(left) != 0 || h.Free() != 1 {
			t.Errorf("%v are left, %d cores free", left, h.Free())
		}
	}
	if err := h.Close(time.Second); err != nil {
		t.Error(err)
	}
}

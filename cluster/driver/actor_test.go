package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/protos"
)

// ledger notes the numbers that it is sent and answers each with how many it has, and its first
// vector doubled. A negative number is its failure, 0 is a question that it does not answer.
type ledger struct {
	First int64 `plan:"first"`
	notes []int64
}

// ledgers is a catalog with the kind ledger.
func ledgers(c *driver.NodeConfig) {
	c.Catalog = catalog.Default()
	c.Catalog.Actors.Add(catalog.Define("ledger", "notes numbers", func() ledger { return ledger{} },
		func(_ *catalog.Catalog, l *ledger) (actors.ResidentKind, error) {
			if l.First < 0 {
				return nil, fmt.Errorf("first is %d; accepted is 0 or more", l.First)
			}
			return func(actors.Base) (actor.Actor, error) { return &ledger{notes: []int64{l.First}}, nil }, nil
		}))
}

func (l *ledger) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	switch n := m.Head.(*wrapperspb.Int64Value).Value; {
	case n < 0:
		panic(fmt.Sprintf("number %d", n))
	case n == 0:
		return
	default:
		if last := l.notes[len(l.notes)-1]; n <= last {
			panic(fmt.Sprintf("%d behind %d", n, last))
		}
		l.notes = append(l.notes, n)
	}
	if ctx.Sender() == nil {
		return
	}
	answer := number(int64(len(l.notes)))
	for _, t := range m.Tensors {
		double := protos.NewTensor(make([]float32, len(t.Data)))
		for i, v := range t.Data {
			double.Data[i] = 2 * v
		}
		answer.Tensors = append(answer.Tensors, double)
	}
	ctx.Respond(answer)
}

func (l *ledger) Save() *protos.Message {
	m := number(l.notes[len(l.notes)-1])
	m.Tensors = append(m.Tensors, protos.NewTensor(make([]float32, len(l.notes))))
	return m
}

func (l *ledger) Restore(m *protos.Message) error {
	l.notes = make([]int64, len(m.Tensors[0].Data))
	l.notes[len(l.notes)-1] = m.Head.(*wrapperspb.Int64Value).Value
	return nil
}

func number(n int64) *protos.Message { return protos.NewMessage(wrapperspb.Int64(n)) }

// ask asks and returns the number in the answer.
func ask(t *testing.T, r *driver.Ref, n int64) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := r.Ask(ctx, number(n))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	return m.Head.(*wrapperspb.Int64Value).Value
}

// refused expects an InputError with some words.
func refused(t *testing.T, what string, err error, words string) {
	t.Helper()
	var wrong *driver.InputError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v; want an input error with %q", what, err, words)
	}
}

// office is a cluster of two nodes that know ledgers, of two cores each.
func office(t *testing.T) (c *testCluster, client *driver.Client) {
	t.Helper()
	c = newCluster(t)
	for _, name := range []string{"a", "b"} {
		t.Cleanup(c.serve(name, ledgers, func(n *driver.NodeConfig) {
			n.Cores, n.Labels = 2, map[string]string{"desk": name}
		}))
	}
	client = c.client(identity.Operator)
	t.Cleanup(client.Close)
	c.gather(client, 2)
	return c, client
}

func spawn(t *testing.T, c *driver.Client, s driver.ActorSpec) *driver.Ref {
	t.Helper()
	r, err := c.Spawn(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// takesNotes has a ledger made on a node, and sends and asks it something.
func takesNotes(t *testing.T, client *driver.Client, node string) {
	t.Helper()
	name := "book-" + node
	r := spawn(t, client, driver.ActorSpec{Name: name, Kind: "ledger", Settings: "{first: 3}", Node: node})
	if r.Node != node {
		t.Errorf("%s lives on %s", name, r.Node)
	}
	for n := range int64(300) {
		if err := r.Send(t.Context(), number(n+4)); err != nil {
			t.Fatal(err)
		}
	}
	if n := ask(t, r, 1000); n != 302 {
		t.Errorf("%s has %d notes; want 302", name, n)
	}
	if s := r.Stats(); s.Sent != 301 || s.Handled != 301 {
		t.Errorf("%+v", s)
	}
	tensor := protos.NewTensor(make([]float32, 3))
	copy(tensor.Data, []float32{1, 2.5, -3})
	answer, err := r.Ask(t.Context(), protos.NewMessage(wrapperspb.Int64(1001), tensor))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{2, 5, -6}, answer.Tensors[0].Data); diff != "" {
		t.Error(diff)
	}
	answer.Release()
}

func TestDriverSpawnsSendsAsksFindsAndStopsActorsOnAnyNode(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(),
		goleak.IgnoreTopFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
	c := newCluster(t)
	for _, name := range []string{"a", "b"} {
		defer c.serve(name, ledgers)()
	}
	client := c.client(identity.Operator)
	defer client.Close()
	c.gather(client, 2)
	for _, node := range []string{"a", "b"} {
		takesNotes(t, client, node)
	}
	all, err := client.Actors(t.Context())
	if err != nil || len(all) != 2 || all[1].Name != "book-b" || all[1].Node != "b" || all[1].Kind != "ledger" ||
		all[1].Handled != 302 || all[1].Mailbox != 0 || all[1].Lost != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	found, err := client.Find(t.Context(), "book-b")
	if err != nil {
		t.Fatal(err)
	}
	if n := ask(t, found, 1002); n != 304 {
		t.Errorf("found one with %d notes; want 304", n)
	}
	if err := found.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := found.Ask(t.Context(), number(1003)); err == nil || !strings.Contains(err.Error(),
		"actor book-b is no longer on node b: it was stopped") {
		t.Errorf("asked after its end: %v", err)
	}
	if _, err := client.Find(t.Context(), "book-b"); !errors.Is(err, driver.ErrNoActor) ||
		!strings.Contains(err.Error(), "the cluster has no actor book-b; on node b it was stopped") {
		t.Errorf("found after its end: %v", err)
	}
}

func TestRunsAreNotPlacedWhereActorsHaveReservedAllCores(t *testing.T) {
	t.Parallel()
	c, client := office(t)
	submit := func(place ...string) (where string, err error) {
		t.Helper()
		id, err := client.Submit(t.Context(), load(t, long, "stop={steps: 40}"), driver.SubmitOptions{Place: place})
		if err != nil {
			return "", err
		}
		c.end(client, id)
		s, err := client.Status(t.Context(), id)
		return fmt.Sprint(s.Placement["server"], s.Placement["w1"], s.Placement["w2"]), err
	}
	if where, err := submit(); err != nil || !strings.Contains(where, "a") || !strings.Contains(where, "b") {
		t.Errorf("placed on %s: %v", where, err)
	}
	first := spawn(t, client, driver.ActorSpec{Name: "first", Kind: "ledger", Cores: 2, Node: "a"})
	if where, err := submit(); err != nil || where != "bbb" {
		t.Errorf("placed on %s: %v", where, err)
	}
	_, err := submit("w1=a")
	expectInput(t, err,
		"node w1 is to live on process a, of which actors that belong to no run have reserved all cores")
	spawn(t, client, driver.ActorSpec{Name: "second", Kind: "ledger", Cores: 2, Node: "b"})
	_, err = submit()
	expectInput(t, err, "node server can live nowhere: actors that belong to no run have reserved all cores of a, b")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if where, err := submit(); err != nil || where != "aaa" {
		t.Errorf("placed on %s: %v", where, err)
	}
}

func TestCoresAreReservedAndRefusedAndFreed(t *testing.T) {
	t.Parallel()
	_, client := office(t)
	first := spawn(t, client, driver.ActorSpec{Name: "first", Kind: "ledger", Cores: 1, Label: "desk:b"})
	second := spawn(t, client, driver.ActorSpec{Name: "second", Kind: "ledger", Cores: 2})
	if first.Node != "b" || second.Node != "a" {
		t.Errorf("first lives on %s, second on %s; want b by its label, a by its free cores", first.Node, second.Node)
	}
	_, err := client.Spawn(t.Context(), driver.ActorSpec{Name: "third", Kind: "ledger", Cores: 2})
	refused(t, "too many cores", err,
		"no node fits actor third of kind ledger with 2 cores: a has 0 free cores of 2; b has 1 free cores of 2")
	if err := second.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if third := spawn(t, client, driver.ActorSpec{Name: "third", Kind: "ledger", Cores: 2}); third.Node != "a" {
		t.Errorf("third lives on %s", third.Node)
	}
	if _, err := first.Ask(t.Context(), number(-1)); err == nil { // which it fails at
		t.Error("no error")
	}
	for {
		r, err := client.Spawn(t.Context(), driver.ActorSpec{Name: "fourth", Kind: "ledger", Cores: 2})
		if err == nil {
			if r.Node != "b" {
				t.Errorf("fourth lives on %s", r.Node)
			}
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the failed actor is about to end
	}
}

func TestWrongSpecificationsAreRefused(t *testing.T) {
	t.Parallel()
	c, client := office(t)
	good := driver.ActorSpec{Name: "book", Kind: "ledger"}
	spawn(t, client, good)
	for what, s := range map[string]struct {
		spec driver.ActorSpec
		want string
	}{
		"name that is taken": {good, "the name book is taken by an actor of kind ledger on node "},
		"no name":            {driver.ActorSpec{Kind: "ledger"}, "is no name of an actor"},
		"no kind":            {driver.ActorSpec{Name: "x"}, "actor x needs a kind"},
		"kind nobody knows": {driver.ActorSpec{Name: "x", Kind: "diary"},
			"a knows the kinds ledger; b knows the kinds ledger"},
		"node nobody knows":   {driver.ActorSpec{Name: "x", Kind: "ledger", Node: "z"}, "the cluster has no node z"},
		"label nobody has":    {driver.ActorSpec{Name: "x", Kind: "ledger", Label: "desk:z"}, "a has no label desk:z"},
		"label without value": {driver.ActorSpec{Name: "x", Kind: "ledger", Label: "desk"}, "accepted is KEY:VALUE"},
		"unknown setting":     {driver.ActorSpec{Name: "x", Kind: "ledger", Settings: "{last: 1}"}, "last"},
		"setting that is bad": {driver.ActorSpec{Name: "x", Kind: "ledger", Settings: "first: -1"},
			"settings of actor x:1"},
		"settings, no YAML": {driver.ActorSpec{Name: "x", Kind: "ledger", Settings: "{"}, "settings of actor x"},
		"kind in settings": {driver.ActorSpec{Name: "x", Kind: "ledger", Settings: "kind: y"},
			"given beside the settings"},
		"too many restarts": {driver.ActorSpec{Name: "x", Kind: "ledger", Restart: driver.Restart{Times: 2000}},
			"accepted are 0 to 1000"},
	} {
		_, err := client.Spawn(t.Context(), s.spec)
		refused(t, what, err, s.want)
	}
	guest := c.client(identity.Client)
	defer guest.Close()
	_, err := guest.Spawn(t.Context(), driver.ActorSpec{Name: "x", Kind: "ledger"})
	refused(t, "a client's", err, "may not spawn actors")
	r, err := guest.Find(t.Context(), "book")
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "a client's message", r.Send(t.Context(), number(1)), "may not send to actors")
}

func TestOfManyWhoTakeOneNameAtMostOneSucceeds(t *testing.T) {
	t.Parallel()
	_, client := office(t)
	for round := range 10 {
		var mu sync.Mutex
		var took []*driver.Ref
		var work sync.WaitGroup
		for i := range 6 {
			work.Go(func() {
				r, err := client.Spawn(t.Context(), driver.ActorSpec{Name: fmt.Sprintf("book-%d", round),
					Kind: "ledger", Node: string(rune('a' + i%2))})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					took = append(took, r)
				} else {
					refused(t, "the name", err, "the name book-")
				}
			})
		}
		work.Wait()
		if len(took) > 1 {
			t.Fatalf("%d actors of one name", len(took))
		}
	}
}

func TestRestartedActorHasItsStateAndIsCounted(t *testing.T) {
	t.Parallel()
	_, client := office(t)
	r := spawn(t, client, driver.ActorSpec{Name: "book", Kind: "ledger", Node: "b",
		Restart: driver.Restart{Times: 1, Within: time.Hour}})
	ask(t, r, 5)
	_, err := r.Ask(t.Context(), number(-7))
	if err == nil || !strings.Contains(err.Error(),
		"actor book on node b failed before it was done with this message, and restarted: panic: number -7") {
		t.Errorf("%v", err)
	}
	if n := ask(t, r, 6); n != 3 {
		t.Errorf("%d notes; want 3, two of them from before", n)
	}
	all, err := client.Actors(t.Context())
	if err != nil || len(all) != 1 || all[0].Restarts != 1 || all[0].Lost != 1 || all[0].Failure != "panic: number -7" {
		t.Errorf("%+v, %v", all, err)
	}
	if s := r.Stats(); s.Sent != 3 || s.Handled != 2 || s.Lost != 1 {
		t.Errorf("%+v", s)
	}
}

func TestQuestionEndsAtItsDeadlineAndMessagesAreBoundedInSizeAndNumber(t *testing.T) {
	t.Parallel()
	_, client := office(t)
	r := spawn(t, client, driver.ActorSpec{Name: "book", Kind: "ledger", Node: "b"})
	ask(t, r, 1) // now there is a line to the cluster
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := r.Ask(ctx, number(0)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(),
		"actor book on node b has not answered") {
		t.Errorf("%v", err)
	}
	refused(t, "a large message", r.Send(t.Context(), protos.NewMessage(wrapperspb.Int64(1),
		protos.NewTensor(make([]float32, 1<<20)))), "a message of 41943")
	refused(t, "a large head", r.Send(t.Context(), protos.NewMessage(wrapperspb.Bytes(make([]byte, 1<<20)))),
		"a head of 10485")
	refused(t, "no head", r.Send(t.Context(), protos.NewMessage(nil)), "without a head")
	await := func(what string, condition func(s driver.RefStats) bool) {
		for end := time.Now().Add(patience); !condition(r.Stats()); {
			if time.Now().After(end) {
				t.Fatalf("no %s: %+v", what, r.Stats())
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("end of the question", func(s driver.RefStats) bool { return s.Lost == 1 && s.UnderWay == 0 })
	for range driver.MaxUnderWay {
		go func() { _, _ = r.Ask(t.Context(), number(0)) }()
	}
	await("full window", func(s driver.RefStats) bool { return s.UnderWay == driver.MaxUnderWay })
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := r.Send(soon, number(1)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(),
		"1024 messages are under way") {
		t.Errorf("%v", err)
	}
}

func TestMessagesOfOnePairKeepTheirOrderWhateverComesBetween(t *testing.T) {
	t.Parallel()
	_, client := office(t)
	r := spawn(t, client, driver.ActorSpec{Name: "book", Kind: "ledger", Node: "b"})
	other := spawn(t, client, driver.ActorSpec{Name: "other", Kind: "ledger", Node: "a"})
	const n = 3000
	var work sync.WaitGroup
	for _, r := range []*driver.Ref{r, other} {
		work.Go(func() { // a ledger fails at a number behind a larger one
			for i := int64(1); i <= n; i++ {
				if err := r.Send(t.Context(), number(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	for _, r := range []*driver.Ref{r, other} {
		if got := ask(t, r, n+1); got != n+2 {
			t.Errorf("%s has %d notes; want %d", r, got, n+2)
		}
		if s := r.Stats(); s.Lost != 0 || s.Handled != n+1 {
			t.Errorf("%+v", s)
		}
	}
}

func TestMessagesToANodeThatLeavesAreLostAndCounted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.serve("a", ledgers)()
	leave := c.serve("b", ledgers)
	client := c.client(identity.Operator)
	defer client.Close()
	c.gather(client, 2)
	r := spawn(t, client, driver.ActorSpec{Name: "book", Kind: "ledger", Node: "b"})
	asked := make(chan error, 1)
	go func() {
		_, err := r.Ask(t.Context(), number(0)) // which is never answered
		asked <- err
	}()
	for r.Stats().UnderWay == 0 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	leave()
	err := <-asked
	if err == nil || !strings.Contains(err.Error(), "it ended with its process") && !strings.Contains(err.Error(),
		"actor book on node b: node b is gone") {
		t.Errorf("%v", err)
	}
	if s := r.Stats(); s.Sent != 1 || s.Lost != 1 || s.UnderWay != 0 || s.Cause == nil {
		t.Errorf("%+v", s)
	}
	if _, err := client.Find(t.Context(), "book"); !errors.Is(err, driver.ErrNoActor) || !strings.Contains(err.Error(),
		"it was on node b, which is gone") {
		t.Errorf("%v", err)
	}
	// Whether the name is free is known again, because the node has taken its leave.
	if r := spawn(t, client, driver.ActorSpec{Name: "book", Kind: "ledger"}); r.Node != "a" {
		t.Errorf("its successor lives on %s", r.Node)
	}
}

func TestClientThatIsClosedCountsWhatIsUnderWayAsLost(t *testing.T) {
	t.Parallel()
	_, client := office(t)
	r := spawn(t, client, driver.ActorSpec{Name: "book", Kind: "ledger", Node: "b"})
	asked := make(chan error, 1)
	go func() {
		_, err := r.Ask(t.Context(), number(0))
		asked <- err
	}()
	for r.Stats().UnderWay == 0 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	client.Close()
	if err := <-asked; err == nil || !strings.Contains(err.Error(),
		"whether actor book on node b has handled the message is not known: the client was closed") {
		t.Errorf("%v", err)
	}
	if n := ask(t, r, 1); n != 2 { // on a new line, after what the old one carried
		t.Errorf("%d notes; want 2", n)
	}
	if s := r.Stats(); s.Sent != 2 || s.Handled != 1 || s.Lost != 1 {
		t.Errorf("%+v", s)
	}
}

package membership

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/gradwire/gradwire/cluster/protocol"
)

func TestNodesThatJoinedHaveTheSameView(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 4, nil)
	want := describe(nodes[0].View())
	for _, n := range nodes {
		if got := describe(n.View()); got != want {
			t.Errorf("%s sees\n%sa sees\n%s", n.name, got, want)
		}
		if got := n.Refused(); got != (Refusals{}) {
			t.Errorf("%s refused %+v", n.name, got)
		}
	}
	v := nodes[0].View()
	if !slices.Equal(nodes[0].names(), []string{"a", "b", "c", "d"}) {
		t.Errorf("view is %v, want a to d in order", nodes[0].names())
	}
	b := v.Members[1]
	if b.Meta.Address != nodes[1].address || b.Gossip.String() != nodes[1].address ||
		b.Meta.Role != "worker" || b.Meta.Cores != 2 || b.Meta.Labels["zone"] != "b" {
		t.Errorf("b is seen as %+v", b)
	}
}

func TestLeavingIsToldFromCrashing(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 6, nil)
	began := time.Now()
	if err := nodes[5].Leave(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Logf("leaving took %v", time.Since(began))
	for _, n := range nodes[:5] {
		n.await(Left, "f")
	}
	nodes[4].crash()
	for _, n := range nodes[:4] {
		n.await(Failed, "e")
		if got := n.names(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("%s sees %v", n.name, got)
		}
	}
}

func TestRestartedNodeReturnsWithItsNewIncarnation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for several failures")
	}
	nodes := clusterAt(t, 3, nil, time.Duration(*pace))
	old := nodes[2].address
	seeds := []string{nodes[0].address}
	again := func(address string, incarnation uint64) *node {
		c := mustStart(t, "c", spec{pace: time.Duration(*pace), address: address, seeds: seeds,
			incarnation: incarnation})
		for _, n := range nodes[:2] {
			if e := n.await(Returned, "c"); e.Member.Meta.Incarnation != incarnation ||
				e.Member.Gossip.String() != c.address {
				t.Errorf("%s heard of %+v, want incarnation %d at %s", n.name, e.Member, incarnation, c.address)
			}
		}
		return c
	}
	failed := func(incarnation uint64) {
		for _, n := range nodes[:2] {
			if e := n.await(Failed, "c"); e.Member.Meta.Incarnation != incarnation {
				t.Errorf("%s heard that incarnation %d failed, want %d", n.name, e.Member.Meta.Incarnation, incarnation)
			}
		}
	}
	nodes[2].crash()
	failed(1)
	c := again(old, 2)
	c.crash()
	failed(2)
	c = again("", 3) // elsewhere
	c.crash()
	// Sooner than the crash is noticed: the start waits neither for the failure nor hides it.
	c = mustStart(t, "c", spec{pace: time.Duration(*pace), address: c.address, seeds: seeds, incarnation: 4})
	for _, n := range nodes[:2] {
		n.await(Failed, "c")
		if e := n.await(Returned, "c"); e.Member.Meta.Incarnation != 4 {
			t.Errorf("%s heard of incarnation %d, want 4", n.name, e.Member.Meta.Incarnation)
		}
	}
	c.crash()
	// Elsewhere, and sooner than the crash is noticed: the name has to become free first.
	c = mustStart(t, "c", spec{pace: time.Duration(*pace), seeds: seeds, incarnation: 5, patience: patienceOfTests})
	for _, n := range nodes[:2] {
		n.await(Failed, "c")
		if e := n.await(Returned, "c"); e.Member.Meta.Incarnation != 5 || e.Member.Gossip.String() != c.address {
			t.Errorf("%s heard of %+v, want incarnation 5 at %s", n.name, e.Member, c.address)
		}
	}
	c.crash()
	if _, err := start(t, "c", spec{pace: time.Duration(*pace), address: c.address, seeds: seeds,
		incarnation: 3}); err == nil || !strings.Contains(err.Error(), "must grow") {
		t.Errorf("an incarnation that is over was let in: %v", err)
	}
}

func TestNodeThatLeftCanJoinAgain(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil)
	if err := nodes[1].Leave(context.Background()); err != nil {
		t.Fatal(err)
	}
	nodes[0].await(Left, "b")
	mustStart(t, "b", spec{seeds: []string{nodes[0].address}, incarnation: 2})
	nodes[0].await(Joined, "b")
}

func TestHalvesOfAPartitionFindEachOther(t *testing.T) {
	t.Parallel()
	if brief() {
		t.Skip("takes a quarter of a minute; GRADWIRE_LENGTHY=1 runs it")
	}
	newHalves(t, 1).heal(0)
}

// How long two halves may take to become one when the network is whole again, and half of them.
// What the machine itself takes does not go faster with the protocol.
const (
	mostHealing   = 15 * time.Second
	medianHealing = 5 * time.Second
	slowMachine   = 5 * time.Second
)

// Some partitions last longer than memberlist remembers the nodes of the other half.
func TestEveryPartitionHealsInBoundedTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	const clusters = 12
	rounds := 2
	if brief() {
		rounds = 1
	}
	var mu sync.Mutex
	var took []time.Duration
	var healing sync.WaitGroup
	for i := range clusters {
		h := newHalves(t, time.Duration(*pace))
		healing.Go(func() {
			for round := range rounds {
				length := time.Duration(0)
				if (i+round)%4 == 0 {
					length = (gossipDeadTime + 2*probeInterval*4) / h.pace
				} else if (i+round)%2 == 0 {
					length = time.Duration(1+i) * time.Second / h.pace
				}
				d := h.heal(length)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	healing.Wait()
	slices.Sort(took)
	if len(took) < clusters*rounds {
		t.Fatalf("%d of %d partitions healed", len(took), clusters*rounds)
	}
	most, median := took[len(took)-1], took[len(took)/2]
	t.Logf("at pace %d, %d partitions healed within %v to %v, in the median %v", *pace, len(took), took[0], most,
		median)
	if p := time.Duration(*pace); most > mostHealing/p+slowMachine || median > medianHealing/p+slowMachine/5 {
		t.Errorf("healing took %v", took)
	}
}

// halves are a cluster that is parted and healed.
type halves struct {
	t     *testing.T
	wires *wires
	pace  time.Duration
	nodes []*node
}

func newHalves(t *testing.T, pace time.Duration) *halves {
	t.Helper()
	w := &wires{}
	return &halves{t, w, pace, clusterAt(t, 4, w, pace)}
}

// heal checks that two halves become one after a partition of a certain length, and tells how soon.
func (h *halves) heal(length time.Duration) time.Duration {
	nodes := h.nodes
	h.wires.split(1, nodes[2].address, nodes[3].address)
	for i, n := range nodes {
		n.eventually("it sees its own half alone", func() bool {
			return slices.Equal(n.names(),
				[]string{"a", "b", "c", "d"}[i/2*2:i/2*2+2])
		})
	}
	time.Sleep(length) // how long the partition lasts
	h.wires.heal()
	began := time.Now()
	// News of the failures may still be under way and take down a node of the own half for a
	// moment.
	for _, n := range nodes {
		n.eventually("it sees both halves", func() bool { return len(n.names()) == 4 })
	}
	took := time.Since(began)
	for _, n := range nodes {
		for len(n.events) > 0 {
			if e := <-n.events; e.Kind != Failed && e.Kind != Returned || e.Member.Meta.Incarnation != 1 {
				h.t.Errorf("%s heard of %+v", n.name, e)
			}
		}
		n.eventually("it sees what the others see",
			func() bool { return describe(n.View()) == describe(nodes[0].View()) })
	}
	return took
}

// doubtsSoFar is how often memberlist gave somebody up.
func doubtsSoFar(n *node) uint64 {
	n.roll.mu.Lock()
	defer n.roll.mu.Unlock()
	return n.roll.raised
}

func TestNodeThatAnswersIsNotTakenForFailed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	var w wires
	nodes := cluster(t, 2, &w)
	a, b := nodes[0], nodes[1]
	before := a.View().Number
	w.split(1, b.address)
	eventually(t, "memberlist gives b up", func() bool { return doubtsSoFar(a) == 1 })
	w.heal()
	eventually(t, "both have both back", func() bool { return a.list.NumMembers() == 2 && b.list.NumMembers() == 2 })
	if got := a.View().Number; got != before || len(a.events) > 0 {
		t.Errorf("the view went from %d to %d, though b answers calls", before, got)
	}
}

func TestNodeThatLostItsSeedFindsItWhenItIsBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a failure")
	}
	nodes := cluster(t, 2, nil)
	seed := nodes[0].address
	nodes[0].crash()
	nodes[1].await(Failed, "a")
	a := mustStart(t, "a", spec{address: seed, incarnation: 2}) // it knows nobody
	a.await(Joined, "b")
	if e := nodes[1].await(Returned, "a"); e.Member.Meta.Incarnation != 2 {
		t.Errorf("it heard of incarnation %d, want 2", e.Member.Meta.Incarnation)
	}
}

func TestOneNodeIsTheFirstSeed(t *testing.T) {
	t.Parallel()
	own, other := mustStart(t, "a", spec{}).address, mustStart(t, "b", spec{}).address
	for _, c := range []struct {
		seeds []string
		want  bool
	}{{nil, false}, {[]string{own, other}, true}, {[]string{other, own}, false}} {
		m := &Members{config: Config{Seeds: c.seeds}, transport: &transport{advertise: netip.MustParseAddrPort(own)}}
		if got := m.IsFirstSeed(); got != c.want {
			t.Errorf("seeds %v of %s: %v", c.seeds, own, got)
		}
	}
}

func TestNameThatIsTakenIsRefused(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3, nil)
	began := time.Now()
	// The holder of the name is not the seed.
	_, err := start(t, "c", spec{seeds: []string{nodes[0].address}, incarnation: 2})
	if err == nil || !strings.Contains(err.Error(), nodes[2].address) || !strings.Contains(err.Error(), "taken") {
		t.Fatalf("error is %v, want one that names %s", err, nodes[2].address)
	}
	t.Logf("after %v: %v", time.Since(began), err)
	d := mustStart(t, "d", spec{seeds: []string{nodes[2].address}})
	d.awaitAll(Joined, "a", "b", "c")
	for _, n := range nodes { // the holder has not been disturbed
		n.await(Joined, "d")
	}
}

func TestOtherClustersAreToldSo(t *testing.T) {
	t.Parallel()
	a := mustStart(t, "a", spec{})
	for name, change := range map[string]func(*Config){
		"key":    func(c *Config) { c.Key = bytes.Repeat([]byte("x"), keySize) },
		"label":  func(c *Config) { c.Label = "other" },
		"no key": func(c *Config) { c.Key, c.Insecure = nil, true },
	} {
		began := time.Now()
		_, err := start(t, "b", spec{seeds: []string{a.address}, change: change})
		if err == nil || !strings.Contains(err.Error(), "is this the same cluster?") || !strings.Contains(err.Error(),
			a.address) {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(began); d > patienceOfTests {
			t.Errorf("%s: it took %v, beyond the deadline", name, d)
		}
		t.Logf("%s, after %v: %v", name, time.Since(began), err)
	}
	if len(a.View().Members) != 1 {
		t.Errorf("a sees %v", a.names())
	}
}

func TestSeedThatDoesNotAnswerIsNamedAtTheDeadline(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, in the kernel, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	began := time.Now()
	_, err = start(t, "b", spec{seeds: []string{"127.0.0.1:1", silent.Addr().String()},
		patience: 500 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(),
		silent.Addr().String()) {
		t.Errorf("error is %v, want both seeds named", err)
	}
	if d := time.Since(began); d >= streamTimeout {
		t.Errorf("it took %v, the deadline was half a second", d)
	}
	t.Log(err)
}

// dials tells of each dial.
type dials struct {
	*port
	made chan struct{}
}

func (d *dials) Dial(address string, timeout time.Duration) (net.Conn, error) {
	c, err := d.port.Dial(address, timeout)
	signal(d.made)
	return c, err
}

func TestSeedMayComeLaterThanThoseItLetsIn(t *testing.T) {
	t.Parallel()
	p := openPort(t, loopback(), &wires{})
	seed := p.own
	p.close()
	tried := make(chan struct{}, 1)
	joined := make(chan *node, 1)
	go func() {
		b, err := start(t, "b", spec{seeds: []string{seed}, change: func(c *Config) {
			c.Streams = &dials{c.Streams.(*port), tried}
		}})
		if err != nil {
			t.Error(err)
		}
		joined <- b
	}()
	<-tried
	a := mustStart(t, "a", spec{address: seed, seeds: []string{seed, "127.0.0.1:1"}})
	if b := <-joined; b != nil {
		a.await(Joined, "b")
		b.await(Joined, "a")
	}
}

func TestNothingListensWithoutAKey(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"no key":       func(c *Config) { c.Key = nil },
		"empty key":    func(c *Config) { c.Key = []byte{} },
		"short key":    func(c *Config) { c.Key = c.Key[:16] },
		"both":         func(c *Config) { c.Insecure = true },
		"not loopback": func(c *Config) { c.Key, c.Insecure, c.Bind = nil, true, "0.0.0.0:7000" },
		"no port":      func(c *Config) { c.Bind = "127.0.0.1:0" },
		"no address":   func(c *Config) { c.Bind = "0.0.0.0:7000" },
		"name":         func(c *Config) { c.Name = "a/b" },
		"seed":         func(c *Config) { c.Seeds = []string{"127.0.0.1"} },
		"label":        func(c *Config) { c.Label = strings.Repeat("x", maxLabel+1) },
		"incarnation":  func(c *Config) { c.Meta.Incarnation = 0 },
		"meta.address": func(c *Config) { c.Meta.Address = "here" },
		"long metadata": func(c *Config) {
			c.Meta.Labels = map[string]string{"a": strings.Repeat("x", 255), "b": strings.Repeat("x", 255)}
		},
	} {
		var bind string
		_, err := start(t, "a", spec{change: func(c *Config) { change(c); bind = c.Bind }})
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if c, err := net.ListenPacket("udp", bind); err != nil {
			t.Errorf("%s: something listens: %v", name, err)
		} else {
			_ = c.Close()
		}
	}
	a := mustStart(t, "a", spec{change: func(c *Config) { c.Key, c.Insecure = nil, true }})
	b := mustStart(t, "b", spec{seeds: []string{a.address}, change: func(c *Config) { c.Key, c.Insecure = nil, true }})
	a.await(Joined, "b")
	b.await(Joined, "a")
}

// liar is a member with the right key that says of itself what nobody should believe.
type liar struct{ meta []byte }

func (l liar) NodeMeta(int) []byte             { return l.meta }
func (l liar) NotifyMsg([]byte)                {}
func (l liar) GetBroadcasts(int, int) [][]byte { return nil }
func (l liar) LocalState(bool) []byte          { return nil }
func (l liar) MergeRemoteState([]byte, bool)   {}

func TestHostileMetadataAreRefusedAndCounted(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil)
	for i, meta := range [][]byte{nil, []byte("{}"), bytes.Repeat([]byte{0xff}, 512), {protocol.Negotiated, 0, 0, 1}} {
		var w wires
		p := openPort(t, loopback(), &w)
		conn, err := net.ListenPacket("udp", p.own)
		if err != nil {
			t.Fatal(err)
		}
		c := memberlist.DefaultLANConfig()
		c.Name, c.SecretKey, c.Label, c.Delegate, c.LogOutput = "liar", testKey, "test", liar{meta}, new(bytes.Buffer)
		g, err := newGate(testKey, "test")
		if err != nil {
			t.Fatal(err)
		}
		c.Transport = newTransport(conn, g, p, nodes[0].transport.advertise)
		l, err := memberlist.Create(c)
		if err != nil {
			t.Fatal(err)
		}
		before := nodes[0].Refused().Malformed
		if _, err := l.Join([]string{nodes[0].address}); err != nil {
			t.Fatal(err)
		}
		// The seed answers before it merges: the next exchange waits for nothing else.
		deadline := time.Now().Add(patienceOfTests)
		for nodes[0].Refused().Malformed == before && time.Now().Before(deadline) {
			if _, err := l.Join([]string{nodes[0].address}); err != nil {
				t.Fatal(err)
			}
		}
		if nodes[0].Refused().Malformed == before {
			t.Errorf("metadata %d were not counted", i)
		}
		if got := nodes[0].names(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("metadata %d: a sees %v", i, got)
		}
		if err := l.Shutdown(); err != nil {
			t.Error(err)
		}
		p.close()
	}
}

// Builds of other versions encode the rest of their metadata differently, too.
func TestNodeOfAnotherBuildIsNotJoinedAndNamed(t *testing.T) {
	t.Parallel()
	later := append(appendText([]byte{protocol.Negotiated + 2}, "v9"), protocol.Negotiated+1)
	for name, x := range map[string]struct {
		meta []byte
		want string
	}{
		"later":     {append(later, "unheard of"...), "this cluster 6 to 7: upgrade a"},
		"earlier":   {append(appendText([]byte{2}, "v7"), "as before"...), "this cluster 2: first upgrade the others"},
		"the first": {[]byte{1, 0, 1, 2, 0, 3, 'a', ':', '1', 0}, "this cluster 1: first upgrade the others"},
	} {
		var w wires
		p := openPort(t, loopback(), &w)
		bind := netip.MustParseAddrPort(p.own)
		conn, err := listen(bind)
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGate(testKey, "test")
		if err != nil {
			t.Fatal(err)
		}
		c := memberlist.DefaultLANConfig()
		c.Name, c.SecretKey, c.Label, c.Delegate, c.LogOutput = "b", testKey, "test", liar{x.meta}, new(bytes.Buffer)
		tr := newTransport(conn, g, p, bind)
		c.Transport = tr
		l, err := memberlist.Create(c)
		if err != nil {
			t.Fatal(err)
		}
		tr.begin()
		_, err = start(t, "a", spec{seeds: []string{p.own}, patience: patienceOfTests,
			change: func(c *Config) { c.Meta.Build, c.Meta.Protocol = "v8", protocol.Of(protocol.Negotiated) }})
		if err == nil || !strings.Contains(err.Error(), "process a (build v8) speaks protocol 5, "+x.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Shutdown(); err != nil {
			t.Error(err)
		}
		p.close()
	}
}

// speaking returns the spec of a node that speaks versions oldest to newest and joins seeds.
func speaking(oldest, newest byte, seeds ...string) spec {
	return spec{seeds: seeds, patience: patienceOfTests, change: func(c *Config) {
		c.Meta.Protocol = protocol.Range{Oldest: oldest, Newest: newest}
	}}
}

// A version in common with each member is not enough: a process joins only if one version is common
// to all. Otherwise the process and the members report its name and which processes to upgrade.
func TestProcessesJoinIfAllSpeakOneVersion(t *testing.T) {
	t.Parallel()
	a := mustStart(t, "a", speaking(5, 7))
	b := mustStart(t, "b", speaking(6, 8, a.address))
	a.await(Joined, "b")
	b.await(Joined, "a")
	for name, x := range map[string]struct {
		oldest, newest byte
		want           string
	}{
		"old": {5, 5, "process old speaks protocol 5, this cluster 6 to 7: upgrade old"},
		"new": {8, 9, "process new speaks protocol 8 to 9, this cluster 6 to 7: first upgrade the others to a build that " +
			"speaks both"},
	} {
		for _, seed := range []*node{a, b} {
			_, err := start(t, name, speaking(x.oldest, x.newest, seed.address))
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, n := range []*node{a, b} {
			if e := n.await(Refused, name); e.Reason == nil || e.Reason.Error() != x.want {
				t.Errorf("%s refused %s because %v, want %s", n.name, name, e.Reason, x.want)
			}
			if !slices.Contains(n.Incompatible(), x.want) {
				t.Errorf("%s lists the refusals %q, want %s", n.name, n.Incompatible(), x.want)
			}
		}
	}
	upgraded := mustStart(t, "old", speaking(6, 6, b.address))
	a.await(Joined, "old")
	b.await(Joined, "old")
	if got := upgraded.names(); !slices.Equal(got, []string{"a", "b", "old"}) {
		t.Errorf("old sees the members %v", got)
	}
	if got := a.Incompatible(); len(got) != 1 || !strings.HasPrefix(got[0], "process new ") {
		t.Errorf("a lists the refusals %q, want one of process new", got)
	}
}

func TestNotifyMayAskForTheViewAndTakeItsTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var slow *node
	heard := make(chan Event, 100)
	ready := make(chan struct{})
	slow = mustStart(t, "slow", spec{change: func(c *Config) {
		c.Notify = func(e Event) {
			<-ready
			if slow.View().Number < e.View {
				t.Errorf("event of view %d came before the view, which is %d", e.View, slow.View().Number)
			}
			<-release
			heard <- e
		}
	}})
	close(ready)
	b := mustStart(t, "b", spec{seeds: []string{slow.address}})
	c := mustStart(t, "c", spec{seeds: []string{slow.address}})
	b.awaitAll(Joined, "slow", "c")
	c.awaitAll(Joined, "slow", "b")
	if err := c.Leave(context.Background()); err != nil { // while Notify stands still
		t.Fatal(err)
	}
	b.await(Left, "c")
	close(release)
	var last uint64
	for _, want := range []string{"joined b", "joined c", "left c"} {
		e := <-heard
		if got := e.Kind.String() + " " + e.Member.Name; got != want || e.View <= last {
			t.Errorf("heard %q of view %d after view %d, want %q", got, e.View, last, want)
		}
		last = e.View
	}
}

func TestShutdownLeavesNothingOpen(t *testing.T) {
	mustStart(t, "x", spec{}).crash() // what the runtime opens once
	before := measure(t)
	nodes := cluster(t, 3, nil)
	for _, n := range nodes {
		n.crash()
		if err := n.Shutdown(); err != nil {
			t.Errorf("the second shutdown: %v", err)
		}
		if err := n.Leave(context.Background()); err != nil {
			t.Errorf("leaving after the shutdown: %v", err)
		}
	}
	if after := measure(t); after.descriptors > before.descriptors {
		t.Errorf("%d descriptors are open, %d before", after.descriptors, before.descriptors)
	}
}

// Every member sees that a process drains, and counts it as a member until it leaves.
func TestMembersSeeThatAProcessDrains(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3, nil)
	leaves := func(n *node, name string) bool {
		i := slices.IndexFunc(n.View().Members, func(m Member) bool { return m.Name == name })
		return i >= 0 && n.View().Members[i].Leaves
	}
	if leaves(nodes[0], "b") {
		t.Error("b counts as leaving before it drains")
	}
	if err := nodes[1].Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		eventually(t, "b drains", func() bool { return leaves(n, "b") })
		if got := n.names(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("%s sees %v", n.name, got)
		}
	}
	if leaves(nodes[0], "c") {
		t.Errorf("c counts as leaving: a sees %+v", nodes[0].View())
	}
	if err := nodes[1].Leave(context.Background()); err != nil {
		t.Fatal(err)
	}
	nodes[0].await(Left, "b")
	again := mustStart(t, "b", spec{seeds: []string{nodes[0].address}, incarnation: 9})
	nodes[0].await(Joined, "b")
	if leaves(nodes[0], "b") || leaves(again, "b") {
		t.Error("the next incarnation of b counts as leaving")
	}
}

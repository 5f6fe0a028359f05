package session_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/session"
)

const ms = time.Millisecond

// packet is a copy under way.
type packet struct {
	number session.Number
	item   int
	ack    *session.Ack // of the way back
	life   int          // of the receiver that it is for
}

// bench is a session on a network that does what the test says.
type bench struct {
	now     time.Duration
	sender  session.Sender[int]
	there   session.Receiver[int]
	life    int
	forth   []packet
	back    []packet
	pushed  int   // so far
	handled []int // in this life of the receiver
	begun   int   // first message of this life
	fresh   []int // taken over, in this life
	freed   []int
	sent    int // copies
}

func (b *bench) push() {
	b.sender.Push(b.pushed)
	b.pushed++
}

// pump sends what is due. Each copy leaves at once.
func (b *bench) pump() {
	for n, item, ok := b.sender.Next(b.now); ok; n, item, ok = b.sender.Next(b.now) {
		b.forth = append(b.forth, packet{number: n, item: item, life: b.life})
		b.sender.Departed(n, b.now, 10*ms)
		b.sent++
	}
}

// arrive has copy i arrive at the receiver.
func (b *bench) arrive(p packet) {
	if p.life != b.life {
		return
	}
	if b.there.Receive(p.number, p.item, true) {
		b.fresh = append(b.fresh, p.item)
	}
	for item, ok := b.there.Next(); ok; item, ok = b.there.Next() {
		b.handled = append(b.handled, item)
	}
}

func (b *bench) answer() {
	a := b.there.Ack()
	b.back = append(b.back, packet{ack: &a, life: b.life})
}

func (b *bench) hear(p packet) {
	if p.life == b.life {
		b.freed = append(b.freed, b.sender.Acknowledge(b.now, *p.ack)...)
	}
}

// check holds the session to what the dumb model says: a prefix of what was pushed is handled, each
// message once and in order, and nothing is freed that was not.
func (b *bench) check(t interface{ Fatalf(string, ...any) }) {
	for i, item := range b.handled {
		if item != b.begun+i {
			t.Fatalf("handled %v, pushed from %d on", b.handled, b.begun)
		}
	}
	if len(b.handled) > b.pushed-b.begun {
		t.Fatalf("%d handled of %d", len(b.handled), b.pushed-b.begun)
	}
	for _, items := range [][]int{b.fresh, b.freed} {
		sorted := slices.Sorted(slices.Values(items))
		if len(slices.Compact(sorted)) < len(items) {
			t.Fatalf("taken over %v, freed %v: one of them twice", b.fresh, b.freed)
		}
	}
	if b.sender.Outstanding()+len(b.freed) < b.pushed-b.begun {
		t.Fatalf("%d kept and %d freed of %d", b.sender.Outstanding(), len(b.freed), b.pushed-b.begun)
	}
}

// restart gives the receiver's node another life.
func (b *bench) restart(t interface{ Fatalf(string, ...any) }) {
	left := b.sender.End()
	freed := slices.Concat(b.freed, left)
	slices.Sort(freed)
	for i, item := range freed {
		if item != b.begun+i {
			t.Fatalf("freed or left: %v, pushed from %d to %d", freed, b.begun, b.pushed)
		}
	}
	if len(freed) != b.pushed-b.begun {
		t.Fatalf("%d freed or left of %d", len(freed), b.pushed-b.begun)
	}
	b.there = session.Receiver[int]{}
	b.begun, b.handled, b.fresh, b.freed = b.pushed, nil, nil, nil
	b.life++
}

// settle lets everything arrive, and time go on.
func (b *bench) settle(t interface{ Fatalf(string, ...any) }) {
	for round := 0; b.sender.Outstanding() > 0; round++ {
		if round > 200 {
			t.Fatalf("%d messages are still kept", b.sender.Outstanding())
		}
		b.pump()
		for _, p := range b.forth {
			b.arrive(p)
		}
		b.answer()
		for _, p := range b.back {
			b.hear(p)
		}
		b.forth, b.back = nil, nil
		if due := b.sender.Due(); due != session.Never {
			b.now = max(b.now, due)
		}
		b.check(t)
	}
	if len(b.handled) != b.pushed-b.begun {
		t.Fatalf("%d of %d handled", len(b.handled), b.pushed-b.begun)
	}
}

func take(list *[]packet, i int, keep bool) packet {
	p := (*list)[i]
	if !keep {
		*list = slices.Delete(*list, i, i+1)
	}
	return p
}

func TestEachMessageIsHandledOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bench{}
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			switch rapid.SampledFrom([]string{"push", "push", "pump", "arrive", "arrive", "repeat", "lose", "answer",
				"hear", "hear again", "forget", "wait", "cut", "restart"}).Draw(t, "event") {
			case "push":
				b.push()
			case "pump":
				b.pump()
			case "arrive", "repeat":
				if len(b.forth) > 0 {
					i := rapid.IntRange(0, len(b.forth)-1).Draw(t, "copy")
					b.arrive(take(&b.forth, i, rapid.Bool().Draw(t, "again")))
				}
			case "lose":
				if len(b.forth) > 0 {
					take(&b.forth, rapid.IntRange(0, len(b.forth)-1).Draw(t, "copy"), false)
				}
			case "answer":
				b.answer()
			case "hear", "hear again":
				if len(b.back) > 0 {
					i := rapid.IntRange(0, len(b.back)-1).Draw(t, "answer")
					b.hear(take(&b.back, i, rapid.Bool().Draw(t, "again")))
				}
			case "forget":
				if len(b.back) > 0 {
					take(&b.back, 0, false)
				}
			case "wait":
				b.now += time.Duration(rapid.IntRange(1, 40).Draw(t, "ms")) * ms
			case "cut":
				b.forth, b.back = nil, nil
			case "restart":
				b.restart(t)
			}
			b.check(t)
		}
		b.settle(t)
	})
}

// Every order in which two copies of each of three messages can come, every subset of copies and,
// with each, some subset of answers that can be lost.
func TestEverySmallCase(t *testing.T) {
	const messages = 3
	var copies []int
	for n := range messages {
		copies = append(copies, n, n)
	}
	cases := 0
	permute(copies, func(order []int) {
		for lost := range 1 << len(order) {
			b := &bench{}
			for range messages {
				b.push()
			}
			b.pump()
			all := slices.Clone(b.forth)
			b.forth = nil
			for i, n := range order {
				if lost>>i&1 == 0 {
					b.arrive(all[n])
					b.answer()
				}
			}
			for i, p := range b.back {
				if (5*lost+order[0])>>i&1 == 0 {
					b.hear(p)
				}
			}
			b.check(t)
			b.settle(t)
			cases++
		}
	})
	if cases < 90*64 {
		t.Errorf("%d cases", cases)
	}
}

// permute calls do with every distinct order.
func permute(items []int, do func([]int)) {
	seen := map[string]bool{}
	var swap func(k int)
	swap = func(k int) {
		if k == len(items) {
			if key := fmt.Sprint(items); !seen[key] {
				seen[key] = true
				do(slices.Clone(items))
			}
			return
		}
		for i := k; i < len(items); i++ {
			items[k], items[i] = items[i], items[k]
			swap(k + 1)
			items[k], items[i] = items[i], items[k]
		}
	}
	swap(0)
}

func TestNumbersWrap(t *testing.T) {
	for _, c := range []struct {
		a, b session.Number
		want bool
	}{{0, 1, true}, {1, 0, false}, {1<<32 - 1, 0, true}, {0, 1<<32 - 1, false}, {7, 7, false}} {
		if c.a.Before(c.b) != c.want {
			t.Errorf("%d before %d: %v", c.a, c.b, !c.want)
		}
	}
}

func TestOnlyWhatIsMissingIsSentAgain(t *testing.T) {
	b := &bench{}
	for range 10 {
		b.push()
	}
	b.pump()
	for i, p := range b.forth {
		if i != 3 && i != 7 {
			b.arrive(p)
		}
	}
	b.now = 10 * ms
	b.answer()
	b.hear(b.back[0])
	b.forth, b.sent = nil, 0
	b.now = b.sender.Due()
	b.pump()
	if b.sent != 2 || b.forth[0].item != 3 || b.forth[1].item != 7 {
		t.Errorf("sent again: %v, missing are 3 and 7", b.forth)
	}
}

func TestTheWindowBoundsWhatIsUnderWay(t *testing.T) {
	b := &bench{}
	for range 3 * session.Window {
		b.push()
	}
	b.pump()
	if b.sent != session.Window {
		t.Fatalf("%d under way, the window is %d", b.sent, session.Window)
	}
	b.arrive(b.forth[0])
	b.answer()
	b.hear(b.back[0])
	b.pump()
	if b.sent != session.Window+1 {
		t.Errorf("%d under way after one was acknowledged", b.sent)
	}
	b.settle(t)
}

// An outage costs a try now and then of the oldest message, not of all.
func TestInAnOutageTheOldestMessageAsks(t *testing.T) {
	b := &bench{}
	for range 50 {
		b.push()
	}
	b.pump()
	longest := time.Duration(0)
	for b.now < time.Minute {
		before := b.now
		b.now = b.sender.Due()
		longest = max(longest, b.now-before)
		b.pump()
	}
	if most := 3*50 + 10 + int(time.Minute/longest); b.sent > most {
		t.Errorf("%d copies in a minute, want at most %d", b.sent, most)
	}
	if longest < 75*ms || longest > 250*ms {
		t.Errorf("waits %v at most for a link with a round trip of 10ms that is down", longest)
	}
	b.settle(t)
}

func TestTheWaitFollowsTheRoundTrip(t *testing.T) {
	var s session.Sender[int]
	now := time.Duration(0)
	for i := range 50 {
		s.Push(i)
		n, _, _ := s.Next(now)
		s.Departed(n, now, 10*ms)
		now += 300 * ms // what the estimate of an idle network does not know
		s.Acknowledge(now, session.Ack{Next: n + 1})
	}
	s.Push(50)
	n, _, _ := s.Next(now)
	s.Departed(n, now, 10*ms)
	if wait := s.Due() - now; wait < 300*ms || wait > 400*ms {
		t.Errorf("waits %v for a round trip of 300ms", wait)
	}
}

// Ten senders have a message each on its way to one receiver, who takes one in 8 ms: it comes after
// 80 ms, of which an idle network's delay of 0.2 ms says nothing. Repeats do not take the line from
// messages.
func TestSendersThatWaitForEachOtherHardlyRepeat(t *testing.T) {
	const senders, each, late = 10, 300, 100
	var s [senders]session.Sender[int]
	var r [senders]session.Receiver[int]
	type copied struct {
		from int
		n    session.Number
	}
	var line []copied
	pushed, copies := [senders]int{}, 0
	for now := time.Duration(0); ; now += ms {
		done := 0
		for i := range s {
			if s[i].Outstanding() == 0 && pushed[i] < each {
				s[i].Push(pushed[i])
				pushed[i]++
			}
			for n, message, ok := s[i].Next(now); ok; n, message, ok = s[i].Next(now) {
				s[i].Departed(n, now, ms/5)
				if message >= each-late {
					copies++
				}
				line = append(line, copied{i, n})
			}
			if pushed[i] == each && s[i].Outstanding() == 0 {
				done++
			}
		}
		if done == senders {
			break
		}
		if now > 10*each*senders*8*ms {
			t.Fatalf("%v messages after %v, in which a line without repeats has had ten times as many", pushed, now)
		}
		if now%(8*ms) == 0 && len(line) > 0 {
			c := line[0]
			line = line[1:]
			if r[c.from].Receive(c.n, 0, true) {
				r[c.from].Next()
			}
			s[c.from].Acknowledge(now, r[c.from].Ack())
		}
	}
	if copies > senders*late*5/4 {
		t.Errorf("%d copies of the last %d messages", copies, senders*late)
	}
}

// What was out while a link was down is told of at once, after all of it was late. That says little
// of how long a round trip takes.
func TestAnOutageStretchesTheWaitOnceAtMost(t *testing.T) {
	for _, out := range []int{2, 8, 16, session.Selected} {
		var s session.Sender[int]
		now, next := time.Duration(0), session.Number(0)
		send := func() {
			for n, _, ok := s.Next(now); ok; n, _, ok = s.Next(now) {
				s.Departed(n, now, 10*ms)
			}
		}
		push := func() { s.Push(0); next++; send() }
		for range 50 {
			push()
			now += 12 * ms
			s.Acknowledge(now, session.Ack{Next: next})
		}
		push()
		before := s.Due() - now
		for range out - 1 {
			push()
		}
		for end := now + 10*time.Second; now < end; now += ms {
			send()
		}
		s.Acknowledge(now, session.Ack{Next: next})
		push()
		if after := s.Due() - now; after > 2*before {
			t.Errorf("with %d out a message waits for %v before the outage, and for %v behind it", out, before, after)
		}
	}
}

// An acknowledgement tells of a part of the Window alone. Where messages are lost, those behind
// that part are told of late. That says nothing of how long a round trip takes.
func TestMessagesThatNoAcknowledgementToldOfDoNotStretchTheWait(t *testing.T) {
	const messages, trip = 1000, 10 * ms
	for _, loss := range []float64{0.05, 0.1, 0.3} {
		random := rand.New(rand.NewPCG(1, uint64(100*loss)))
		b := &bench{}
		for range messages {
			b.push()
		}
		type due struct {
			at time.Duration
			p  packet
		}
		var forth, back []due
		for b.sender.Outstanding() > 0 {
			if b.now > 20*time.Second {
				t.Fatalf("loss of %v: %d of %d messages are there after %v", loss, len(b.freed), messages, b.now)
			}
			b.pump()
			for _, p := range b.forth {
				if random.Float64() > loss {
					forth = append(forth, due{b.now + trip/2, p})
				}
			}
			b.forth = nil
			for len(forth) > 0 && forth[0].at <= b.now {
				b.arrive(forth[0].p)
				forth = forth[1:]
				b.answer()
				if random.Float64() > loss {
					back = append(back, due{b.now + trip/2, b.back[0]})
				}
				b.back = nil
			}
			for len(back) > 0 && back[0].at <= b.now {
				b.hear(back[0].p)
				back = back[1:]
			}
			b.now += ms
		}
		b.check(t)
		t.Logf("loss of %v: %v, %.2f copies of a message", loss, b.now, float64(b.sent)/messages)
	}
}

// An acknowledgement that comes with a later one, because it was lost itself, is no round trip.
func TestLostAnswersDoNotStretchTheWait(t *testing.T) {
	b := &bench{}
	for i := range 300 {
		b.push()
		b.pump()
		b.now += 10 * ms
		for _, p := range b.forth {
			b.arrive(p)
		}
		b.forth = nil
		b.answer()
		if i%3 == 0 {
			b.hear(b.back[len(b.back)-1])
		}
		b.back = nil
	}
	b.push()
	b.pump()
	if wait := b.sender.Due() - b.now; wait > 60*ms {
		t.Errorf("waits %v for a round trip of 10ms", wait)
	}
}

func TestWhatLiesBeyondTheWindowIsNotTakenOver(t *testing.T) {
	var r session.Receiver[int]
	for n, want := range map[session.Number]bool{session.Window - 1: true, session.Window: false, 1<<32 - 1: false} {
		if r.Receive(n, 0, true) != want {
			t.Errorf("message %d: taken over is %v", n, !want)
		}
	}
	if left := r.Drop(); len(left) != 1 {
		t.Errorf("%d kept", len(left))
	}
}

func TestWhatCannotBeLostIsNotKept(t *testing.T) {
	var s session.Sender[int]
	for i := range 10 {
		s.Push(i)
		n, _, _ := s.Next(0)
		s.Settle(n)
	}
	if s.Outstanding() != 0 || s.Due() != session.Never {
		t.Errorf("%d kept, due %v", s.Outstanding(), s.Due())
	}
}

func TestNoAllocationForAMessage(t *testing.T) {
	var s session.Sender[int]
	var r session.Receiver[int]
	now := time.Duration(0)
	each := func() {
		s.Push(1)
		n, item, _ := s.Next(now)
		s.Departed(n, now, ms)
		r.Receive(n, item, true)
		r.Next()
		now += ms
		s.Acknowledge(now, r.Ack())
	}
	each()
	if n := testing.AllocsPerRun(1000, each); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}

func BenchmarkMessage(b *testing.B) {
	var s session.Sender[int]
	var r session.Receiver[int]
	for i := range time.Duration(b.N) {
		s.Push(1)
		n, item, _ := s.Next(i)
		s.Departed(n, i, ms)
		r.Receive(n, item, true)
		r.Next()
		s.Acknowledge(i, r.Ack())
	}
}

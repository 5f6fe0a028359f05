package transport

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// guestPatience is how long a caller that has begun to say who it is may go on before another one
// takes its room.
const guestPatience = time.Second

// lobby holds the callers that are about to prove who they are. Room is shared out: where there is
// none left, the one goes that has said nothing for longest; or the oldest of the address with most
// callers, if the newcomer's has fewer by two or it has had time enough. So nobody keeps others out
// by calling and being silent.
type lobby struct {
	most int

	mu     sync.Mutex
	guests []*guest // in the order in which they came
}

// guest is a caller of whom it is not known yet who it is.
type guest struct {
	socket *socket
	from   netip.Addr
	since  time.Time
}

func newGuest(s *socket) *guest {
	at, _ := netip.ParseAddrPort(s.tcp.RemoteAddr().String())
	return &guest{socket: s, from: at.Addr(), since: time.Now()}
}

// enter lets a caller in, and says who has to go for it: nobody, another one, or the caller itself.
func (l *lobby) enter(g *guest) (out *guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.guests) >= l.most {
		i := l.unwanted(g)
		if i < 0 {
			return g
		}
		out = l.guests[i]
		l.guests = slices.Delete(l.guests, i, i+1)
	}
	l.guests = append(l.guests, g)
	return out
}

// unwanted is the number of the guest that goes for another one, -1 if none does.
func (l *lobby) unwanted(newcomer *guest) int {
	from := map[netip.Addr]int{newcomer.from: 1}
	most := newcomer.from
	for _, g := range l.guests {
		if from[g.from]++; from[g.from] > from[most] {
			most = g.from
		}
	}
	if i := slices.IndexFunc(l.guests, func(g *guest) bool { return g.socket.counted.bytes.Load() == 0 }); i >= 0 {
		return i
	}
	i := slices.IndexFunc(l.guests, func(g *guest) bool { return g.from == most })
	if i >= 0 && (from[most] >= from[newcomer.from]+2 || newcomer.since.Sub(l.guests[i].since) > guestPatience) {
		return i
	}
	return -1
}

// leave lets a guest go whose call is decided; false if it had to go before.
func (l *lobby) leave(g *guest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.guests, g)
	if i >= 0 {
		l.guests = slices.Delete(l.guests, i, i+1)
	}
	return i >= 0
}

// Package lobby shares out the room for callers who are about to prove who they are.
package lobby

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// patience is how long a caller that has begun to say who it is may go on before another one takes
// its room.
const patience = time.Second

// Lobby holds the callers that are about to prove who they are. Where there is no room left, the
// one goes that has said nothing for longest; or the oldest of the address with most callers, if
// the newcomer's has fewer by two or it has had time enough. So nobody keeps others out by calling
// and being silent.
type Lobby struct {
	most int

	mu     sync.Mutex
	guests []*Guest // in the order in which they came
}

// New returns a lobby with room for this many callers.
func New(most int) *Lobby { return &Lobby{most: most} }

// Guest is a caller of whom it is not known yet who it is.
type Guest struct {
	// From is where it calls from.
	From netip.Addr
	// Since is when it called.
	Since time.Time
	// Silent reports whether it has said nothing so far.
	Silent func() bool
	// Drop ends its call.
	Drop func()
}

// Enter lets a caller in, and says who has to go for it: nobody, another one, or the caller itself.
func (l *Lobby) Enter(g *Guest) (out *Guest) {
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
func (l *Lobby) unwanted(newcomer *Guest) int {
	from := map[netip.Addr]int{newcomer.From: 1}
	most := newcomer.From
	for _, g := range l.guests {
		if from[g.From]++; from[g.From] > from[most] {
			most = g.From
		}
	}
	if i := slices.IndexFunc(l.guests, func(g *Guest) bool { return g.Silent() }); i >= 0 {
		return i
	}
	i := slices.IndexFunc(l.guests, func(g *Guest) bool { return g.From == most })
	if i >= 0 && (from[most] >= from[newcomer.From]+2 || newcomer.Since.Sub(l.guests[i].Since) > patience) {
		return i
	}
	return -1
}

// Leave lets a guest go whose call is decided; false if it had to go before.
func (l *Lobby) Leave(g *Guest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.guests, g)
	if i >= 0 {
		l.guests = slices.Delete(l.guests, i, i+1)
	}
	return i >= 0
}

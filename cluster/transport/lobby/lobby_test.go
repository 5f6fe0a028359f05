package lobby

import (
	"net/netip"
	"testing"
	"time"
)

// came returns a guest that came from an address a while ago and has sent some bytes.
func came(ago time.Duration, from string, bytes int64) *Guest {
	return &Guest{From: netip.MustParseAddr(from), Since: time.Now().Add(-ago),
		Silent: func() bool { return bytes == 0 }}
}

func TestLobbyHasThoseGoWhoKeepOthersOut(t *testing.T) {
	const a, b, old = "192.0.2.1", "192.0.2.2", 2 * patience
	for _, x := range []struct {
		name string
		here []*Guest // the lobby is full with them
		next *Guest
		out  int // its number among those who are here; -1 is the newcomer
	}{
		{"who is silent", []*Guest{came(time.Hour, a, 9), came(2, a, 0), came(1, a, 0)}, came(0, a, 0), 1},
		{"nobody, where all have spoken in time", []*Guest{came(9, a, 9), came(9, a, 9), came(9, a, 9)},
			came(0, a, 9), -1},
		{"who has had time enough", []*Guest{came(old, a, 9), came(1, a, 9), came(1, a, 9)}, came(0, a, 9), 0},
		{"nobody, where both have as many", []*Guest{came(3, b, 9), came(2, a, 9), came(1, a, 9)}, came(0, b, 9), -1},
		{"the oldest of who has more by two", []*Guest{came(2, a, 9), came(1, a, 9), came(1, a, 9)}, came(0, b, 9), 0},
	} {
		l := New(len(x.here))
		for _, g := range x.here {
			if out := l.Enter(g); out != nil {
				t.Fatalf("%s: somebody went while there was room", x.name)
			}
		}
		want := x.next
		if x.out >= 0 {
			want = x.here[x.out]
		}
		if out := l.Enter(x.next); out != want {
			t.Errorf("%s: another one went", x.name)
		}
		if l.Leave(want) || len(l.guests) != len(x.here) {
			t.Errorf("%s: who went is there still, or the lobby holds %d", x.name, len(l.guests))
		}
	}
}

package node

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// A submission whose process is away counts as lost once no other process can take over.
func TestSubmissionOfAProcessThatIsAwayIsLostInTime(t *testing.T) {
	now := time.Now()
	for _, x := range []struct {
		state   string
		away    time.Duration
		holders []string
		want    string
	}{
		{request.Running, 0, nil, request.Running},
		{request.Running, lostAlone / 2, nil, request.Running},
		{request.Running, lostAlone, nil, request.Lost},
		{request.Waiting, lostAlone, nil, request.Lost},
		{request.Done, time.Hour, nil, request.Done},
		{request.Failed, time.Hour, []string{"a", "b", "c"}, request.Failed},
		{request.Running, lostAlone, []string{"a", "b", "c"}, request.Running},
		{request.Running, lostHeld, []string{"a", "b", "c"}, request.Lost},
	} {
		m := &protos.Submission{Id: "1", Process: "a", State: x.state, Holders: x.holders}
		if x.away > 0 {
			m.Away = now.Add(-x.away).UnixNano()
		}
		if declareLost(m, now); m.State != x.want || (m.Error != "") != (x.want == request.Lost) {
			t.Errorf("%+v: %s, %q", x, m.State, m.Error)
		}
	}
}

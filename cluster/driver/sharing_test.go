package driver_test

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
)

// Each of three workers sends the two others its gradient at the same time, over an uplink of its
// own.
const sharing = `
name: sharing
seed: 2
data: {set: synthetic-traffic, samples: 600, split: {kind: iid}}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: all-reduce, algorithm: all-to-all}
nodes: [{name: w, count: 3, compute: {step: 5ms}, uplink: 4 Mbit/s}]
network: {share: fair}
evaluate: {every: 5 steps}
stop: {steps: 15}
`

// took are the mean times that messages took from worker to worker.
func took(t *testing.T, r *driver.Report) (seconds []float64) {
	t.Helper()
	folder, err := record.Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := folder.Data(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range data.Links {
		if l.Messages > 0 {
			seconds = append(seconds, l.DelayAchieved)
		}
	}
	if len(seconds) != 6 {
		t.Fatalf("%d links are used, want 6", len(seconds))
	}
	return seconds
}

// Of two messages that leave at once, the one that goes first takes half as long as the other; if
// they share, both take as long as the other.
func TestMessagesOfAPlanShareItsRates(t *testing.T) {
	queued := took(t, run(t, load(t, sharing, "network.share=fifo"), driver.Options{}))
	fair := run(t, load(t, sharing), driver.Options{Strict: true})
	shared := took(t, fair)
	least, most := math.Inf(1), 0.0
	for _, s := range queued {
		least, most = min(least, s), max(most, s)
	}
	if ratio := most / least; ratio < 1.9 || ratio > 2.1 {
		t.Errorf("queued messages took from %v to %v s", least, most)
	}
	for _, s := range shared {
		if math.Abs(s/most-1) > 0.01 {
			t.Errorf("a message that shares took %v s, want %v", s, most)
		}
	}
	again := run(t, load(t, sharing), driver.Options{})
	if again.Runs[0].Digest != fair.Runs[0].Digest {
		t.Error("another digest in strict mode")
	}
	live := run(t, load(t, sharing), driver.Options{Clock: driver.Real})
	if live.Runs[0].Outcome == record.Failed {
		t.Errorf("in real time: %+v", live.Runs[0])
	}
	for _, s := range took(t, live) {
		if s < 0.9*most {
			t.Errorf("in real time a message took %v s, the rates allow %v", s, most)
		}
	}
}

func TestWhatSharesIsTheSameOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var all []string
	for _, procs := range []int{1, 2} {
		runtime.GOMAXPROCS(procs)
		r := run(t, load(t, sharing, "network.default={loss: {probability: 5%, timeout: 10ms}, "+
			"rate: {kind: random-walk, min: 1 Mbit/s, max: 6 Mbit/s, step: 1 Mbit/s, every: 20ms}}"), driver.Options{})
		all = append(all, r.Runs[0].Digest)
	}
	if all[0] != all[1] {
		t.Errorf("digests %v", all)
	}
}

// A message of 8.4 kB is under way at 8 kbit/s from 0.005 s on; at 4 s the link gets ten times as
// fast, and so does the answer.
func TestAChangeOfTheScheduleReachesWhatIsUnderWay(t *testing.T) {
	r := run(t, load(t, sharing, "architecture={kind: parameter-server}", "network.default.rate=8 kbit/s",
		"nodes=[{name: s, role: server}, {name: w, role: worker, compute: {step: 5ms}}]", "stop.steps=2",
		`schedule=[{at: 4s, link: ["*", "*"], rate: 80 kbit/s}]`), driver.Options{})
	size := float64(r.Runs[0].Bytes) / float64(r.Runs[0].Messages)
	pushed := 4 + (size-3995)/10e3
	want := pushed + size/10e3 + 0.005 + size/10e3
	if got := r.Runs[0].Duration; math.Abs(got-want) > 0.01 {
		t.Errorf("two steps took %v s, want %v: %d messages", got, want, r.Runs[0].Messages)
	}
}

func TestWhatSharesALinkThatFallsSilentIsAStandstill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "silent.csv")
	if err := os.WriteFile(file, []byte("time_s,rate_mbps\n0,1\n0.1,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, share := range []string{"fifo", "fair"} {
		p := load(t, sharing, "network={share: "+share+", default: {rate: {kind: trace, file: "+file+"}}}",
			"evaluate.every=1s")
		if _, err := try(t, p, driver.Options{}); err == nil || !strings.Contains(err.Error(), "came to a standstill") {
			t.Errorf("%s: %v, want a standstill", share, err)
		}
	}
}

// Processes of a cluster share uplinks, which each knows all messages of, but no downlinks.
func TestOnAClusterNoDownlinkIsShared(t *testing.T) {
	c, client := gathered(t, "a", "b")
	p := load(t, sharing, "nodes=[{name: w, count: 3, compute: {step: 5ms}, downlink: 4 Mbit/s}]")
	_, err := client.Submit(t.Context(), p, driver.SubmitOptions{})
	expectInput(t, err, "network.share: fair, while node w1 has a downlink, which processes of a cluster cannot share")
	summary, _ := c.result(client, sharing)
	if summary.Runs[0].Steps == 0 {
		t.Error("no steps on the cluster")
	}
}

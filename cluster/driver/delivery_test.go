package driver_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
	"github.com/gradwire/gradwire/cluster/turns"
)

// sound is a plan of whose links nothing is lost.
const sound = `name: sound
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: all-reduce}
nodes: [{name: w, count: 4, compute: {step: 5ms}}]
network: {topology: ring, default: {delay: {kind: uniform, range: 1ms..9ms}}}
evaluate: {every: 1 epochs}
stop: {epochs: 6}
`

// disturbances are what links do to messages.
var disturbances = []string{
	"loss: {probability: 5%, kind: drop}",
	"loss: {probability: 30%, kind: drop}",
	"loss: {kind: drop, bursts: {p: 5%, r: 60%}}",
	"repeat: 20%",
	"reorder: true",
	"reorder: true, repeat: 20%, loss: {probability: 20%, kind: drop}",
	"loss: {probability: 0%, kind: drop}, outages: [{from: 30ms, for: 200ms}]",
	"loss: {probability: 5%, kind: drop}, outages: [{kind: gilbert-elliott, up: 300ms, down: 100ms}]",
	"rate: 10 Mbit/s, loss: {probability: 20%, kind: drop}",
}

// bits are hashes of the values of the models that a run has left.
func bits(t *testing.T, r *driver.Report) map[string]string {
	t.Helper()
	values := map[string]string{}
	for name, file := range files(t, r.Dir) {
		if strings.HasSuffix(name, ".safetensors") {
			tensors := file[8+binary.LittleEndian.Uint64([]byte(file)):]
			values[name] = fmt.Sprintf("%x", sha256.Sum256([]byte(tensors)))
		}
	}
	return values
}

// What a link does to messages costs time, and nothing else where the order of events makes no
// difference to the model.
func TestEveryArchitectureEndsWhateverLinksDo(t *testing.T) {
	t.Parallel()
	all := []struct {
		architecture string
		same         bool // bits as without losses
	}{
		{"{kind: all-reduce, algorithm: ring}", true},
		{"{kind: all-reduce, algorithm: butterfly, every: 4, reduce: models}", false},
		{"{kind: all-reduce, algorithm: all-to-all}", true},
		{"{kind: all-reduce, algorithm: tree}", true},
		{"{kind: parameter-server, consistency: bsp, roles: {server: added}}", true},
		{"{kind: parameter-server, consistency: {kind: ssp, bound: 2}, roles: {server: added}}", false},
		{"{kind: parameter-server, consistency: {kind: dssp, low: 1, high: 3}, roles: {server: added}}", false},
		{"{kind: parameter-server, consistency: {kind: bounded-delay, bound: 2}, roles: {server: added}}", false},
		{"{kind: parameter-server, roles: {server: added}}", false},
		{"{kind: federated, controls: true, roles: {server: added}}", true},
		{"{kind: gaia, roles: {server: added}}", true},
		{"{kind: gaia, consistency: {kind: ssp, bound: 2}, roles: {server: added}}", false},
		{"{kind: federated, roles: {server: added, aggregator: [w1]}, under: {w1: [w2, w3]}}", true},
		{"{kind: federated, deadline: 60ms, roles: {server: added}}", false},
		{"{kind: federated, preset: fedbuff, buffer: 2, roles: {server: added}}", false},
		{"{kind: d-psgd}", false},
		{"{kind: d-psgd, track: true}", false},
		{"{kind: d-psgd, lead: 1}", false},
		{"{kind: gossip}", false},
		{"{kind: gossip, exchange: push-pull, lead: 2}", false},
		{"{kind: gossip, wait: false}", false},
		{"{kind: gossip, wait: false, delivery: reliable}", false},
		{"{kind: ad-psgd}", false},
		{"{kind: gossip-learning, period: 10ms}", false},
		{"{kind: gossip-learning, period: 10ms, delivery: reliable}", false},
		{"{kind: noloco, every: 4}", false},
		{"{kind: in-network, slots: 2, values: 100, roles: {switch: added}}", true},
		{"{kind: in-network, slots: 2, values: 100, roles: {switch: added}, delivery: reliable}", true},
		{"{kind: local}", true},
	}
	for i, c := range all {
		t.Run(c.architecture, func(t *testing.T) {
			turns.Row(t, i, len(all), 3)
			t.Parallel()
			set := func(link string) []string {
				return []string{"architecture=" + c.architecture,
					"network={topology: ring, default: {delay: {kind: uniform, range: 1ms..9ms}" + link + "}}"}
			}
			want := run(t, load(t, sound, set("")...), driver.Options{Strict: true})
			for _, disturbance := range disturbances {
				got := run(t, load(t, sound, set(", "+disturbance)...), driver.Options{Strict: true})
				if !got.Complete {
					t.Errorf("with %s the run is not complete", disturbance)
				}
				if c.same {
					equal(t, fmt.Sprintf("models with %s", disturbance), bits(t, want), bits(t, got))
				}
			}
		})
	}
}

// Where no link can lose, repeat or reorder a message there are no sessions: the digest is that of
// a run that has its messages as they are.
func TestSessionsCostNothingOnSoundLinks(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"", ", loss: {probability: 5%}", ", outages: [{from: 30ms, for: 100ms}]",
		", loss: {probability: 0%, kind: drop}"} {
		network := "network={default: {delay: 2ms" + link + "}}"
		with := run(t, load(t, sound, network), driver.Options{})
		without := run(t, load(t, sound, network, "architecture.delivery=as-is"), driver.Options{})
		if w, o := with.Runs[0], without.Runs[0]; w.Digest != o.Digest || w.Bytes != o.Bytes {
			t.Errorf("%s: %+v with sessions, %+v without", network, w, o)
		}
	}
}

func TestWithoutSessionsWaitingArchitecturesStandStill(t *testing.T) {
	t.Parallel()
	_, err := try(t, load(t, sound, "network.default.loss={probability: 5%, kind: drop}",
		"architecture.delivery=as-is"), driver.Options{})
	if err == nil || !strings.Contains(err.Error(), "standstill") {
		t.Errorf("got %v", err)
	}
}

// A link that is gone for good ends a run as before: it is told who waits for whom.
func TestALinkThatLosesEverythingIsAStandstill(t *testing.T) {
	t.Parallel()
	_, err := try(t, load(t, sound, "network.links=[{from: w1, to: w2, loss: {probability: 100%, kind: drop}}]"),
		driver.Options{})
	if err == nil || !strings.Contains(err.Error(), "standstill") ||
		!strings.Contains(err.Error(), "lost from w1 to w2") {
		t.Errorf("got %v", err)
	}
}

// judgedInVirtualTime checks that each model that a run has judged is one of a plan's run in
// virtual time, which judges all models until it is longer than any in real time. With -short it
// does not: one goroutine works for long.
func judgedInVirtualTime(t *testing.T, dir string, set ...string) {
	t.Helper()
	if testing.Short() {
		return
	}
	known := run(t, load(t, sound, append(set, "evaluate={every: 1ms}", "stop={epochs: 8}")...),
		driver.Options{Strict: true})
	if err := recordtest.Among(dataOf(t, known.Dir), dataOf(t, dir)); err != nil {
		t.Errorf("%s: %v", set, err)
	}
}

// In real time as in virtual time: what waits for each message ends, with the bits that it has
// where no message is disturbed. How late the last model is judged depends on the machine; each
// that is judged is one of virtual time.
func TestSessionsDeliverInRealTime(t *testing.T) {
	for _, architecture := range []string{"{kind: all-reduce}",
		"{kind: parameter-server, consistency: bsp, roles: {server: added}}"} {
		set := func(link string) []string {
			return []string{"architecture=" + architecture, "network={default: {delay: 1ms" + link + "}}"}
		}
		got := run(t, load(t, sound, set(", reorder: true, repeat: 20%, loss: {probability: 10%, kind: drop}")...),
			driver.Options{Strict: true, Clock: driver.Real})
		judgedInVirtualTime(t, got.Dir, set("")...)
	}
}

// So it is where nodes live in several processes, which also survive that a node comes and goes.
func TestSessionsDeliverOnACluster(t *testing.T) {
	turns.Take(t, 0, 3)
	c, client := gathered(t, "a", "b", "c")
	set := func(architecture, link string, more ...string) []string {
		return append(more, "architecture="+architecture, "network={default: {delay: 1ms"+link+"}}")
	}
	const disturbed = ", reorder: true, repeat: 20%, loss: {probability: 10%, kind: drop}, " +
		"outages: [{from: 30ms, for: 100ms}]"
	for _, architecture := range []string{"{kind: all-reduce}",
		"{kind: parameter-server, consistency: bsp, roles: {server: added}}"} {
		summary, dir := c.result(client, sound, set(architecture, disturbed)...)
		if got := summary.Runs[0]; got.Clock != "cluster" {
			t.Errorf("%s: %+v", architecture, got)
		}
		judgedInVirtualTime(t, dir, set(architecture, "")...)
		summary, _ = c.result(client, sound, set(architecture, disturbed, "detect=10ms",
			"schedule=[{at: 30ms, node: w2, do: crash}, {at: 60ms, node: w2, do: join}, "+
				"{at: 90ms, node: w2, do: leave}, {at: 120ms, node: w2, do: join}]")...)
		if got := summary.Runs[0]; got.Epochs < 6 {
			t.Errorf("%s with a node that comes and goes: %+v", architecture, got)
		}
	}
}

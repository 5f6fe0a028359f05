package ps_test

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

// wired is a plan of a server and one worker over a slow link.
const wired = `
data: {set: synthetic-traffic, samples: 100}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 4, optimizer: {kind: sgd, rate: 0.05}}
architecture: {kind: parameter-server}
nodes: [{name: server, role: server}, {name: w, role: worker, compute: {step: 1ms}}]
network: {links: [{between: [server, w], delay: 1ms, rate: 100 kbit/s}]}
evaluate: {every: 200 steps}
stop: {steps: 20}
`

// traffic is what a link of a record has carried, each message with the delay that it had.
type traffic struct{ messages, bytes, delay float64 }

// carried runs the plan and reads what went up, from the worker, and down.
func carried(t *testing.T, set ...string) (up, down traffic) {
	t.Helper()
	plan, err := driver.Parse("wired.yaml", []byte(wired), set...)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := driver.Run(context.Background(), plan, driver.Options{Out: dir}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "links.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(row[column[name]], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		l := traffic{number("messages"), number("bytes"), number("delay_achieved_s")}
		switch row[column["from"]] + row[column["to"]] {
		case "wserver":
			up = l
		case "serverw":
			down = l
		}
	}
	return up, down
}

// The record counts the bytes of the codes, as many as the formulas say, and the emulated link
// takes as long for them.
func TestCompressedMessagesHaveTheBytesOfTheFormula(t *testing.T) {
	const d = 93*5 + 5
	k := math.Ceil(d * 0.05)
	index := math.Ceil(math.Log2(d))
	plain, plainDown := carried(t)
	head := plain.bytes/plain.messages - 4*d
	if head < 0 || head > 64 {
		t.Fatalf("a gradient of %d values takes %g bytes beside them", d, head)
	}
	for chain, bits := range map[string]float64{
		"{kind: top-k, share: 5%}":               k * (32 + index),
		"{kind: random-k, share: 5%}":            32*k + 32,
		"{kind: qsgd, levels: 15}":               32 + d*(4+1),
		"{kind: ternary}":                        32 + 1.6*d,
		"{kind: sign}":                           d + 32,
		"{kind: natural}":                        9 * d,
		"{kind: float16}":                        16 * d,
		"{kind: bfloat16}":                       16 * d,
		"{kind: int8}":                           8*d + 32*math.Ceil(d/256.0),
		"{kind: int4}":                           4*d + 32*math.Ceil(d/256.0),
		"{kind: top-k, share: 5%}, {kind: int4}": k*(4+index) + 32,
		"{kind: random-k, share: 5%}, {kind: qsgd, levels: 15}": 32 + 32 + k*(4+1),
	} {
		want := head + bits/8
		within := func(l traffic, messages, extra float64) bool {
			each := (l.bytes - extra) / messages // whole words: at most one begun for each part
			return each > want-4 && each < want+12 && math.Abs(l.delay-l.bytes/l.messages*8/1e5-1e-3) < 1e-4
		}
		up, _ := carried(t, "architecture.compress={up: ["+chain+"]}")
		if !within(up, up.messages, 0) {
			t.Errorf("up [%s]: %+v, the formula says %g bytes a message", chain, up, want)
		}
		_, down := carried(t, "architecture.compress={down: ["+chain+"]}")
		if !within(down, down.messages-1, plainDown.bytes/plainDown.messages) { // the first is the model
			t.Errorf("down [%s]: %+v, the formula says %g bytes a message", chain, down, want)
		}
	}
}

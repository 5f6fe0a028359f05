package driver_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/turns"
	"github.com/gradwire/gradwire/nn"
)

// blocking loses messages from one node to another one for good; those who wait for them wait to
// the end.
const blocking = `name: blocking
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: ad-psgd, graph: exponential, delivery: as-is}
nodes: [{name: p, count: 4, compute: {step: 5ms}}]
network:
  default: {delay: 1ms}
  links: [{from: p1, to: p2, loss: {probability: 30%, kind: drop}}]
evaluate: {every: 500ms}
record: events
stop: {time: 4s}
`

// slowJudge is a model whose accuracy takes seconds to find out.
type slowJudge struct{ nn.Model }

func (m slowJudge) NewWorkspace(maxBatch int) nn.Workspace {
	return slowWorkspace{m.Model.NewWorkspace(maxBatch)}
}

type slowWorkspace struct{ nn.Workspace }

func (w slowWorkspace) Logits(params []float32, s *nn.Samples, first, n int, to []float32) {
	time.Sleep(300 * time.Millisecond) // each of five models, so that their nodes rest for 1.5 s
	w.Workspace.Logits(params, s, first, n, to)
}

func withSlowJudge() *catalog.Catalog {
	type settings struct {
		Layers []int `plan:"layers,required"`
	}
	c := catalog.Default()
	c.Models.Add(catalog.Define("slow-judge", "an MLP", func() settings { return settings{} },
		func(_ *catalog.Catalog, s *settings) (nn.Model, error) {
			m, err := nn.NewMLP(s.Layers, nn.Tanh)
			return slowJudge{m}, err
		}))
	return c
}

// stopped reads from the record of events for how long each node has made no step before an
// instant, as a share of what counts as standing still: a second, and ten times as long as it, or,
// if it has made one step only, any node ever took from step to step.
func stopped(t *testing.T, dir string, end float64) map[string]float64 {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "runs", "0000", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	last, longest, slowest := map[string]float64{}, map[string]float64{}, 0.0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e struct {
			Time  float64 `json:"time_s"`
			Node  string  `json:"node"`
			Event string  `json:"event"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event != "step" {
			continue
		}
		if at, again := last[e.Node]; again {
			longest[e.Node] = max(longest[e.Node], e.Time-at)
			slowest = max(slowest, longest[e.Node])
		}
		last[e.Node] = e.Time
	}
	shares := map[string]float64{}
	for node, at := range last {
		shares[node] = (end - at) / max(1, 10*cmp.Or(longest[node], slowest))
	}
	return shares
}

// logOf is the log of a submission.
func (c *testCluster) logOf(client *driver.Client, id string) string {
	c.t.Helper()
	var log strings.Builder
	if err := client.Logs(c.t.Context(), id, false, func(line string) { log.WriteString(line + "\n") }); err != nil {
		c.t.Fatal(err)
	}
	return log.String()
}

func TestNodesThatStandStillAtTheEndAreNamedAndNoOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("runs in real time")
	}
	t.Parallel()
	texts := map[string]string{
		"peers": blocking,
		// Nodes are halted seconds before the run is over.
		"slow judge": strings.NewReplacer("kind: mlp", "kind: slow-judge", "every: 500ms", "every: 4s").
			Replace(blocking),
		"server": strings.NewReplacer(
			"{kind: ad-psgd, graph: exponential, ", "{kind: parameter-server, ",
			"[{name: p, count: 4, ", "[{name: hub, role: server}, {name: p, role: worker, count: 4, ",
			"to: p2", "to: hub",
		).Replace(blocking),
	}
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		t.Run(name, func(t *testing.T) {
			turns.Row(t, i, len(texts), 3)
			t.Parallel()
			c := newCluster(t)
			for _, name := range []string{"a", "b"} {
				t.Cleanup(c.serve(name, func(n *driver.NodeConfig) { n.Catalog = withSlowJudge() }))
			}
			client := c.client(identity.Operator)
			c.gather(client, 2)
			id := c.submit(client, texts[name], []string{"p1=a", "p2=b"})
			ended, s, dir := c.ended(client, id)
			log := c.logOf(client, id)
			slept := strings.Contains(log, " was paused for ") // which excuses those who made no step meanwhile
			some := false
			for node, share := range stopped(t, dir, s.Runs[0].Duration) {
				told := strings.Contains(log, node+" stalled from ")
				if share > 1.5 && !told && !slept || share < 0.7 && told {
					t.Errorf("%s made no step for %.2f of what is standing still, told: %v\n%s", node, share, told, log)
				}
				some = some || share > 1.5
			}
			if !some {
				t.Skipf("this machine is too busy to tell who stands still from who is slow:\n%s", log)
			}
			if ended.State != driver.Degraded {
				t.Errorf("%+v", ended)
			}
		})
	}
}

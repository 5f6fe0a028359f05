package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/cluster/identity"
)

// fleet are the processes of a benchmark.
type fleet struct {
	tb      testing.TB
	pinned  bool
	members []*seated
}

type seated struct {
	say  *json.Encoder
	hear *json.Decoder
}

// launch starts the processes of a cluster and connects them with each other. Those that are pinned
// have one core each.
func launch(tb testing.TB, s seat, secure, pinned bool) *fleet {
	tb.Helper()
	fl := &fleet{tb: tb, pinned: pinned}
	folder := tb.TempDir()
	if secure {
		if err := identity.Init(filepath.Join(folder, "ca")); err != nil {
			tb.Fatal(err)
		}
	}
	connect := order{}
	for s.Index = range s.Processes {
		if secure {
			name := fmt.Sprintf("n%d", s.Index)
			s.Identity = filepath.Join(folder, name)
			if err := identity.Issue(filepath.Join(folder, "ca"), s.Identity,
				identity.Subject{Name: name, Role: identity.Node}); err != nil {
				tb.Fatal(err)
			}
		}
		fl.start(s)
	}
	for _, m := range fl.members {
		a := m.listen(tb)
		connect.Nodes, connect.Bare = append(connect.Nodes, a.Node), append(connect.Bare, a.Bare)
	}
	fl.all(connect)
	return fl
}

func (fl *fleet) start(s seat) {
	fl.tb.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		fl.tb.Fatal(err)
	}
	process := exec.CommandContext(context.Background(), os.Args[0])
	process.Env = append(os.Environ(), seatVariable+"="+string(text))
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		fl.tb.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		fl.tb.Fatal(err)
	}
	if fl.pinned {
		err = onCore(s.Index, process.Start)
	} else {
		err = process.Start()
	}
	if err != nil {
		fl.tb.Fatal(err)
	}
	fl.tb.Cleanup(func() {
		in.Close()     //nolint:errcheck // the process ends in either case
		process.Wait() //nolint:errcheck // a benchmark's
	})
	fl.members = append(fl.members, &seated{say: json.NewEncoder(in), hear: json.NewDecoder(out)})
}

func (m *seated) listen(tb testing.TB) (a answer) {
	tb.Helper()
	if err := m.hear.Decode(&a); err != nil {
		tb.Fatal(err)
	}
	return a
}

// all gives all processes an order, and waits until they have carried it out.
func (fl *fleet) all(o order) (answers []answer) {
	fl.tb.Helper()
	o.Begin = time.Now().Add(5 * time.Millisecond)
	for _, m := range fl.members {
		if err := m.say.Encode(o); err != nil {
			fl.tb.Fatal(err)
		}
	}
	for _, m := range fl.members {
		answers = append(answers, m.listen(fl.tb))
	}
	return answers
}

// perSecond returns how many steps or exchanges all processes together made per second; each made
// n.
func perSecond(n int, answers []answer) (sum float64) {
	for _, a := range answers {
		if a.Total > 0 {
			sum += float64(n) / a.Total.Seconds()
		}
	}
	return sum
}

// slowest returns the longest time of the answers.
func slowest(answers []answer, of func(answer) time.Duration) (longest time.Duration) {
	for _, a := range answers {
		longest = max(longest, of(a))
	}
	return longest
}

func median[T int | float64 | time.Duration](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}

// block is about how long what is measured goes on before what it is compared with has its turn.
const (
	block  = 60 * time.Millisecond
	blocks = 15
)

// enough is a number of steps that take about so long. The first ones fill the pools.
func (fl *fleet) enough(least time.Duration) int {
	for range 3 {
		fl.all(order{Steps: 1})
	}
	for n := 1; ; n *= 2 {
		if slowest(fl.all(order{Steps: n}), func(a answer) time.Duration { return a.Total }) > least {
			return n
		}
	}
}

func security(b *testing.B, do func(b *testing.B, secure bool)) {
	b.Run("plain", func(b *testing.B) { do(b, false) })
	b.Run("tls", func(b *testing.B) { do(b, true) })
}

// BenchmarkParameterServer measures the whole way of a gradient to the server's mailbox and of the
// parameters back to the worker's. Server and workers are separate processes. "of-raw" is the
// median over the blocks' ratios to bare connections that exchange vectors of the same size,
// without TLS, between the same processes. Each process has a core to itself where there are
// enough.
func BenchmarkParameterServer(b *testing.B) {
	for _, values := range []int{2084, 21_840, 250_000, 1_199_882} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("params=%d/workers=%d", values, workers), func(b *testing.B) {
				security(b, func(b *testing.B, secure bool) {
					fl := launch(b, seat{Architecture: parameterServer, Processes: 1 + workers, Values: values},
						secure, 1+workers <= runtime.NumCPU())
					fl.measure(b)
				})
			})
		}
	}
}

func (fl *fleet) measure(b *testing.B) {
	n := fl.enough(block)
	var ratios, rates, raws []float64
	for b.Loop() {
		for range blocks {
			ours := perSecond(n, fl.all(order{Steps: n}))
			raw := perSecond(n, fl.all(order{Raw: n}))
			ratios, rates, raws = append(ratios, ours/raw), append(rates, ours), append(raws, raw)
		}
	}
	b.ReportMetric(median(rates), "roundtrips/s")
	b.ReportMetric(median(raws), "raw/s")
	b.ReportMetric(median(ratios), "of-raw")
	b.ReportMetric(0, "ns/op")
}

// segment is what the ring of BenchmarkAllReduce has, 2 MB.
const segment = 500_000

// BenchmarkAllReduce averages the vectors of several processes, which run where the system lets
// them. A round takes from the gradient in a worker's mailbox to the mean, for the slowest of them.
func BenchmarkAllReduce(b *testing.B) {
	for _, processes := range []int{2, 4} {
		for _, bytes := range []int{4096, 100_000, 1 << 20, 16 << 20, 100_000_000} {
			for _, a := range []collective.Algorithm{collective.AllToAll, collective.Butterfly, collective.Ring} {
				b.Run(fmt.Sprintf("processes=%d/bytes=%d/%s", processes, bytes, a), func(b *testing.B) {
					s := seat{Architecture: string(a), Processes: processes, Values: bytes / 4}
					if a == collective.Ring {
						s.Segment = segment
					}
					security(b, func(b *testing.B, secure bool) { launch(b, s, secure, false).rounds(b) })
				})
			}
		}
	}
}

func (fl *fleet) rounds(b *testing.B) {
	// Few rounds at a time: all ranks wait for each other in between, where one that is done would
	// otherwise take cores from those that are not.
	n := fl.enough(block / 10)
	var rounds []time.Duration
	for b.Loop() {
		for range blocks {
			answers := fl.all(order{Steps: n})
			for round := range n {
				rounds = append(rounds, slowest(answers, func(a answer) time.Duration { return a.Rounds[round] }))
			}
		}
	}
	b.ReportMetric(float64(median(rounds))/1e3, "us")
	b.ReportMetric(0, "ns/op")
}

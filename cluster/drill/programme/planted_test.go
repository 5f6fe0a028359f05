package programme_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/drill/programme"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// plant is a mistake in a file of the module: a piece of text in place of another. Some of them
// were real ones, which the programme has found.
type plant struct {
	name, file, right, wrong string
	imports                  string // that the wrong text needs besides; empty for none
	by                       string // the invariant that it breaks; empty for any
}

var plants = []plant{
	{name: "staleness off by one", file: "actors/consistency/clocks.go",
		right: "bound: m.Bound(), ahead: m.Ahead()",
		wrong: "bound: m.Bound() + 1, ahead: m.Ahead()"},
	{name: "copies of messages that were given up are taken", file: "cluster/door/sessions.go",
		right: "if f.mute && c.letter.taken {",
		wrong: "if false {"},
	{name: "a missing message is acknowledged", file: "actors/session/receiver.go",
		right: "a := Ack{Next: r.next}",
		wrong: "a := Ack{Next: r.next + Number(min(len(r.early), 1))}"},
	{name: "a message is handed over before one that is missing", file: "actors/session/receiver.go",
		right: "if len(r.early) == 0 || !r.early[0].here {",
		wrong: "if len(r.early) == 0 {"},
	{name: "a pause ends the one that lasts longer", file: "cluster/sim/membership.go",
		right: "n.resumes = max(n.resumes, r.now+d)",
		wrong: "n.resumes = r.now + d"},
	{name: "a node that is away gets its results", file: "cluster/sim/membership.go",
		right: "	n.life++\n",
		wrong: ""},
	{name: "a repeat at the first instant is none", file: "cluster/link/edge.go",
		right: "e.arrive(max(departure+delay, 1), delay)",
		wrong: "e.arrive(departure+delay, delay)"},
	{name: "what nobody takes is not counted", file: "cluster/link/edge.go",
		right: "func (e *Edge) Discard(size int) {\n\te.underway--\n\te.stats.Dropped++\n",
		wrong: "func (e *Edge) Discard(size int) {\n\te.underway--\n"},
	{name: "a rank misses its own piece of the sum", file: "actors/collective/ring.go",
		right: "turn == s.n-1, turn < s.n-1",
		wrong: "turn == s.n, turn < s.n-1"},
	{name: "the weight of a lost neighbour is not returned", file: "actors/dpsgd/peer.go",
		right: "self, others := float32(1), 0\n\tfor i := range p.pairs {\n",
		wrong: "self, others := float32(1), 0\n\tfor i := range p.pairs {\n" +
			"\t\tif !p.pairs[i].counts(p.replica.Steps) {\n\t\t\tself -= p.pairs[i].weight\n\t\t}\n"},
	{name: "neighbours weigh each other by their own degrees", file: "actors/peer/mixing.go",
		right: "1+max(degree(view, i), degree(view, j))", wrong: "1+degree(view, i)"},
	{name: "averaging by pairs is not atomic", file: "actors/adpsgd/peer.go",
		right: "case p.partner == int(head.Node) && head.Exchange == p.exchange:",
		wrong: "case p.partner == int(head.Node) && head.Exchange == p.exchange:\n" +
			"\t\tif p.gradient != nil {\n\t\t\tp.finish()\n\t\t}"},
	{name: "a mean of two models is none", file: "actors/gossip/peer.go",
		right: "float32(1-weight), p.replica.Params.Data",
		wrong: "float32(1.01-weight), p.replica.Params.Data"},
	{name: "a group's mean counts one peer too many", file: "actors/noloco/peer.go",
		right: "1/float32(len(p.group)+1)",
		wrong: "1/float32(len(p.group)+2)"},
	{name: "a merge of walking models is none", file: "actors/gossiplearning/merge.go",
		right: "float32(1-share), b.params.Data",
		wrong: "float32(1.01-share), b.params.Data"},
	{name: "a model that the cache forgets is not given back", file: "actors/gossiplearning/peer.go",
		right: "\t\tp.cache[0].params.Release()\n", wrong: ""},
	{name: "a packet that comes again is added again", file: "actors/innetwork/slots.go",
		right: "if q.seen[child] {", wrong: "if q.seen[child] && q.progress != summing {"},
	{name: "a session hands every copy of a message over", file: "cluster/door/sessions.go",
		right: "\t\tc.letter.taken, c.letter.Edge = true, p.Edge\n\t}\n",
		wrong: "\t\tc.letter.taken, c.letter.Edge = true, p.Edge\n" +
			"\t\tpayload(c.letter.Message).(*protos.Message).Retain(1)\n" +
			"\t} else {\n\t\tf.sessions.courier.Hand(&c.letter.Parcel)\n\t}\n",
		imports: "github.com/gradwire/gradwire/protos"},
	{name: "what comes after a lost message of a crashed node is handed over", file: "cluster/door/sessions.go",
		right: "\tif f.mute {\n\t\tdrop(f.receiver.Drop())\n\t}\n",
		wrong: "\tif f.mute {\n\t\tfor _, l := range f.receiver.Drop() {\n" +
			"\t\t\tf.sessions.courier.Hand(&l.Parcel)\n\t\t}\n\t}\n"},
	{name: "what was under way to a node that has crashed is not given back", file: "cluster/door/sessions.go",
		right: "p.Edge.Discard(p.Size)\n\t\tc.letter.discard()",
		wrong: "p.Edge.Discard(p.Size)\n\t\t_ = c.letter"},
	{name: "what a node that has left sent is dropped if it was overtaken", file: "cluster/door/sessions.go",
		right: "\t\t\tcase !left:\n", wrong: "\t\t\tcase !left || f.sender.Outstanding() == 0:\n"},
	{name: "a server begins when another one asks it", file: "actors/ps/gather.go",
		right: "\tfor k := range s.shards.Here() {\n\t\ts.show(ctx, head, k)\n",
		wrong: "\ts.begin()\n\tfor k := range s.shards.Here() {\n\t\ts.show(ctx, head, k)\n"},
	{name: "who joins takes a server for crashed that left before", file: "actors/ps/shards/fleet.go",
		right: "if view.Number > f.number+1 {", wrong: "if view.Number == 0 {"},
	{name: "a peer takes models that its former life was sent", file: "actors/dpsgd/peer.go",
		right: "x.since < head.View", wrong: "x.since > head.View"},
	{name: "a server moves away from its clients", file: "actors/periodic/robust/robust.go",
		right: "nn.AddScaled(dst, float32(weights[i]), v)", wrong: "nn.AddScaled(dst, float32(-weights[i]), v)"},
	{name: "an aggregator fails the run by what its former life asked for", file: "actors/federated/server.go",
		right: "(head.Round <= s.round || s.edge != nil)", wrong: "head.Round <= s.round", by: "progress"},
	{name: "a client counts for a sample more than it has", file: "actors/periodic/weights.go",
		right: "weights[i] = float64(s.Samples)", wrong: "weights[i] = float64(s.Samples + 1)", by: "means-weighed"},
	{name: "an update that arrives twice counts twice", file: "actors/federated/server.go",
		right: "head.Round != c.awaited {", wrong: "head.Round != s.round {"},
	{name: "a site is a round too far ahead", file: "actors/gaia/between.go",
		right: "b.clock() > m.clock+uint64(b.arch.Clock)",
		wrong: "b.clock() > m.clock+uint64(b.arch.Clock)+1", by: "staleness-bound"},
	{name: "a gradient that was applied is not given back", file: "actors/gossip/peer.go",
		right: "\tgradient.Release()\n", wrong: ""},
	{name: "a gradient of a round is forgotten", file: "actors/ps/round.go",
		right: "\t\tr.gradients[node] = nil\n",
		wrong: "\t\tr.gradients[node] = nil\n\t\tif node == len(r.gradients)-1 {\n\t\t\tcontinue\n\t\t}\n"},
	{name: "the place in a shard is not saved", file: "actors/train/state.go",
		right: "\tstate.Int(s, \"walked\", &l.walked)\n", wrong: ""},
	{name: "what compression has left over is not saved", file: "actors/train/state.go",
		right: "\t\ts.Vectors(name, e.Memories()...)\n", wrong: "\t\t_ = name\n"},
	{name: "the messages of a link so far are not saved", file: "cluster/link/state.go",
		right: "\tstate.Column(s, \"sent\", all, func(c *Stats) *int64 { return &c.Sent })\n", wrong: ""},
	{name: "the checksums of a checkpoint's files are not looked at",
		file: "cluster/checkpoint/files.go",
		right: "\tcase n != f.Bytes:\n" +
			"\t\terr = fmt.Errorf(\"%w: %s: it has %d bytes of %d\", ErrDamaged, f.Name, n, f.Bytes)\n" +
			"\tcase hex.EncodeToString(sum.Sum(nil)) != f.SHA256:\n",
		wrong: "\tcase n != f.Bytes:\n"},
	{name: "a session waits for an answer once", file: "cluster/door/sessions.go",
		right: "\tf.woken = session.Never\n\tif f.over {",
		wrong: "\tif f.over {", by: "progress"},
	{name: "a worker pushes to no new owner of a shard", file: "actors/ps/worker.go",
		right: "\t} else if moved {\n\t\tw.again(ctx)\n",
		wrong: "\t} else if moved {\n\t\tw.order = inTurns(w.owners)\n", by: "progress"},
	{name: "a step counts twice", file: "cluster/record/collector.go",
		right: "\tn.steps++\n",
		wrong: "\tn.steps += 2\n"},
	{name: "random streams depend on what ran before", file: "actors/random.go",
		right: "func Source(seed uint64, owner, purpose string) *rand.PCG {\n\th := fnv.New64a()\n",
		wrong: "var calls byte\n\nfunc Source(seed uint64, owner, purpose string) *rand.PCG {\n\th := fnv.New64a()\n" +
			"\tcalls++\n\t_, _ = h.Write([]byte{calls})\n"},
}

// copied is a copy of the module's source files.
func copied(t *testing.T) string {
	t.Helper()
	root, dir := filepath.Join("..", "..", ".."), t.TempDir()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		name, failure := filepath.Rel(root, path)
		switch {
		case err != nil || failure != nil:
			return cmp.Or(err, failure)
		case name == ".git" && d.IsDir():
			return filepath.SkipDir
		case name == ".git": // of a worktree
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// command runs a program in a folder. The error is what it wrote about its failure, or that it took
// too long and was killed.
func command(t *testing.T, dir, name string, args ...string) (out []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err = cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it was killed: %w", context.Cause(ctx))
	case errors.As(err, &exit):
		return out, fmt.Errorf("%w: %.300s", err, exit.Stderr)
	}
	return out, err
}

// Each mistake that is planted into a copy of the module breaks an invariant of some plan.
func TestProgrammeCatchesPlantedMistakes(t *testing.T) {
	if simtest.Brief() {
		t.Skip("builds a program for each mistake; GRADWIRE_LENGTHY=1 runs it")
	}
	dir := copied(t)
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			file := filepath.Join(dir, p.file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), p.right) != 1 {
				t.Fatalf("%s does not have %q once", p.file, p.right)
			}
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			wrong := strings.Replace(string(text), p.right, p.wrong, 1)
			if p.imports != "" {
				wrong = strings.Replace(wrong, "import (\n", "import (\n\t\""+p.imports+"\"\n", 1)
			}
			write(wrong)
			defer write(string(text))
			program := filepath.Join(dir, "gradwire.test")
			_, err = command(t, dir, "go", "build", "-buildvcs=false", "-trimpath", "-o", program, "./cmd/gradwire")
			if err != nil {
				t.Fatal(err)
			}
			t.Log(caught(t, dir, program, p.by))
		})
	}
}

// caught says by what a program with a mistake was caught, and fails the test if it was not, or by
// another invariant than by, unless that is empty.
func caught(t *testing.T, dir, program, by string) string {
	t.Helper()
	const seeds = 4000
	for from, n := 1, 8; from <= seeds; from, n = from+n, min(2*n, seeds-from-n+1) {
		out, err := command(t, dir, program, "drill", "--seeds", strconv.Itoa(n), "--from", strconv.Itoa(from),
			"--format", "json")
		var r programme.Report
		if failure := json.Unmarshal(out, &r); failure != nil {
			t.Errorf("no report: %v", err)
			return "not known"
		}
		if len(r.Failures) > 0 {
			f := &r.Failures[0]
			if by != "" && f.Invariant != by {
				t.Errorf("caught by %s instead of %s", f.Invariant, by)
			}
			return fmt.Sprintf("seed %d: %s: %s", f.Seed, f.Invariant, f.How)
		}
	}
	t.Errorf("not caught in %d seeds", seeds)
	return "not caught"
}

package driver_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

// nodesOnce says of the nodes what they are; each architecture gives them its roles.
const nodesOnce = `
data: {set: synthetic-traffic, samples: 500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: gossip}
nodes:
  - {name: hub, compute: {speed: 50 GFLOP/s}}
  - {name: site, count: 3, compute: {step: 5ms}}
network: {default: {delay: 2ms}, links: [{between: [site2, "*"], delay: 9ms}]}
evaluate: {every: 2 steps}
stop: {steps: 6}
sweep:
  architecture:
    - {label: gossip, kind: gossip}
    - {label: server at the hub, kind: parameter-server, roles: {server: hub}}
    - {label: first, kind: parameter-server}
    - {label: server beside them, kind: parameter-server, roles: {server: added}}
    - {label: alone, kind: local}
`

func TestOnePlanRunsArchitecturesOfOtherRoles(t *testing.T) {
	for _, x := range []struct{ what, from, to string }{
		{"as it is", "", ""}, {"with roles of some", "{name: hub,", "{name: hub, role: server,"},
		{"with roles of all", "{name: site,", "{name: site, role: worker,"},
	} {
		report, err := driver.Run(t.Context(), load(t, strings.Replace(nodesOnce, x.from, x.to, 1)),
			driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		if err != nil {
			t.Fatalf("%s: %v", x.what, err)
		}
		if len(report.Runs) != 5 || report.Runs[0].Messages == 0 || report.Runs[1].Messages == 0 ||
			report.Runs[4].Messages != 0 {
			t.Fatalf("%s: %+v", x.what, report.Runs)
		}
		// The hub is the first node: asked for by name and by default it is the same run, which an
		// added server's is not.
		if a, b, c := report.Runs[1].Digest, report.Runs[2].Digest, report.Runs[3].Digest; a != b || b == c {
			t.Errorf("%s: digests %s at the hub, %s at the first, %s beside them", x.what, a, b, c)
		}
	}
}

func TestErrorsInASweepNameThePointAndItsLine(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{"roles: {server: hub}", "roles: {server: hob}",
			`architecture.roles.server: there is no node named "hob"; did you mean hub? ` +
				`(accepted: hub, site, site1, site2, site3); at architecture = server at the hub (small.yaml:14)`},
		{"{label: alone, kind: local}", "{label: alone, kind: lokal}",
			`small.yaml:17:28: architecture.kind: unknown architecture "lokal"`},
		{"{label: alone, kind: local}", "{label: alone, kind: lokal}", "at architecture = alone (small.yaml:17)"},
		{"roles: {server: added}", "roles: {server: added}, scale: 3",
			"at architecture = server beside them (small.yaml:16)"},
	} {
		_, err := driver.Run(t.Context(), load(t, strings.Replace(nodesOnce, x.from, x.to, 1)),
			driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		expectInput(t, err, x.want)
	}
	// What is wrong whatever the sweep says is not said to be wrong at one of its points.
	_, err := driver.Run(t.Context(), load(t, strings.Replace(nodesOnce, "layers: [93, 5]", "layers: [93]", 1)),
		driver.Options{Out: filepath.Join(t.TempDir(), "out")})
	if err == nil || strings.Contains(err.Error(), "; at ") {
		t.Errorf("got %v", err)
	}
	_, err = driver.Run(t.Context(), load(t, nodesOnce, "nodes.hub.role=sever"),
		driver.Options{Out: filepath.Join(t.TempDir(), "out")})
	expectInput(t, err,
		`no architecture of this sweep knows the role "sever"; did you mean server? (accepted: peer, server, worker)`)
	// Where nothing varies the kind of the architecture, a role that it does not know is a mistake.
	text, _, _ := strings.Cut(nodesOnce, "sweep:")
	text = strings.Replace(text, "{name: hub,", "{name: hub, role: server,", 1)
	_, err = driver.Run(t.Context(), load(t, text), driver.Options{Out: filepath.Join(t.TempDir(), "out")})
	expectInput(t, err, `node hub has the role "server", which this architecture does not know (accepted: peer)`)
}

func TestResolvedSweepSpellsOutDefaultsAndRoles(t *testing.T) {
	text, err := load(t, nodesOnce, `sweep."data.split"=[{kind: iid}, {label: two, kind: shards}]`).Resolved(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"scale: min-max", "{name: hub, compute: {speed: 50 GFLOP/s, cores: 1}, uplink: unlimited, downlink: unlimited}",
		"roles: {server: hub, worker: site}", "roles: {server: added, worker: [hub, site]}",
		"roles: {peer: [hub, site]}",
		"{label: two, kind: shards, per-worker: 2}", "moved: 0", "validation: none",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the resolved plan:\n%s", want, text)
		}
	}
	casts, err := load(t, nodesOnce, "sweep={architecture.kind: [gossip, parameter-server]}").Casts(nil)
	if want := []string{"gossip: {peer: [hub, site]}", "parameter-server: {server: hub, worker: site}"}; err != nil ||
		!slices.Equal(casts, want) {
		t.Errorf("got %v, %v, want %v", casts, err, want)
	}
}

func TestRecordIsContinuedWithMoreRepeats(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	one := run(t, load(t, nodesOnce), driver.Options{Out: out})
	more := run(t, load(t, nodesOnce, "repeats=3"), driver.Options{Out: out, Continue: true})
	whole := run(t, load(t, nodesOnce, "repeats=3"), driver.Options{Out: filepath.Join(t.TempDir(), "out")})
	if len(one.Runs) != 5 || len(more.Runs) != 15 || !more.Complete {
		t.Fatalf("%d runs, and then %d", len(one.Runs), len(more.Runs))
	}
	digests := func(r *driver.Report) (list []string) {
		for _, one := range r.Runs {
			list = append(list, fmt.Sprint(one.Point, one.Seed, one.Digest))
		}
		slices.Sort(list)
		return list
	}
	if got, want := digests(more), digests(whole); !slices.Equal(got, want) {
		t.Errorf("continued:\n%v\nat once:\n%v", got, want)
	}
	for i, before := range one.Runs {
		if after := more.Runs[before.Number]; after.Digest != before.Digest {
			t.Errorf("run %d is another one now", i)
		}
	}
	_, err := driver.Run(t.Context(), load(t, nodesOnce, "repeats=2"), driver.Options{Out: out, Continue: true})
	expectInput(t, err, "made by another plan")
	_, err = driver.Run(t.Context(), load(t, nodesOnce, "repeats=4", "stop.steps=7"),
		driver.Options{Out: out, Continue: true})
	expectInput(t, err, "made by another plan")
}

package plan

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

func FuzzReadPlan(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, src := range readFiles(f, pattern) {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		root, err := syntax.Parse("fuzz.yaml", src)
		if err != nil {
			checkMessage(t, err)
			return
		}
		back, err := syntax.Parse("again.yaml", []byte(root.YAML()))
		if err != nil || !root.Equal(back) {
			t.Fatalf("%v: %q is written %q", err, src, root.YAML())
		}
		plans, err := readAll("fuzz.yaml", src)
		if err != nil {
			checkMessage(t, err)
		}
		for _, p := range plans {
			n, err := p.Node()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ReadPlan(n); err != nil {
				t.Fatalf("%v\n%s", err, n.YAML())
			}
		}
	})
}

func FuzzParseAssignment(f *testing.F) {
	for _, s := range []string{"a=1", `"a.b"[0].c={x: y}`, "nodes.fast.compute={step: 5ms}", "=", "a=\n\tb",
		"data..x=[", "nodes=[{name: a}]", "seed.x=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		path, value, err := syntax.ParseAssignment(s)
		if err != nil {
			checkMessage(t, err)
			return
		}
		root := readGoodText(t)
		if err := root.Set(path, value); err != nil {
			checkMessage(t, err)
			return
		}
		if got, ok := root.Lookup(value.Path()); !ok || got != value {
			t.Fatalf("%q is not where it was put, at %q", path, value.Path())
		}
		if _, err := ReadPlan(root); err != nil {
			checkMessage(t, err)
		}
	})
}

func BenchmarkReadPlan(b *testing.B) {
	src := readFiles(b, "testdata/good/groups.yaml")[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readAll("groups.yaml", src); err != nil {
			b.Fatal(err)
		}
	}
}

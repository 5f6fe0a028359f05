package kernel

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBitsAreTheSameOnEveryPlatform compares a checksum of all kinds of products and of sums with
// the one of assembly, or of the twin, on all platforms.
func TestBitsAreTheSameOnEveryPlatform(t *testing.T) {
	withEach(t, func(t *testing.T) {
		const assembly, twin = 0x9e7757b696e7c8cc, 0x2a7a4cca65ae5268
		r := rand.New(rand.NewPCG(1, 2))
		hash := fnv.New64a()
		add := func(x []float32) {
			for _, v := range x {
				_ = binary.Write(hash, binary.LittleEndian, math.Float32bits(v)) // a hash returns no error
			}
		}
		for trans := range 4 {
			p := product{transA: trans&1 == 1, transB: trans&2 == 2, m: 45, n: 53, k: 405, lda: 405, ldb: 405, ldc: 53,
				alpha: 0.7, beta: 0.3}
			for _, x := range []*[]float32{&p.a, &p.b, &p.c} {
				*x = make([]float32, 405*405)
				for i := range *x {
					(*x)[i] = r.Float32() - 0.5
				}
			}
			add(result(t, &p)[:p.m*p.n])
			Axpy(p.b[:1001], 0.3, p.a[:1001], p.b[:1001])
			add(p.b[:1001])
		}
		for range 20 {
			s, k := spread(r), rake(r)
			s.Compute()
			k.Compute()
			add(s.C)
			add(k.C)
			k.Width &^= 15 // where there are no masks these go another way
			if k.Width > 0 {
				k.Compute()
				add(k.C)
			}
		}
		want := uint64(assembly)
		if active == portable {
			want = twin
		}
		if got := hash.Sum64(); got != want {
			t.Errorf("checksum of %s is %#x, want %#x", active.name, got, want)
		}
	})
}

func TestAssemblyIsAsGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the generator")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	folder := t.TempDir()
	generate := exec.Command("go", "run", "generate.go", "generate_x86.go", "generate_neon.go", folder)
	generate.Env = append(os.Environ(), "GOARCH=") // the machine's, even if it emulates another for the tests
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("go run generate.go: %v: %s", err, out)
	}
	for _, name := range []string{"tile_amd64.s", "tile_arm64.s"} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what generate.go writes: run go generate", name)
		}
	}
}

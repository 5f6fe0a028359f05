package checkpoint_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/protos"
)

// model is an actor with parameters, a residue and a clock.
type model struct {
	Params, Residue []float32
	Clock           int
}

func (m *model) State(s *state.State) { state.Exported(s, m) }

// saved returns a state: of a run in real time for odd seconds, in virtual time for even ones.
func saved(t testing.TB, second int) checkpoint.State {
	t.Helper()
	s := checkpoint.State{
		Origin: live.Origin{Plan: "name: plan\n", Seed: 7, Data: "00ff"},
		At:     time.Duration(second) * time.Second, Events: int64(10 * second), Virtual: second%2 == 0,
	}
	nan := float32(math.NaN())
	of, err := state.Save(&model{[]float32{1, -2.5, 3e-9}, []float32{nan, float32(math.Inf(1))}, second})
	if err != nil {
		t.Fatal(err)
	}
	s.Declared = of.Own("w1/")
	return s
}

// compare returns the difference of two states. It compares floats by their bits, so NaN equals NaN.
func compare(want, got any) string {
	return cmp.Diff(want, got, protocmp.Transform(),
		cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }))
}

// read returns the states that a folder has, the newest first.
func read(t *testing.T, f *checkpoint.Folder) (states []checkpoint.State) {
	t.Helper()
	names, err := f.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s, err := f.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, s)
	}
	return states
}

// written saves the states of some seconds, and returns the newest checkpoint.
func written(t *testing.T, f *checkpoint.Folder, seconds ...int) string {
	t.Helper()
	for _, second := range seconds {
		if err := f.Save(saved(t, second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Wait(), f.Wait()); err != nil {
		t.Fatal(err)
	}
	return f.Newest()
}

func TestNewestStatesAreKept(t *testing.T) {
	run := t.TempDir()
	f := checkpoint.NewFolder(run, 2)
	if states := read(t, f); len(states) > 0 {
		t.Errorf("a folder that is not there has %v", states)
	}
	written(t, f, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	if diff := compare([]checkpoint.State{saved(t, 11), saved(t, 10)}, read(t, f)); diff != "" {
		t.Error(diff)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(run); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

// A resumed run may write a checkpoint for an instant that already has one.
func TestStateOfTheSameInstantReplacesTheOneBefore(t *testing.T) {
	f := checkpoint.NewFolder(t.TempDir(), 2)
	written(t, f, 1, 1)
	if diff := compare([]checkpoint.State{saved(t, 1)}, read(t, f)); diff != "" {
		t.Error(diff)
	}
}

func TestFolderThatIsStillBeingWrittenIsNoCheckpoint(t *testing.T) {
	run := t.TempDir()
	f := checkpoint.NewFolder(run, 2)
	written(t, f, 1)
	if err := os.CopyFS(filepath.Join(run, checkpoint.Name, "0000000002000000000.state.partial"),
		os.DirFS(f.Newest())); err != nil {
		t.Fatal(err)
	}
	if diff := compare([]checkpoint.State{saved(t, 1)}, read(t, f)); diff != "" {
		t.Error(diff)
	}
	written(t, f, 2) // a partial folder of a killed process does not prevent the write
	if diff := compare([]checkpoint.State{saved(t, 2), saved(t, 1)}, read(t, f)); diff != "" {
		t.Error(diff)
	}
}

// An incomplete copy of a newer checkpoint does not replace a complete older one.
func TestOldCheckpointsAreDroppedOnceANewerOneIsWhole(t *testing.T) {
	f := checkpoint.NewFolder(t.TempDir(), 9)
	manifest := filepath.Join(written(t, f, 1, 2, 3), "manifest.json")
	text, err := os.ReadFile(manifest)
	if err := errors.Join(err, os.Remove(manifest), f.DropOld()); err != nil {
		t.Fatal(err)
	}
	if names, err := f.Names(); len(names) != 2 || err != nil {
		t.Fatalf("beside the newest, which has no manifest, there are %v, %v; want the one before", names, err)
	}
	if err := errors.Join(os.WriteFile(manifest, text, 0o600), f.DropOld()); err != nil {
		t.Fatal(err)
	}
	if diff := compare([]checkpoint.State{saved(t, 3)}, read(t, f)); diff != "" {
		t.Error(diff)
	}
}

// spoiled returns the bytes of a file with one bit flipped or the end cut off, and describes the
// damage.
func spoiled(b []byte, random *rand.Rand) (other []byte, how string) {
	at := random.IntN(len(b))
	if random.IntN(2) == 0 {
		return b[:at], fmt.Sprintf("cut off at byte %d of %d", at, len(b))
	}
	bit := random.IntN(8)
	other = slices.Clone(b)
	other[at] ^= 1 << bit
	return other, fmt.Sprintf("bit %d of byte %d flipped", bit, at)
}

func TestEveryDamageIsRefusedByName(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	f := checkpoint.NewFolder(t.TempDir(), 1)
	name := written(t, f, 1)
	files, err := filepath.Glob(filepath.Join(name, "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	whole := map[string][]byte{}
	for _, file := range files {
		if whole[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	try := func(how, file string) {
		t.Helper()
		if s, err := f.Read(name); !errors.Is(err, checkpoint.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s %s: read %v, %v", file, how, s, err)
		}
		if err := os.WriteFile(file, whole[file], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		try("is missing", file)
		if err := os.WriteFile(file, append(slices.Clone(whole[file]), 0), 0o600); err != nil {
			t.Fatal(err)
		}
		try("is longer", file)
	}
	for range 1000 {
		file := files[random.IntN(len(files))]
		b, how := spoiled(whole[file], random)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		try(how, file)
	}
	if _, err := f.Read(name); err != nil {
		t.Errorf("as it was written: %v", err)
	}
}

// reseal changes the text of a checkpoint's manifest, and updates all checksums in the manifest.
func reseal(t *testing.T, name string, change func(text string) string) {
	t.Helper()
	path := filepath.Join(name, "manifest.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Files []struct{ Name, SHA256 string }
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	text := string(b[:bytes.LastIndex(b, []byte(",\n \"sha256\""))])
	for _, file := range m.Files {
		content, err := os.ReadFile(filepath.Join(name, file.Name))
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, file.SHA256, fmt.Sprintf("%x", sha256.Sum256(content)), 1)
	}
	text = change(text)
	text += fmt.Sprintf(",\n \"sha256\": \"%x\"\n}\n", sha256.Sum256([]byte(text)))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint of another version is refused with an error that names the version. It is not called
// damaged.
func TestOtherVersionsAreRefusedByName(t *testing.T) {
	f := checkpoint.NewFolder(t.TempDir(), 9)
	fails := func(name string, want error, word string) {
		t.Helper()
		if _, err := f.Read(name); !errors.Is(err, want) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want %v with %q", err, want, word)
		}
	}
	name := written(t, f, 1)
	reseal(t, name, func(text string) string { return strings.Replace(text, "checkpoint 5", "checkpoint 6", 1) })
	fails(name, checkpoint.ErrNew, "gradwire checkpoint 6")

	name = written(t, f, 3)
	path := filepath.Join(name, "state.pb")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := &protos.Checkpoint{}
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	m.Version += 3
	later, err := proto.Marshal(m)
	if err := errors.Join(err, os.WriteFile(path, later, 0o600)); err != nil {
		t.Fatal(err)
	}
	reseal(t, name, func(text string) string {
		unsigned, _, _ := strings.Cut(strings.Replace(text, fmt.Sprint(len(b)), fmt.Sprint(len(later)), 1),
			",\n \"signature\"")
		signature := hmac.New(sha256.New, f.Key)
		signature.Write([]byte(unsigned))
		return fmt.Sprintf("%s,\n \"signature\": \"%x\"", unsigned, signature.Sum(nil))
	})
	fails(name, checkpoint.ErrNew, "version 4")

	name = written(t, f, 5)
	reseal(t, name, func(text string) string { return strings.Replace(text, "checkpoint 5", "checkpoint 4", 1) })
	fails(name, checkpoint.ErrOld, "gradwire checkpoint 4")

	name = filepath.Join(filepath.Dir(name), "0000000009000000000.state")
	if err := os.WriteFile(name, []byte("gradwire checkpoint 3\nand so on"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(name, checkpoint.ErrOld, "gradwire checkpoint 3")
	if err := os.WriteFile(name, []byte("anything else"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(name, checkpoint.ErrDamaged, "no folder")
}

func TestErrorOfWritingIsTold(t *testing.T) {
	run := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(run, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := checkpoint.NewFolder(run, 1)
	if err := f.Save(saved(t, 1)); err != nil {
		t.Errorf("before it is tried: %v", err)
	}
	if err := f.Save(saved(t, 2)); !errors.Is(err, checkpoint.ErrUnwritten) {
		t.Errorf("the first was not written: %v", err)
	}
}

// Anybody can update the checksums of a changed checkpoint, but cannot sign it without the key.
func TestCheckpointThatSomebodyElseHasWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	key, err := checkpoint.ReadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := checkpoint.ReadKey(path); err != nil || !slices.Equal(again, key) {
		t.Errorf("another key at the next start, %v", err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info, err)
	}
	other, err := checkpoint.ReadKey(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	f := checkpoint.NewFolder(t.TempDir(), 1)
	f.Key = key.For("run 1")
	name := written(t, f, 7)
	for _, file := range []string{"state.pb", "tensors.safetensors"} {
		forge(t, f, name, file)
	}
	if _, err := f.Read(name); err != nil {
		t.Errorf("as it was written: %v", err)
	}
	for what, k := range map[string]checkpoint.Key{"another user": other.For("run 1"),
		"another run": key.For("run 2"), "nobody": nil} {
		f.Key = k
		if _, err := f.Read(name); !errors.Is(err, checkpoint.ErrForeign) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// forge flips each bit of a checkpoint's file in turn, updates the checksums, and expects ErrForeign.
func forge(t *testing.T, f *checkpoint.Folder, name, file string) {
	t.Helper()
	same := func(text string) string { return text }
	whole, err := os.ReadFile(filepath.Join(name, file))
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(whole) {
		b := slices.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(filepath.Join(name, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
		reseal(t, name, same)
		if s, err := f.Read(name); !errors.Is(err, checkpoint.ErrForeign) {
			t.Errorf("bit %d of %s flipped: read %v, %v", bit, file, s, err)
		}
	}
	if err := os.WriteFile(filepath.Join(name, file), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	reseal(t, name, same)
}

// python prints the vectors of a checkpoint with Python's own readers.
const python = `
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
try:
    import numpy
    from safetensors.numpy import load
    tensors = {name: list(map(float, values)) for name, values in load(raw).items()}
except ImportError:
    header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
    tensors = {}
    for name, t in header.items():
        low, high = t["data_offsets"]
        tensors[name] = list(struct.unpack("<%df" % t["shape"][0], data[low:high]))
for name in sorted(tensors):
    print(name, *tensors[name])
`

func TestPythonOpensTheTensors(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	f := checkpoint.NewFolder(t.TempDir(), 1)
	path := filepath.Join(written(t, f, 1), "tensors.safetensors")
	out, err := exec.CommandContext(t.Context(), interpreter, "-c", python, path).CombinedOutput()
	const want = "w1/Params 1.0 -2.5 3.000000026176508e-09\nw1/Residue nan inf\n"
	if got := strings.ReplaceAll(string(out), "\r", ""); err != nil || got != want {
		t.Errorf("%v, printed\n%s\nwant\n%s", err, got, want)
	}
}

// Parts joins the parts of a state, and refuses a part that was cut off.
func TestStateTravelsInParts(t *testing.T) {
	of, err := state.Save(&model{make([]float32, 100_000), []float32{1}, 3})
	if err != nil {
		t.Fatal(err)
	}
	s := &live.State{Number: 4, Origin: live.Origin{Plan: "p", Seed: 2}, At: 5, Events: 6, Record: of.Own("record/"),
		Nodes: map[int]live.NodeState{2: {Actor: of.Own("n2/"), View: &protos.View{Number: 3},
			Frames: [][]byte{{1}, {2, 3}}}}}
	var parts []*protos.StatePart
	for part, err := range checkpoint.Split(s) {
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	var p checkpoint.Parts
	join := func(parts []*protos.StatePart) (got *live.State, err error) {
		for _, part := range parts {
			if got, err = p.Add(part); err != nil {
				break
			}
		}
		return got, err
	}
	got, err := join(parts)
	if diff := compare(s, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		spoilt := slices.Clone(parts)
		i := random.IntN(len(parts) - 1)
		b, how := spoiled(parts[i].Part, random)
		spoilt[i] = &protos.StatePart{Cut: parts[i].Cut, Number: parts[i].Number, Part: b}
		if _, err := join(spoilt); err == nil && strings.HasPrefix(how, "cut") {
			t.Errorf("part %d %s: it is taken", i, how)
		}
	}
}

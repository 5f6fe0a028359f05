package host_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/cluster/registry/host"
	"github.com/gradwire/gradwire/protos"
)

func entries(from, to, term uint64) (all []*raftpb.Entry) {
	for i := from; i <= to; i++ {
		all = append(all, &raftpb.Entry{Index: &i, Term: &term, Data: make([]byte, 300)})
	}
	return all
}

func snapshotAt(index uint64) *raftpb.Snapshot {
	return &raftpb.Snapshot{Data: []byte("state"), Metadata: &raftpb.SnapshotMetadata{
		Index: &index, Term: new(uint64(1)), ConfState: &raftpb.ConfState{Voters: []uint64{7}},
	}}
}

func hardAt(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

// write stores a log in several updates and returns the expected result of Load.
func write(t *testing.T, path string) *registry.Saved {
	t.Helper()
	f, err := host.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id := &protos.RegistryIdentity{Name: "a", Id: 7}
	if err := f.Create(id); err != nil {
		t.Fatal(err)
	}
	for _, u := range []*registry.Update{
		{Snapshot: snapshotAt(1), Hard: hardAt(1, 0, 1), Reset: true},
		{Entries: entries(2, 30, 1), Hard: hardAt(1, 7, 1)},
		{Entries: entries(25, 40, 2), Hard: hardAt(2, 7, 24)},
		{Snapshot: snapshotAt(20)},
		{Hard: hardAt(3, 9, 30)},
	} {
		if err := f.Save(u); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return &registry.Saved{Identity: id, Hard: hardAt(3, 9, 30), Snapshot: snapshotAt(20),
		Entries: append(entries(21, 24, 1), entries(25, 40, 2)...)}
}

func load(t *testing.T, path string) (*registry.Saved, error) {
	t.Helper()
	f, err := host.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it may be damaged
	return f.Load()
}

func TestAFileKeepsTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if saved, err := load(t, path); saved != nil || err != nil {
		t.Fatalf("a new file has %v, %v", saved, err)
	}
	want := write(t, path)
	got, err := load(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

func TestASnapshotOfAnotherMemberReplacesTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path)
	f, err := host.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save(&registry.Update{Snapshot: snapshotAt(35), Reset: true, Entries: entries(36, 37, 5)}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, path)
	if err != nil || len(got.Entries) != 2 || got.Entries[0].GetTerm() != 5 ||
		got.Snapshot.GetMetadata().GetIndex() != 35 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDamageIsFound flips bits and truncates the file. Load must return the whole log or an error.
func TestDamageIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	want := write(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	found, tries := 0, 500
	if testing.Short() {
		tries = 60
	}
	folder := t.TempDir()
	for i := range tries {
		data := append([]byte{}, whole...)
		if i%4 == 0 {
			data = data[:1+random.IntN(len(data)-1)]
		} else {
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		}
		damaged := filepath.Join(folder, strconv.Itoa(i))
		if err := os.WriteFile(damaged, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := load(t, damaged)
		switch {
		case errors.Is(err, registry.ErrDamaged):
			found++
		case err != nil:
			t.Fatalf("%d: %v", i, err)
		case got == nil || cmp.Diff(want, got, protocmp.Transform()) != "":
			t.Fatalf("%d: damage is not found: %v", i, got)
		}
	}
	if found < tries/17 { // most bytes of the file are unused
		t.Errorf("only %d of %d are found", found, tries)
	}
}

// TestAFileThatCannotBeOpenedIsNotDamaged opens a folder as a file.
func TestAFileThatCannotBeOpenedIsNotDamaged(t *testing.T) {
	path := t.TempDir()
	_, err := host.OpenFile(path)
	if err == nil || errors.Is(err, registry.ErrDamaged) || !strings.Contains(err.Error(), path+" cannot be opened: ") {
		t.Errorf("%v", err)
	}
}

// TestADamagedFileMakesANewMember starts a member with a damaged file, which must be kept.
func TestADamagedFileMakesANewMember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path)
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	f, err := host.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := registry.New(registry.Config{Name: "a", MayFound: true, Seed: 3, Storage: f, HeartbeatTicks: 1,
		ElectionTicks: 10, RetryTicks: 10, ReplaceTicks: 60, SnapshotEntries: 100})
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Status(); m.ID() == 7 || s.Votes || s.Cluster != 0 {
		t.Errorf("member %d, %+v", m.ID(), s)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if saved, err := load(t, path); err != nil || saved.Identity.Id != m.ID() {
		t.Errorf("%v, %v", saved, err)
	}
	if _, err := os.Stat(path + ".unusable"); err != nil {
		t.Error(err)
	}
}

// TestReplaceIsWholeOrNot writes the pages that Replace changes, in the order in which bbolt writes
// them: data first, then the meta page. After each page the file must have the old log or the new one.
func TestReplaceIsWholeOrNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	former := write(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next := &registry.Saved{Identity: &protos.RegistryIdentity{Name: "a", Id: 8}, Hard: hardAt(4, 0, 1<<32),
		Snapshot: snapshotAt(1 << 32)}
	f, err := host.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Replace(next, 0xabc), f.Close()); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	var changed []int // data pages, then meta pages
	for n := 2; n < len(after)/size; n++ {
		changed = append(changed, n)
	}
	partial, folder := append(append([]byte{}, before...), make([]byte, max(0, len(after)-len(before)))...), t.TempDir()
	for _, n := range append(changed, 0, 1) {
		copy(partial[n*size:(n+1)*size], after[n*size:])
		one := filepath.Join(folder, strconv.Itoa(n))
		if err := os.WriteFile(one, partial, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := load(t, one)
		old, recovered := cmp.Diff(former, got, protocmp.Transform()), cmp.Diff(next, got, protocmp.Transform())
		if err != nil || old != "" && (n >= 2 || recovered != "") {
			t.Fatalf("after page %d: %v, %v", n, got, err)
		}
	}
	for log, want := range map[string]*registry.Saved{path: next, path + ".superseded-abc": former} {
		if got, err := load(t, log); err != nil || cmp.Diff(want, got, protocmp.Transform()) != "" {
			t.Errorf("%s: %v, %v", log, got, err)
		}
	}
}

// TestReplaceThatCannotCopyChangesNothing puts a folder where the copy of the log belongs.
func TestReplaceThatCannotCopyChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	want := write(t, path)
	if err := os.MkdirAll(filepath.Join(path+".superseded-abc", "x"), 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := host.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(&registry.Saved{Identity: &protos.RegistryIdentity{Name: "a", Id: 8}}, 0xabc); err == nil {
		t.Error("no error")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := load(t, path); err != nil || cmp.Diff(want, got, protocmp.Transform()) != "" {
		t.Errorf("%v, %v", got, err)
	}
}

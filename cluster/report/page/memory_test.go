package page

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/report/diff"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

// allocatedBy returns the bytes that a function allocates in all: what it holds at any instant is
// less.
func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestReportAndDiffTakeNoMoreMemoryForTenTimesTheEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("draws three pages")
	}
	labels := []string{"x", "y"}
	a, b := reporttest.WriteRecord(t, "a", "p", labels, 2, nil), reporttest.WriteRecord(t, "b", "p", labels, 2, nil)
	second := func(dir string) string { return filepath.Join(dir, "runs", "0002") }
	line := "{\"time_s\":1,\"node\":\"n\",\"step\":7,\"kind\":\"update\"}\n"
	out := filepath.Join(t.TempDir(), "page.html")
	write := func() {
		sources, err := Read([]string{a})
		if err == nil {
			_, err = Write(out, sources)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	compare := func() {
		for _, dirs := range [][2]string{{a, b}, {second(a), second(b)}} {
			if c, err := diff.Compare(dirs[0], dirs[1]); err != nil || !c.Equal {
				t.Fatalf("%+v, %v", c, err)
			}
		}
	}
	write() // what is made once, such as fonts
	used := map[string][]uint64{}
	for _, lines := range []int{10_000, 100_000} {
		text := strings.Repeat(line, lines)
		for _, dir := range []string{a, b} {
			if err := os.WriteFile(filepath.Join(second(dir), "events.jsonl"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		used["report"] = append(used["report"], allocatedBy(write))
		used["diff"] = append(used["diff"], allocatedBy(compare))
	}
	for what, bytes := range used {
		if t.Logf("%s: %d and %d bytes", what, bytes[0], bytes[1]); float64(bytes[1]) > 1.1*float64(bytes[0]) {
			t.Errorf("%s allocates %d bytes, with ten times the events %d", what, bytes[0], bytes[1])
		}
	}
}

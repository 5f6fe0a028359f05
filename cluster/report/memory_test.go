package report

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// allocatedBy returns the bytes that a function allocates in all: what it holds at any instant is less.
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
		t.Skip("draws four pages")
	}
	a, b := pair(t, nil)
	line := "{\"time_s\":1,\"node\":\"n\",\"step\":7,\"kind\":\"update\"}\n"
	out := filepath.Join(t.TempDir(), "page.html")
	report := func() {
		sources, err := ReadSources([]string{a, b})
		if err == nil {
			_, err = WritePage(out, sources)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	diff := func() {
		for _, dirs := range [][2]string{{a, b}, {number2(a), number2(b)}} {
			if c := compare(t, dirs[0], dirs[1]); !c.Equal {
				t.Fatalf("%+v", c)
			}
		}
	}
	used := map[string][]uint64{}
	for _, lines := range []int{10_000, 100_000} {
		text := strings.Repeat(line, lines)
		for _, dir := range []string{a, b} {
			if err := os.WriteFile(filepath.Join(number2(dir), "events.jsonl"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report() // what is made once, such as fonts
		used["report"] = append(used["report"], allocatedBy(report))
		used["diff"] = append(used["diff"], allocatedBy(diff))
	}
	for what, bytes := range used {
		if t.Logf("%s: %d and %d bytes", what, bytes[0], bytes[1]); float64(bytes[1]) > 1.1*float64(bytes[0]) {
			t.Errorf("%s allocates %d bytes, with ten times the events %d", what, bytes[0], bytes[1])
		}
	}
}

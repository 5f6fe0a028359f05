//go:build !noasm

package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSecondLevelIsWhatTheSystemSays compares with Linux's list of caches.
func TestSecondLevelIsWhatTheSystemSays(t *testing.T) {
	levels, _ := filepath.Glob("/sys/devices/system/cpu/cpu*/cache/index*/level")
	var sizes []int // bytes; cores may differ
	for _, file := range levels {
		level, _ := os.ReadFile(file)
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "size"))
		kilobytes, found := strings.CutSuffix(strings.TrimSpace(string(text)), "K")
		if n, err := strconv.Atoi(kilobytes); found && err == nil && strings.TrimSpace(string(level)) == "2" {
			sizes = append(sizes, n<<10)
		}
	}
	if len(sizes) == 0 {
		t.Skip("the system lists no caches")
	}
	if got := secondLevel(); !slices.Contains(sizes, got) {
		t.Errorf("the second-level cache has %d bytes, want one of %v", got, sizes)
	}
}

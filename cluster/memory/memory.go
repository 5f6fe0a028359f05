// Package memory knows how much memory this process may have: the machine's, or less where a
// control group or a resource limit says so.
package memory

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
)

// granularity is how much address space is left over at least when the runtime of Go gets no more:
// it asks for 64 MiB at a time, and threads and tables need some.
const granularity = 128 << 20

// Bound is how much memory this process may have.
type Bound struct {
	// Bytes is 0 if the system does not say.
	Bytes float64
	// By says whose bound it is, as in "this machine has 8 GB".
	By string
}

// Text writes a size in bytes for people.
func Text(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if n < 1000 {
			return strconv.FormatFloat(n, 'g', 3, 64) + " " + unit
		}
		n /= 1000
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " TB"
}

// Limit returns the smallest memory bound of this process. A limit of the address space is shared with
// threads and libraries, and the Go runtime keeps the space that it has mapped.
func Limit() Bound {
	mapped, _ := runtimeBytes()
	return limit(os.ReadFile, mapped)
}

// limit is Limit with the files of the system, and the address space that the runtime has.
func limit(read func(name string) ([]byte, error), mapped float64) Bound {
	all := []Bound{{field(read, "/proc/meminfo", "MemTotal:", 1024), "this machine has"}}
	groups, _ := read("/proc/self/cgroup")
	for line := range bytes.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) < 3 {
			continue
		}
		switch {
		case parts[1] == "":
			all = append(all, group(read, "/sys/fs/cgroup", parts[2], "memory.max"))
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			all = append(all, group(read, "/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	for _, l := range []struct{ limit, taken, by string }{
		{"Max address space", "VmSize:", "the limit of the address space (ulimit -v) leaves"},
		{"Max data size", "VmData:", "the limit of data (ulimit -d) leaves"},
	} {
		if space := field(read, "/proc/self/limits", l.limit, 1); space > 0 {
			left := space - field(read, "/proc/self/status", l.taken, 1024) - granularity
			all = append(all, Bound{mapped + max(left, 0), l.by})
		}
	}
	all = slices.DeleteFunc(all, func(b Bound) bool { return b.Bytes <= 0 })
	if len(all) == 0 {
		return Bound{}
	}
	return slices.MinFunc(all, func(a, b Bound) int { return cmp.Compare(a.Bytes, b.Bytes) })
}

// group returns the smallest bound of a control group and its parents.
func group(read func(name string) ([]byte, error), root, name, file string) Bound {
	b := Bound{By: "its control group has"}
	for dir := path.Clean("/" + name); ; dir = path.Dir(dir) {
		text, err := read(filepath.Join(root, dir, file))
		if bytes, failed := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && failed == nil &&
			(b.Bytes == 0 || bytes < b.Bytes) {
			b.Bytes = bytes
		}
		if dir == "/" {
			return b
		}
	}
}

// field is the number behind a name that begins a line of a file; 0 without one.
func field(read func(name string) ([]byte, error), file, name string, unit float64) float64 {
	text, err := read(file)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		after, found := strings.CutPrefix(lines.Text(), name)
		var n float64
		if found {
			if _, err := fmt.Sscan(after, &n); err == nil {
				return unit * n
			}
			return 0 // as "unlimited"
		}
	}
	return 0
}

// Used is how many bytes the runtime of this process has taken, and not given back to the system.
func Used() float64 {
	mapped, released := runtimeBytes()
	return mapped - released
}

// runtimeBytes returns the bytes that the Go runtime has mapped, and the part that it has returned to
// the system.
func runtimeBytes() (mapped, released float64) {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64()), float64(s[1].Value.Uint64())
}

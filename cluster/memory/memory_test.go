package memory

import (
	"io/fs"
	"testing"
)

// The smallest bound holds, whichever file of the system tells it.
func TestSmallestBoundHolds(t *testing.T) {
	const unlimited = "Limit                     Soft Limit           Hard Limit           Units\n" +
		"Max data size             unlimited            unlimited            bytes\n" +
		"Max address space         unlimited            unlimited            bytes\n"
	machine := map[string]string{"/proc/meminfo": "MemTotal:        8000 kB\nMemFree: 1 kB\n",
		"/proc/self/limits": unlimited}
	for _, c := range []struct {
		what  string
		files map[string]string
		want  float64
	}{
		{"the machine", nil, 8000 * 1024},
		{"the address space", map[string]string{"/proc/self/limits": "Max address space         137217728" +
			"            137217728            bytes\n",
			"/proc/self/status": "VmSize:    1000 kB\n"}, 3e6 - 1000*1024 + 1000},
		{"an address space that is full", map[string]string{"/proc/self/limits": "Max address space         137217728" +
			"            137217728            bytes\n", "/proc/self/status": "VmSize:    130000 kB\n"}, 1000},
		{"the data", map[string]string{"/proc/self/limits": "Max data size             138217728            900000000" +
			"            bytes\n", "/proc/self/status": "VmData:    1000 kB\n"}, 4e6 - 1000*1024 + 1000},
		{"the control group", map[string]string{"/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "3000000\n"}, 3000000},
		{"a group around it", map[string]string{"/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "2000000\n"}, 2000000},
		{"the group of a container, whose root is its own", map[string]string{"/proc/self/cgroup": "0::/\n",
			"/sys/fs/cgroup/memory.max": "2500000\n"}, 2500000},
		{"version 1", map[string]string{"/proc/self/cgroup": "5:cpu:/x\n4:hugetlb,memory:/a\n",
			"/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000000\n"}, 1000000},
		{"version 1 without a bound", map[string]string{"/proc/self/cgroup": "4:memory:/a\n",
			"/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 8000 * 1024},
		{"a container of version 1, whose group is not seen", map[string]string{"/proc/self/cgroup": "4:memory:/docker/a\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "1500000\n"}, 1500000},
	} {
		read := func(name string) ([]byte, error) {
			for _, files := range []map[string]string{c.files, machine} {
				if text, there := files[name]; there {
					return []byte(text), nil
				}
			}
			return nil, fs.ErrNotExist
		}
		if got := limit(read, 1000); got.Bytes != c.want || got.By == "" {
			t.Errorf("%s: %+v, want %v bytes", c.what, got, c.want)
		}
	}
	nothing := func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	if got := limit(nothing, 0); got != (Bound{}) {
		t.Errorf("without files: %+v", got)
	}
}

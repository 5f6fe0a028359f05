package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Build says which program made a record: equal builds, plans and seeds give equal bits.
type Build struct {
	// Commit is the source's revision, "unknown" where the program was built without it.
	Commit string `json:"commit"`
	Go     string `json:"go"`
	GOOS   string `json:"goos"`
	GOARCH string `json:"goarch"`
	// GOAMD64 is the instruction set's level, empty on other processors.
	GOAMD64 string `json:"goamd64"`
	// Kernel names the numeric kernels in use.
	Kernel string `json:"kernel"`
	// Version is the module's.
	Version string `json:"version"`
	// Modified says that the source differed from the commit.
	Modified bool `json:"modified"`
	// Program tells builds apart that the commit does not: the first 12 hexadecimal digits of the
	// executable's SHA-256. It is empty where the commit is known and was not modified.
	Program string `json:"program,omitempty"`
}

// String returns the version, the commit and the machine, and the program's digest if the commit does
// not identify the program.
func (b Build) String() string {
	text := cmp.Or(b.Version, unstated) + ", commit " + cmp.Or(b.Commit, unstated)
	if b.Modified {
		text += ", modified"
	}
	if b.Program != "" {
		text += ", program " + b.Program
	}
	platform := strings.TrimRight(b.GOOS+"/"+b.GOARCH+" "+b.GOAMD64, " ")
	return fmt.Sprintf("%s, %s, %s, kernels %s", text, b.Go, platform, b.Kernel)
}

// ReadBuild describes the running program, whose numeric kernels have the given name.
func ReadBuild(kernel string) Build {
	info, _ := debug.ReadBuildInfo()
	b := buildOf(info, kernel)
	if b.Commit == unstated || b.Modified {
		b.Program = Program()
	}
	return b
}

// Program returns the first 12 hexadecimal digits of the SHA-256 of the running program's file; it is
// empty if the file cannot be read.
var Program = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})

// unstated stands for what a build does not say.
const unstated = "unknown"

// pseudo matches the version that Go gives a module at a commit without a tag.
var pseudo = regexp.MustCompile(`-(?:[\w.]*\.)?\d{14}-([0-9a-f]{12})(?:\+|$)`)

func buildOf(info *debug.BuildInfo, kernel string) Build {
	b := Build{
		Commit: unstated, Go: runtime.Version(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH,
		Kernel: kernel, Version: unstated,
	}
	if info == nil {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	if found := pseudo.FindStringSubmatch(b.Version); found != nil { // as of go install MODULE@COMMIT
		b.Commit = found[1]
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "GOAMD64":
			b.GOAMD64 = s.Value
		}
	}
	return b
}

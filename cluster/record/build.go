package record

import (
	"runtime"
	"runtime/debug"
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
}

// ReadBuild describes the running program, whose numeric kernels have the given name.
func ReadBuild(kernel string) Build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info, kernel)
}

func buildOf(info *debug.BuildInfo, kernel string) Build {
	b := Build{
		Commit: "unknown", Go: runtime.Version(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH,
		Kernel: kernel, Version: "unknown",
	}
	if info == nil {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
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

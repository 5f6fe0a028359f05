package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The tests in the files house_*_test.go hold the whole module to its rules where a compiler and
// a linter cannot: who may import whom, what an actor may do, what folders and files may be
// called, how large they may be. Each check is a function from source to faults; beside it a test
// shows that it finds them.

const (
	module = "github.com/gradwire/gradwire"
	root   = "../.."
)

// house loads every package of the module once, with types.
var house = sync.OnceValues(func() ([]*packages.Package, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedModule |
		packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, "./...")
	if err != nil {
		return nil, err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			if len(p.GoFiles) > 0 {
				return nil, e
			}
		}
	}
	return loaded, nil
})

func loadHouse(t *testing.T) []*packages.Package {
	t.Helper()
	if testing.Short() {
		t.Skip("loads and type-checks the whole module")
	}
	loaded, err := house()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func report(t *testing.T, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
}

// local cuts the module's path off an import path; others it returns unchanged.
func local(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// within reports whether a package matches a pattern, which is a path or ends in /...
func within(pattern, name string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	return name == pattern
}

// isStandard reports whether an import path belongs to the standard library.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// tree returns the module's files as slash-separated paths below root. It leaves out folders that
// begin with a dot, apart from .ci, and what git ignores, where there is git.
func tree(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && name != ".ci" && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Type().IsRegular():
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return files
	}
	list, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others",
		"--exclude-standard").Output()
	if err != nil {
		t.Logf("looking at ignored files too: git ls-files: %v", err)
		return files
	}
	known := map[string]bool{}
	for name := range strings.SplitSeq(string(list), "\x00") {
		known[name] = true
	}
	return slices.DeleteFunc(files, func(name string) bool { return !known[name] })
}

// expectFault expects one fault that contains want, or none if want is empty.
func expectFault(t *testing.T, sample string, faults []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) > 0:
		t.Errorf("%s\n\tharmless, but reported: %q", sample, faults)
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0], want)):
		t.Errorf("%s\n\twant one fault with %q, got %q", sample, want, faults)
	}
}

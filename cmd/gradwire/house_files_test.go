package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// topLevel are the folders of the module's root, beside those that begin with a dot.
var topLevel = []string{"actors", "cluster", "cmd", "datasets", "examples", "nn", "protos"}

// emptyNames are folder names that say nothing about what is inside.
var emptyNames = []string{"internal", "pkg", "util", "utils", "common", "helper", "helpers", "misc"}

func TestFoldersAreThoseOfTheHouse(t *testing.T) {
	report(t, folderFaults(tree(t)))
}

// folderFaults checks the top level and the names of all folders.
func folderFaults(files []string) (faults []string) {
	folders := map[string]bool{}
	for _, name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for _, want := range topLevel {
		if !folders[want] {
			faults = append(faults, want+": this top-level folder is missing")
		}
	}
	for _, dir := range sortedKeys(folders) {
		isTop := !strings.Contains(dir, "/") && !strings.HasPrefix(dir, ".")
		if isTop && !slices.Contains(topLevel, dir) {
			faults = append(faults, fmt.Sprintf("%s: top-level folders are %s", dir, strings.Join(topLevel, ", ")))
		}
		if slices.Contains(emptyNames, path.Base(dir)) {
			faults = append(faults, dir+": name a folder after what it is for")
		}
	}
	return faults
}

func TestFilesHoldNoPostponedWorkAndNoPathOfOneMachine(t *testing.T) {
	for _, name := range tree(t) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		report(t, textFaults(name, text))
	}
}

var (
	postponed = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX|HA` + `CK)\b`)
	ofMachine = regexp.MustCompile("(^|[\\s\"'`=:(<\\[,]|file://)/(work|root|home|tmp)(/|[\"'`\\s)\\],;:]|$)")
)

// textFaults finds, line by line, marks of postponed work in Go, YAML and Markdown
// and absolute paths of somebody's machine in any text.
func textFaults(name string, text []byte) (faults []string) {
	if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
		return nil
	}
	marked := slices.Contains([]string{".go", ".yaml", ".yml", ".md"}, path.Ext(name))
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if found := postponed.Find(line); marked && found != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: %s: do it now, or drop it", name, number, found))
		}
		if found := ofMachine.Find(line); found != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: %s is a path of one machine", name, number,
				bytes.TrimSpace(found)))
		}
	}
	return faults
}

func TestFolderAndTextFaultsAreFound(t *testing.T) {
	var whole []string
	for _, dir := range topLevel {
		whole = append(whole, dir+"/x.go")
	}
	for _, sample := range []struct{ file, want string }{
		{".ci/run", ""}, {"go.mod", ""}, {"nn/kernel/x.s", ""},
		{"tools/x.go", "tools: top-level"}, {"nn/util/x.go", "nn/util: name"},
		{"cluster/internal/deep/x.go", "cluster/internal: name"},
	} {
		expectFault(t, sample.file, folderFaults(append(slices.Clone(whole), sample.file)), sample.want)
	}
	expectFault(t, "no nn", folderFaults(slices.DeleteFunc(slices.Clone(whole),
		func(name string) bool { return within("nn/...", name) })), "nn: this top-level")

	mark, home := "TO"+"DO", "/"+"home/me/x"
	for _, sample := range []struct{ name, text, want string }{
		{"a.go", "x := 1\n// " + mark + " later\n", "a.go:2"}, {"a.md", "FIX" + "ME", "a.md:1"},
		{"a.yaml", "# HA" + "CK", "a.yaml:1"},
		{"a.sh", "# " + mark, ""}, {"a.go", "var " + mark + "s int", ""},
		{"run", "cd " + home, "run:1"}, {"a.md", "see `" + home + "`", "a.md:1"},
		{"a.yaml", "out: file://" + home, "a.yaml:1"},
		{"a.go", "x := n*(a+b)" + "/" + "work", ""}, {"a.md", "example.com" + home, ""}, {"a.bin", "\x00 " + home, ""},
	} {
		expectFault(t, sample.name+": "+sample.text, textFaults(sample.name, []byte(sample.text)), sample.want)
	}
}

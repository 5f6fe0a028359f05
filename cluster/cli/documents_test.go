package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/gradwire/gradwire/cluster/cli"
)

// source is the module's root.
const source = "../.."

// readDocument returns the text of a document, by its path from the module's root.
func readDocument(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the fenced blocks of a language in a document.
func blocks(text, language string) (all []string) {
	for _, found := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

func TestTheFirstPageIsShort(t *testing.T) {
	const maxBytes = 8000
	if size := len(readDocument(t, "README.md")); size > maxBytes {
		t.Errorf("README.md has %d bytes, more than %d", size, maxBytes)
	}
}

func TestPlansOfTheDocumentsAreInOrder(t *testing.T) {
	for document, want := range map[string]int{"README.md": 1, "cluster/plan/README.md": 1} {
		plans := blocks(readDocument(t, document), "yaml")
		if len(plans) < want {
			t.Errorf("%s has %d plans, want %d", document, len(plans), want)
		}
		for _, plan := range plans {
			file := filepath.Join(t.TempDir(), "plan.yaml")
			write(t, file, plan)
			code, _, errs := gradwire(t, "plan", "check", file)
			expectCode(t, cli.ExitDone, code, document+": "+errs)
		}
	}
}

func TestProgramsOfTheDocumentsArePartsOfExamples(t *testing.T) {
	var code strings.Builder
	programs, err := filepath.Glob(filepath.Join(source, "examples", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	parts := blocks(readDocument(t, "README.md"), "go")
	if len(parts) == 0 {
		t.Error("README.md shows no program")
	}
	for _, part := range parts {
		if !strings.Contains(code.String(), part) {
			t.Errorf("README.md shows what is in no example:\n%s", part)
		}
	}
}

// README says how many kinds of each sort a plan can name.
func TestKindsAreCountedRight(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| ([a-z]+) \| (\d+) \|`).FindAllStringSubmatch(readDocument(t, "README.md"), -1)
	if len(rows) < 9 {
		t.Fatalf("%d counts were found", len(rows))
	}
	for _, row := range rows {
		code, out, errs := gradwire(t, "list", row[1])
		expectCode(t, cli.ExitDone, code, errs)
		if have := strconv.Itoa(strings.Count(out, "\n")); have != row[2] {
			t.Errorf("%s: %s kinds, but README.md says %s", row[1], have, row[2])
		}
	}
}

// anchors are the anchors of a document's headings, as forges make them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return r
			}
			return -1
		}, heading)] = true
	}
	return all
}

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	links, documents := regexp.MustCompile(`\]\(([^)\s]+)\)`), 0
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		documents++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			content, err := os.ReadFile(target)
			if info, e := os.Stat(target); e == nil && info.IsDir() {
				continue
			}
			if err != nil || anchor != "" && !anchors(string(content))[anchor] {
				t.Errorf("%s: %s leads nowhere", path, link[1])
			}
		}
		return nil
	})
	if err != nil || documents < 10 {
		t.Errorf("%d documents, %v", documents, err)
	}
}

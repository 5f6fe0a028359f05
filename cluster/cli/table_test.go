package cli_test

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

// narrowScreen is a terminal of a width.
type narrowScreen struct {
	bytes.Buffer
	columns int
}

func (s *narrowScreen) Columns() int { return s.columns }

func TestWordsStayWholeWhereOtherColumnsCanGiveRoom(t *testing.T) {
	s := narrowScreen{columns: 80}
	code := asGradwire(catalog.Default()).Run(context.Background(), strings.Fields("list architectures"), &s, &s)
	expectCode(t, cli.ExitDone, code, s.String())
	_, whole, _ := gradwire(t, "list", "architectures")
	known := strings.Fields(whole)
	for word := range strings.FieldsSeq(s.String()) {
		if !slices.Contains(known, word) {
			t.Errorf("%s is a part of a word", word)
		}
	}
}

// everyTable are commands that print tables and need no cluster.
var everyTable = []string{
	"list models", "list datasets", "list splits", "list optimizers", "list schedules", "list architectures",
	"list links", "list topologies", "list architectures gossip", "list datasets csv", "data list",
}

// letters are what is left of a text without its layout, in the order of the alphabet.
func letters(text string) string {
	all := []rune(strings.Join(strings.Fields(text), ""))
	slices.Sort(all)
	return string(all)
}

func TestEveryTableFitsTheTerminalAndLosesNothing(t *testing.T) {
	t.Setenv("GRADWIRE_DATA", "")
	for _, line := range everyTable {
		_, whole, _ := gradwire(t, strings.Fields(line)...)
		for _, columns := range []int{40, 80, 132, 700} {
			s := narrowScreen{columns: columns}
			code := asGradwire(catalog.Default()).Run(context.Background(), strings.Fields(line), &s, &s)
			expectCode(t, cli.ExitDone, code, s.String())
			for row := range strings.Lines(s.String()) {
				row = strings.TrimRight(row, "\n")
				if n := utf8.RuneCountInString(row); n > columns || strings.HasSuffix(row, " ") {
					t.Errorf("%s: %d columns of %d: %s", line, n, columns, row)
				}
			}
			if letters(s.String()) != letters(whole) {
				t.Errorf("%s at %d columns is not the same text:\n%s", line, columns, s.String())
			}
			if columns == 700 && s.String() != whole {
				t.Errorf("%s: a wide terminal shows\n%s\nand where there is none\n%s", line, s.String(), whole)
			}
		}
	}
}

func TestWhereThereIsNoTerminalARowOfATableIsALine(t *testing.T) {
	kinds := everyArchitecture(catalog.Default())
	_, out, _ := gradwire(t, "list", "architectures")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(kinds) {
		t.Fatalf("%d lines for %d kinds", len(lines), len(kinds))
	}
	at := -1 // the column in which what it is begins
	for i, line := range lines {
		about := regexp.MustCompile(`^` + regexp.QuoteMeta(kinds[i]) + ` {2,}`).FindString(line)
		if about == "" || at >= 0 && len(about) != at {
			t.Errorf("cells do not stand below each other:\n%s", out)
		}
		at = len(about)
	}
}

func TestAcceptedWordsAreShownInListsAndNewPlans(t *testing.T) {
	t.Chdir(t.TempDir())
	const words = "push, pull, push-pull"
	_, list, _ := gradwire(t, "list", "architectures", "gossip")
	if !regexp.MustCompile(`(?m)^  exchange +push +` + words + `  `).MatchString(list) {
		t.Errorf("%s are not in\n%s", words, list)
	}
	_, plan, _ := gradwire(t, "plan", "new", "--architecture", "gossip")
	first, _, _ := strings.Cut(plan, "\n")
	if first != "# yaml-language-server: $schema=plan.schema.json" {
		t.Errorf("a new plan begins with %s", first)
	}
	if !regexp.MustCompile(`(?m)^  exchange: push +# .*\(`+words+`\)$`).MatchString(plan) ||
		!strings.Contains(plan, "("+strings.Join(everyArchitecture(catalog.Default()), ", ")+")") {
		t.Errorf("%s, or the architectures, are not in\n%s", words, plan)
	}
	// What is shown as accepted is what the program accepts.
	write(t, "plan.yaml", plan)
	for word := range strings.SplitSeq(words, ", ") {
		code, _, errs := gradwire(t, "plan", "check", "plan.yaml", "--set", "architecture.exchange="+word)
		expectCode(t, cli.ExitDone, code, errs)
	}
}

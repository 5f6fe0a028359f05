package examples_test

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

// seeds are the flags of every figure on the pages, fixed before the first run.
const seeds = "--seed 1001 --repeats 10"

// unseeded are the commands whose pages state nothing that other seeds could refute, by page and
// plan, each with the reason.
var unseeded = map[string]string{
	"README.md examples/quickstart.yaml":                           "the tour states no result of it",
	"README.md examples/custom-actor/plan.yaml":                    "the tour states no result of it",
	"README.md examples/async-ps-unequal-links/plan.yaml":          "how long the program takes",
	"links/README.md examples/links/plan.yaml":                     "delays, which the plan's seed draws",
	"sparse-logistic/README.md examples/sparse-logistic/plan.yaml": "its figures are those of the program beside it",
	"federated/README.md examples/federated/million.yaml":          "memory and processor time",
	"federated/README.md examples/federated/cnn.yaml":              "processor time beside PyTorch",
}

// A pageCommand is a run of an example's plan that a page prints.
type pageCommand struct{ page, line, plan string }

var runs = regexp.MustCompile("\\brun (examples/[^` ]+\\.yaml)[^`\n]*")

// pageCommands reads the commands of all pages below this folder, with continued lines joined.
func pageCommands(t *testing.T) (all []pageCommand) {
	t.Helper()
	pages, err := filepath.Glob("*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		joined := regexp.MustCompile(`\s*\\\n\s*`).ReplaceAllString(string(text), " ")
		for _, m := range runs.FindAllStringSubmatch(joined, -1) {
			line, _, _ := strings.Cut(m[0], "  #")
			all = append(all, pageCommand{page, strings.TrimSpace(line), m[1]})
		}
	}
	return all
}

func TestPagesPrintTheSeedsOfTheirFigures(t *testing.T) {
	all := pageCommands(t)
	if len(all) < 25 {
		t.Errorf("only %d commands are on the pages", len(all))
	}
	used := map[string]bool{}
	for _, c := range all {
		key := c.page + " " + c.plan
		if _, exempt := unseeded[key]; exempt {
			used[key] = true
		} else if !strings.Contains(c.line, seeds) {
			t.Errorf("%s: %q has no %s", c.page, c.line, seeds)
		}
	}
	for key, reason := range unseeded {
		if !used[key] {
			t.Errorf("no page has %s any more (%s)", key, reason)
		}
	}
}

// A pageClaim is a page's statement about a plan on embedded data.
type pageClaim struct {
	page, plan string
	lengthy    bool              // more than ten seconds: only with GRADWIRE_LENGTHY
	where      string            // points of the page's table, as in gradwire report --where
	headline   string            // of the program
	says       string            // on the page, for the headline
	rows       map[string]string // of the page's table, by the names of points in the record
	column     int               // of the times in the page's table
}

var pageClaims = []pageClaim{
	{
		page: "README.md",
		plan: "examples/all-reduce-algorithms.yaml",
		headline: "butterfly 4 (19.4 s) and no communication (4 of 10 runs) cannot be told apart in their time to 92 %; " +
			"the other 7 are slower (95 % confidence).",
		says: "Of those that communicate the butterfly after every four steps is first, after 19.4 s; the other seven " +
			"are slower. Peers that exchange nothing arrive in only four of ten runs",
	},
	{
		page:    "README.md",
		plan:    "examples/architectures.yaml",
		lengthy: true,
		headline: "gossip pull 50ms (3.02 s, 7 of 10 runs), ad-psgd (3.56 s) and no communication (1 of 10 runs) " +
			"cannot be told apart in their time to 92 %; the other 6 are slower (95 % confidence).",
		says: "AD-PSGD does in 3.6 s, in 10 of 10 runs. Gossip that pulls every 50 ms cannot be told apart from it: it " +
			"takes 3.0 s, and three of its runs end",
	},
	{
		page:     "README.md",
		plan:     "examples/regions.yaml",
		lengthy:  true,
		where:    "algorithm!=auto",
		headline: "auto (23.4 s) and hierarchical (23.4 s) cannot be told apart in their time to 90 %; the other 4 are slower (95 % confidence).",
		says:     "`*` is the fastest, and the others are slower.",
		rows: map[string]string{
			"hierarchical": "hierarchical", "all-to-all": "all-to-all", "butterfly": "butterfly", "ring": "ring",
			"tree": "tree",
		},
		column: 4,
	},
	{
		page: "in-network/README.md", plan: "examples/in-network/plan.yaml", lengthy: true,
		headline: "4 of 4 points that are compared with no other reached their targets.",
		says:     "1.7 s to 85 %, where the ring takes 4.1 s and the server 10.2 s.",
		rows: map[string]string{
			"server": "server (`bsp`)", "ring": "ring", "switch": "switch",
			"three switches": "three switches, four workers each at two",
		},
		column: 5,
	},
	{
		page: "slow-worker/README.md", plan: "examples/slow-worker/plan.yaml", lengthy: true,
		headline: "Of 4 comparisons, server is fastest in 1 and in 3 the leaders cannot be told apart.",
		says: "| parameter server | 0.28 (0.1 to 0.4) = | 0.29 (0.2 to 0.5) = | 0.38 (0.2 to 0.5) = | " +
			"0.36 (0.2 to 15.6) * |",
	},
	{
		page: "federated/README.md", plan: "examples/federated/edges.yaml", lengthy: true,
		headline: "All 2 points ended at an accuracy of 82.25 %.",
		says:     "| without aggregators | 82.3 % |",
	},
}

// recordOf runs the plan of a claim as its page prints it and gives the headline and the table's rows.
func recordOf(t *testing.T, claim pageClaim) (headline string, rows [][]string) {
	t.Helper()
	all := pageCommands(t)
	at := slices.IndexFunc(all, func(c pageCommand) bool {
		return c.page == claim.page && c.plan == claim.plan && strings.Contains(c.line, seeds)
	})
	if at < 0 {
		t.Fatalf("%s has no run of %s", claim.page, claim.plan)
	}
	args := strings.Fields(all[at].line)
	args[1] = strings.TrimPrefix(args[1], "examples/")
	out := filepath.Join(t.TempDir(), "out")
	if at := slices.Index(args, "--out"); at >= 0 {
		args = slices.Delete(args, at, at+2)
	}
	code, text, errs := gradwire(t, append(args, "--quiet", "--out", out)...)
	if code != cli.ExitDone {
		t.Fatalf("%d: %s", code, errs)
	}
	headline, _, _ = strings.Cut(text, "\n")
	ask := []string{"report", out, "--table", "csv"}
	if claim.where != "" {
		ask = append(ask, "--where", claim.where)
	}
	if code, text, errs = gradwire(t, ask...); code != cli.ExitDone {
		t.Fatalf("%d: %s", code, errs)
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return headline, rows
}

func TestPagesSayWhatTheirCommandsFind(t *testing.T) {
	if testing.Short() {
		t.Skip("runs plans")
	}
	for _, claim := range pageClaims {
		t.Run(claim.plan, func(t *testing.T) {
			if claim.lengthy && os.Getenv("GRADWIRE_LENGTHY") == "" {
				t.Skip("takes more than ten seconds; GRADWIRE_LENGTHY=1 runs it")
			}
			text, err := os.ReadFile(claim.page)
			if err != nil {
				t.Fatal(err)
			}
			if flat := strings.Join(strings.Fields(string(text)), " "); !strings.Contains(flat, claim.says) {
				t.Errorf("%s no longer says %q", claim.page, claim.says)
			}
			headline, rows := recordOf(t, claim)
			if !strings.HasPrefix(headline, claim.headline) {
				t.Errorf("the headline is now\n%s\nand %s says\n%s", headline, claim.page, claim.says)
			}
			for point, row := range claim.rows {
				page, record := pageCell(string(text), row, claim.column), recordCell(rows, point)
				if !agree(page, record) {
					t.Errorf("%s, %s: the page has %q, the record %q", claim.page, row, page, record)
				}
			}
		})
	}
}

// pageCell is the cell of a column in the row of a page's tables that begins with a name.
func pageCell(text, name string, column int) string {
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, " | "); cells[0] == "| "+name && len(cells) > column {
			return strings.TrimSuffix(strings.TrimSpace(cells[column]), " |")
		}
	}
	return ""
}

// recordCell is the one figure in the row of a point.
func recordCell(rows [][]string, name string) string {
	for _, row := range rows {
		if row[0] != name {
			continue
		}
		for _, cell := range row[1:] {
			if strings.Contains(cell, "[") {
				return cell
			}
		}
	}
	return ""
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// agree reports whether a page's figures equal a record's, rounded, with the same mark.
func agree(page, record string) bool {
	p, r := number.FindAllString(page, -1), number.FindAllString(record, -1)
	if len(p) == 0 || len(p) != len(r) || strings.HasSuffix(page, "*") != strings.HasSuffix(record, "*") ||
		strings.HasSuffix(page, "=") != strings.HasSuffix(record, "=") {
		return false
	}
	for i := range p {
		x, _ := strconv.ParseFloat(p[i], 64)
		y, _ := strconv.ParseFloat(r[i], 64)
		_, decimals, _ := strings.Cut(p[i], ".")
		if math.Abs(x-y) > 0.51*math.Pow10(-len(decimals)) {
			return false
		}
	}
	return true
}

func TestFiguresAgreeWhenRoundedAndMarkedAlike(t *testing.T) {
	for _, x := range []struct {
		page, record string
		agree        bool
	}{
		{"23.4 (20.4 to 24.9) *", "23.42 [20.38, 24.90] *", true},
		{"23.4 (20.4 to 24.9)", "23.42 [20.38, 24.90] *", false},
		{"23.4 (20.4 to 24.9) *", "23.42 [20.38, 24.90] =", false},
		{"23.4 (20.4 to 24.9) *", "23.62 [20.38, 24.90] *", false},
		{"23.4", "23.42 [20.38, 24.90]", false},
		{"", "", false},
	} {
		if got := agree(x.page, x.record); got != x.agree {
			t.Errorf("%q and %q: %t", x.page, x.record, got)
		}
	}
}

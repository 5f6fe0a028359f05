package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

// values are the JSON values in a text, one after the other.
func values(t *testing.T, text string) (all []any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, v)
	}
}

func TestEveryCommandThatPrintsFactsPrintsThemAsJSON(t *testing.T) {
	enter(t, small)
	mnist(func(b []byte) []byte { return b })(t)
	csv(connection)(t)
	for _, x := range []struct {
		line string
		keys string // of the first value, or of its first element
	}{
		{"run plan.yaml --out out", "runs build"},
		{"run plan.yaml --out same", "runs build"},
		{"replay out/runs/0000", "equal run"},
		{"eval out/runs/0000", "run classes test workers"},
		{"eval out/runs/0000 --data data/nsl-kdd/KDDTrain+.txt", "model data classes test"},
		{"predict out/runs/0000 --data data/nsl-kdd/KDDTrain+.txt", "model data classes predictions"},
		{"predict out/runs/0000 --data data/nsl-kdd/KDDTrain+.txt --out classes.json", "predictions"},
		{"diff out same", "equal"},
		{"report out", "page folder figures tables"},
		{"plan check plan.yaml", "plan memory_bytes max_core_seconds_per_virtual_second"},
		{"plan show plan.yaml", "data model nodes"},
		{"plan new", "data model nodes"},
		{"plan new --out new.yaml", "plan"},
		{"plan schema", "$schema"},
		{"plan schema --out schema.json", "schema"},
		{"links plan.yaml --samples 2", "links picture"},
		{"list models", "name about settings"},
		{"list architectures gossip", "name about settings"},
		{"list actors", ""},
		{"data list", "name bytes get"},
		{"data check", "name get"},
		{"identity init ca", "authority"},
		{"identity issue ca --node a", "identity name role"},
		{"--version", "commit go kernel"},
	} {
		line := strings.Fields(x.line)
		code, out, errs := gradwire(t, append(line, "--format", "json")...)
		if wanted := map[bool]int{true: cli.ExitFailed}[x.line == "data check"]; code != wanted {
			t.Errorf("%s: exit code %d, want %d: %s", x.line, code, wanted, errs)
		}
		all := values(t, out)
		if len(all) == 0 {
			t.Errorf("%s prints nothing", x.line)
			continue
		}
		first := all[0]
		if list, ok := first.([]any); ok && len(list) > 0 {
			first = list[0]
		}
		for key := range strings.FieldsSeq(x.keys) {
			if object, _ := first.(map[string]any); object[key] == nil {
				t.Errorf("%s: there is no %s in\n%s", x.line, key, out)
			}
		}
	}
}

func TestWhatIsSaidOfAKindAsJSONIsWhatTheTextSays(t *testing.T) {
	code, out, errs := gradwire(t, "list", "architectures", "gossip", "--format", "json")
	expectCode(t, cli.ExitDone, code, errs)
	var one struct {
		Settings []struct {
			Name, About string
			Required    bool
			Default     any
		}
	}
	if err := json.Unmarshal([]byte(out), &one); err != nil {
		t.Fatal(err)
	}
	code, text, errs := gradwire(t, "list", "architectures", "gossip")
	expectCode(t, cli.ExitDone, code, errs)
	for _, s := range one.Settings {
		row := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(s.Name) + ` .*` + regexp.QuoteMeta(s.About) + `$`)
		if !row.MatchString(text) {
			t.Errorf("%+v is not in\n%s", s, text)
		}
	}
	if lines := strings.Count(text, "\n"); len(one.Settings) != lines-1 || lines < 5 {
		t.Errorf("%d settings in %d lines", len(one.Settings), lines)
	}
}

// Each mistake is told as JSON as it is told as text, with the same exit code.
func TestErrorsAsJSONSayWhatTheTextSays(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	place := regexp.MustCompile(`^([a-z.]+):(\d+):(\d+): `)
	placed := 0
	for _, m := range mistakes {
		args := m.args
		if args == nil {
			args = []string{"run", "plan.yaml", "--data", "data", "--out", "out"}
		}
		if m.prepare != nil || strings.Contains(strings.Join(args, " "), "--format") {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			plan := small
			if m.old != "" {
				plan = edit(t, small, m.old, m.new)
			}
			enter(t, plan)
			if err := os.Mkdir("data", 0o700); err != nil {
				t.Fatal(err)
			}
			code, _, text := gradwire(t, args...)
			expectCode(t, cli.ExitInput, code, text)
			code, out, errs := gradwire(t, append(args, "--format", "json")...)
			expectCode(t, cli.ExitInput, code, errs)
			var f struct {
				Error    string `json:"error"`
				ExitCode int    `json:"exit_code"`
				Problems []struct {
					File         string
					Line, Column int
				}
			}
			if err := json.Unmarshal([]byte(errs), &f); err != nil || strings.Count(errs, "\n") != 1 || out != "" {
				t.Fatalf("%v: %s%s", err, errs, out)
			}
			if f.Error+"\n" != text || f.ExitCode != code {
				t.Errorf("exit code %d, %q\nas text %d, %q", f.ExitCode, f.Error, code, text)
			}
			if at := place.FindStringSubmatch(text); at != nil {
				placed++
				if len(f.Problems) == 0 || f.Problems[0].File != at[1] || strconv.Itoa(f.Problems[0].Line) != at[2] ||
					strconv.Itoa(f.Problems[0].Column) != at[3] {
					t.Errorf("%s lies at %+v", at[0], f.Problems)
				}
			}
		})
	}
	if placed < 10 {
		t.Errorf("%d errors have a place", placed)
	}
}

func TestAPlanIsReadFromStandardInputByEveryCommandThatTakesOne(t *testing.T) {
	enter(t, small)
	read := func(from string, args ...string) string {
		var out, errs bytes.Buffer
		program := asGradwire(catalog.Default())
		program.In = strings.NewReader(from)
		code := program.Run(context.Background(), args, &out, &errs)
		expectCode(t, cli.ExitDone, code, errs.String())
		return out.String()
	}
	for _, line := range []string{
		"plan check", "plan show", "plan show --set train.batch=64", "links --samples 3", "run --out",
	} {
		words := strings.Fields(line)
		var outs []string
		for i, plan := range []string{"plan.yaml", "-"} {
			args := slices.Concat(words, []string{plan})
			if words[0] == "run" {
				args = []string{"run", plan, "--out", fmt.Sprint("out", i)}
			}
			out := strings.NewReplacer("plan.yaml is", "- is", "out0", "out1").Replace(read(small, args...))
			outs = append(outs, out)
		}
		if outs[0] != outs[1] || outs[0] == "" {
			t.Errorf("%s: of a file\n%s\nof standard input\n%s", line, outs[0], outs[1])
		}
	}
	// What one command writes another one reads, JSON too.
	if out := read(read(small, "plan", "show", "plan.yaml", "--format", "json"), "plan", "check", "-"); !strings.
		HasPrefix(out, "- is in order\n") {
		t.Error(out)
	}
	var out, errs bytes.Buffer
	program := asGradwire(catalog.Default())
	program.In = strings.NewReader(strings.Replace(small, "batch", "bacth", 1))
	code := program.Run(context.Background(), []string{"run", "-"}, &out, &errs)
	expectCode(t, cli.ExitInput, code, errs.String())
	if !strings.HasPrefix(errs.String(), "stdin:4:9: ") {
		t.Error(errs.String())
	}
}

func TestQuietLeavesStandardErrorToErrors(t *testing.T) {
	enter(t, small)
	code, whole, notes := gradwire(t, "run", "plan.yaml", "--out", "a")
	expectCode(t, cli.ExitDone, code, notes)
	code, out, errs := gradwire(t, "run", "plan.yaml", "--out", "b", "--quiet")
	expectCode(t, cli.ExitDone, code, errs)
	if notes == "" || errs != "" || strings.ReplaceAll(out, "Open b/", "Open a/") != whole {
		t.Errorf("notes %q, with --quiet %q;\n%s\nwith --quiet\n%s", notes, errs, whole, out)
	}
	code, out, errs = gradwire(t, "run", "plan.yaml", "--out", "c", "--quiet", "--format", "json")
	expectCode(t, cli.ExitDone, code, errs)
	if summary, err := os.ReadFile("c/summary.json"); err != nil || errs != "" || len(values(t, out)) != 1 ||
		len(values(t, string(summary))) != 1 {
		t.Errorf("%v, %q", err, errs)
	}
	code, _, errs = gradwire(t, "run", "missing.yaml", "--quiet")
	if code != cli.ExitInput || !strings.Contains(errs, "missing.yaml") {
		t.Errorf("%d %q", code, errs)
	}
}

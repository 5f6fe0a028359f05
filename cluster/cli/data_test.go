package cli_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

// cache makes a new folder the user's cache, and returns where data sets are in it.
func cache(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the cache is moved by a variable of Linux")
	}
	dir := t.TempDir()
	t.Setenv("GRADWIRE_DATA", "")
	t.Setenv("XDG_CACHE_HOME", dir)
	return filepath.Join(dir, "gradwire", "datasets")
}

// mirror serves files by their names.
func mirror(t *testing.T, files map[string][]byte) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[filepath.Base(r.URL.Path)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestDataCommandsTellWhatIsWrong(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "data"))
	if err != nil {
		t.Fatal(err)
	}
	junk := mirror(t, map[string][]byte{"spambase.data": make([]byte, 702_942), "a9a": []byte("+1 1:1\n")})
	for _, c := range []struct {
		name string
		code int
		args []string
		file string // that is there, with a line in it
	}{
		{"list-format", cli.ExitInput, []string{"data", "list", "--format", "xml"}, ""},
		{"list-argument", cli.ExitInput, []string{"data", "list", "mnist"}, ""},
		{"unknown-command", cli.ExitInput, []string{"data", "fetch"}, ""},
		{"get-nothing", cli.ExitInput, []string{"data", "get"}, ""},
		{"get-unknown", cli.ExitInput, []string{"data", "get", "mnist", "cifar-10"}, ""},
		{"get-wrong-bytes", cli.ExitFailed, []string{"data", "get", "spambase", "--from", junk}, ""},
		{"get-wrong-length", cli.ExitFailed, []string{"data", "get", "a9a", "--from", junk}, ""},
		{"get-not-there", cli.ExitFailed, []string{"data", "get", "mnist", "--from", junk, "--from",
			junk + "/elsewhere"}, ""},
		{"get-no-address", cli.ExitInput, []string{"data", "get", "mnist", "--from", "mirror"}, ""},
		{"check-unknown", cli.ExitInput, []string{"data", "check", "cifar-10"}, ""},
		{"check-nothing", cli.ExitFailed, []string{"data", "check"}, ""},
		{"check-missing", cli.ExitInput, []string{"data", "check", "spambase", "--data", "data"}, ""},
		{"check-damaged", cli.ExitInput, []string{"data", "check", "--data", "data"}, "data/spambase/spambase.data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := cache(t)
			enter(t, small)
			if err := os.Mkdir("data", 0o700); err != nil {
				t.Fatal(err)
			}
			if c.file != "" {
				write(t, c.file, "1,2,0\n")
			}
			code, out, errs := gradwireHere(c.args...)
			expectCode(t, c.code, code, errs)
			text := strings.NewReplacer(dir, "CACHE", junk, "MIRROR").Replace(out + errs)
			expectFile(t, filepath.Join(golden, c.name+".txt"), text)
		})
	}
}

func TestDataListShowsEverySetAndWhereItIs(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "data"))
	if err != nil {
		t.Fatal(err)
	}
	dir := cache(t)
	write(t, filepath.Join(dir, "spambase", "spambase.data"), "")
	for _, format := range []string{"text", "json"} {
		code, out, errs := gradwireHere("data", "list", "--format", format)
		expectCode(t, cli.ExitDone, code, errs)
		if format == "json" {
			var sets []map[string]any
			if err := json.Unmarshal([]byte(out), &sets); err != nil || len(sets) != 5 || sets[3]["found"] != dir ||
				sets[0]["found"] != "" {
				t.Errorf("%v in\n%s", err, out)
			}
		}
		expectFile(t, filepath.Join(golden, "list-"+format+".txt"), strings.ReplaceAll(out, dir, "CACHE"))
	}
}

// spambaseFile is the published file.
func spambaseFile(t *testing.T) []byte {
	t.Helper()
	dir := os.Getenv("GRADWIRE_DATA")
	if dir == "" {
		t.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	content, err := os.ReadFile(filepath.Join(dir, "spambase", "spambase.data"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestASetThatWasGotIsFoundWithoutAFlag(t *testing.T) {
	content := spambaseFile(t)
	dir := cache(t)
	from := mirror(t, map[string][]byte{"spambase.data": content})
	enter(t, edit(t, edit(t, small, "{set: synthetic-traffic, samples: 1500}", "{set: spambase}"), "[93, 8, 5]",
		"[57, 8, 2]"))
	code, _, errs := gradwireHere("run", "plan.yaml", "--out", "before")
	expectCode(t, cli.ExitInput, code, errs)
	if !strings.Contains(errs, "gradwire data get spambase") {
		t.Error(errs)
	}
	code, out, errs := gradwireHere("data", "get", "spambase", "--from", from)
	expectCode(t, cli.ExitDone, code, errs)
	if out != "spambase is in "+dir+"\n" || errs != "spambase, 0.7 MB of 0.7 MB, 100 %\n" {
		t.Errorf("%s%s", out, errs)
	}
	code, out, errs = gradwireHere("data", "get", "spambase", "--from", from+"/nowhere")
	expectCode(t, cli.ExitDone, code, errs)
	if out != "spambase is in "+dir+"\n" || errs != "" {
		t.Errorf("%s%s", out, errs)
	}
	code, _, errs = gradwireHere("run", "plan.yaml", "--out", "after", "--repeats", "1")
	expectCode(t, cli.ExitDone, code, errs)
	code, out, errs = gradwireHere("data", "check")
	expectCode(t, cli.ExitDone, code, errs)
	if want := "spambase is in order in " + dir +
		": 4601 + 0 samples of 57 inputs in 2 classes\n"; !strings.Contains(out, want) ||
		!strings.Contains(out, "mnist is not there; get it with 'gradwire data get mnist'\n") {
		t.Error(out)
	}
}

func TestFoldersOfDataSetsAreLookedIntoInTheirOrder(t *testing.T) {
	dir := cache(t)
	plan := edit(t, small, "{set: synthetic-traffic, samples: 1500}", "{set: nsl-kdd}")
	enter(t, plan)
	variable := t.TempDir()
	t.Setenv("GRADWIRE_DATA", variable)
	faulty := func(folder string) { write(t, filepath.Join(folder, "KDDTrain+.txt"), "faulty\n") }
	if err := os.Mkdir("flag", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{dir, variable, "flag"} {
		faulty(folder)
		code, _, errs := gradwireHere("run", "plan.yaml", "--data", "flag")
		expectCode(t, cli.ExitInput, code, errs)
		if want := filepath.Join(folder, "KDDTrain+.txt") + ":1: "; !strings.Contains(errs, want) {
			t.Errorf("%q is not in %s", want, errs)
		}
	}
}

func TestATableOfOnesOwnIsTrainedOn(t *testing.T) {
	var table bytes.Buffer
	table.WriteString("x,y,side\n")
	for i := range 400 {
		x, y := i%20, i/20
		fmt.Fprintf(&table, "%d,%d,%s\n", x, y, map[bool]string{true: "left", false: "right"}[x < y])
	}
	plan := edit(t, small, "{set: synthetic-traffic, samples: 1500}", "{set: csv, file: table.csv.gz}")
	enter(t, edit(t, edit(t, plan, "[93, 8, 5]", "[2, 8, 2]"), "stop: {epochs: 2}", "stop: {epochs: 40}"))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := io.Copy(w, &table); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, "table.csv.gz", z.String())
	code, out, errs := gradwire(t, "run", "plan.yaml", "--out", "out", "--format", "json", "--set", "stop.target=90%")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.Contains(out, `"reached": true`) {
		t.Error(out)
	}
	code, shown, errs := gradwire(t, "plan", "show", "plan.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	for _, want := range []string{"label: last", "header: detect", "separator: comma", "scale: standard", "test: 25%"} {
		if !slices.Contains(strings.FieldsFunc(shown, func(r rune) bool { return strings.ContainsRune("{},\n", r) }),
			want) && !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
}

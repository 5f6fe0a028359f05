package cli_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

// npz returns an archive with the given members, each an NPY file without an array.
func npz(t *testing.T, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		member, err := w.Create(name)
		if err == nil {
			_, err = member.Write([]byte("no array"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// numbers is a table of 40 samples of two inputs and two classes.
func numbers() string {
	text := "a,b,class\n"
	for i := range 40 {
		text += fmt.Sprintf("%d.5,%d,%s\n", i, i*i, []string{"yes", "no"}[i%2])
	}
	return text
}

func TestPlanCheckRefusesDataAsRunDoes(t *testing.T) {
	table := func(more string) string { return "data={set: csv, file: t.csv, label: class, test: 25%" + more + "}" }
	const fits = "model.layers=[2, 4, 2]"
	arrays := func(more string) string { return "data={set: npy, file: t.npz, x: x, y: y, test: 25%" + more + "}" }
	for name, x := range map[string]struct {
		file, text string
		set        []string
	}{
		"inputs":          {"t.csv", numbers(), []string{table(""), "model.layers=[3, 4, 2]"}},
		"classes":         {"t.csv", numbers(), []string{table(""), "model.layers=[2, 4, 3]"}},
		"missing value":   {"t.csv", numbers() + ",3,yes\n", []string{table(""), fits}},
		"doubtful header": {"t.csv", "1,2,3\n" + numbers()[10:], []string{table(""), fits}},
		"absent label":    {"t.csv", numbers(), []string{"data={set: csv, file: t.csv, label: kind, test: 25%}", fits}},
		"label of one":    {"t.csv", strings.ReplaceAll(numbers(), "yes", "no"), []string{table(""), fits}},
		"short line":      {"t.csv", numbers() + "1,2\n", []string{table(""), fits}},
		"no number":       {"t.csv", numbers() + "1e999,2,yes\n", []string{table(""), fits}},
		"empty":           {"t.csv", "", []string{table(""), fits}},
		"split of a class": {"t.csv", numbers(), []string{
			table(", split: {kind: classes, workers: {w1: {maybe: 80%}}}"), fits}},
		"class weights":  {"t.csv", numbers(), []string{table(""), fits, "train.class-weights={yes: 1, maybe: 3}"}},
		"no arrays":      {"t.npz", npz(t), []string{arrays(""), fits}},
		"other arrays":   {"t.npz", npz(t, "z.npy"), []string{arrays(""), fits}},
		"damaged arrays": {"t.npz", npz(t, "x.npy", "y.npy"), []string{arrays(""), fits}},
		"no archive":     {"t.npz", "PK", []string{arrays(""), fits}},
		"no text":        {"t.txt", "1 1:x\n", []string{"data={set: libsvm, file: t.txt, test: 25%}", fits}},
		"a later point": {"t.csv", numbers(), []string{table(""),
			"sweep={model: [{kind: mlp, layers: [2, 4, 2]}, {kind: mlp, layers: [3, 4, 2]}]}"}},
	} {
		t.Run(name, func(t *testing.T) {
			enter(t, plain)
			write(t, x.file, x.text)
			args := []string{"plan.yaml"}
			for _, set := range x.set {
				args = append(args, "--set", set)
			}
			code, _, refused := gradwire(t, append([]string{"run", "--out", "out"}, args...)...)
			expectCode(t, cli.ExitInput, code, refused)
			code, out, errs := gradwire(t, append([]string{"plan", "check"}, args...)...)
			expectCode(t, cli.ExitInput, code, out+errs)
			errs, _, _ = strings.Cut(errs, "warning: ")
			if !strings.HasSuffix(refused, errs) || errs == "" {
				t.Errorf("run says\n%s\nand plan check\n%s", refused, errs)
			}
		})
	}
}

func TestPlanCheckNotesThatDataAreAbsent(t *testing.T) {
	for set, layers := range map[string]string{"data={set: mnist}": "[784, 10]", "data={set: nsl-kdd}": "[93, 5]"} {
		enter(t, plain)
		code, out, errs := gradwire(t, "plan", "check", "plan.yaml", "--set", set, "--set", "model.layers="+layers)
		expectCode(t, cli.ExitDone, code, errs)
		if !strings.Contains(errs, "note: what all runs take is unknown: ") || !strings.Contains(out, "is in order") {
			t.Errorf("%s: %s%s", set, out, errs)
		}
	}
}

package record

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The test damages each JSON file of a record in several ways. The reader's error names the file and the
// accepted values, without words of Go's libraries.
func TestReadersNameFileAndPlaceOfWhatIsDamaged(t *testing.T) {
	leak := regexp.MustCompile(`\sjson: |strconv\.|invalid character|\brecord\.[A-Z]|Unmarshal|cannot`)
	f := newExample(t)
	if _, err := f.Write(Overview{Plan: "example", Target: 0.9, RunsPlanned: 3}); err != nil {
		t.Fatal(err)
	}
	dir := f.Dir()
	if err := f.SaveTunings([]Tuning{{Candidates: []Candidate{{Values: Point{{"k", "1"}}}}}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var files []string
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".json" {
			files = append(files, path)
		}
		return err
	}); err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			"", "null", "[]", `""`, "3", "x", "{", `{"surprise": 1}`, string(whole) + "x", string(whole) + "}",
			string(whole[:len(whole)/2]), strings.Replace(string(whole), `"point":`, `"piont":`, 1),
			strings.Replace(string(whole), `"point": {`, `"point": {"a": [], `, 1),
			strings.Replace(string(whole), `"wall_s":`, `"wall_s": "x", "wall_s":`, 1),
			strings.Replace(string(whole), `"final_accuracy":`, `"final_accuracy": "x", "final_accuracy":`, 1),
			strings.Replace(string(whole), `"seed":`, `"seed": -1, "seed":`, 1),
		} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := readAll(dir)
			if err == nil {
				_, err = ReadTunings(dir)
			}
			if text == string(whole) {
				continue // this file lacks the key
			}
			if err == nil || !strings.HasPrefix(err.Error(), file+":") || !strings.Contains(err.Error(), "accepted") &&
				!strings.Contains(err.Error(), "unexpected") {
				t.Errorf("%s, %.40q: %v", file, text, err)
			} else if found := leak.FindString(strings.ReplaceAll(err.Error(), "cannot be used", "")); found != "" {
				t.Errorf("%s, %.40q: %q in %v", file, text, found, err)
			}
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAChoiceAtTheBoundOfWhatThePlanAcceptsPromisesNothingBeyond(t *testing.T) {
	for _, c := range []struct {
		values []string
		chosen int
		bound  []string
		edges  string
	}{
		{[]string{"0", "0.1"}, 0, nil, ""},
		{[]string{"0", "0.1"}, 1, nil, "k 0.1 is the largest"},
		{[]string{"0.5", "1"}, 1, []string{"k"}, ""},
		{[]string{"0.5", "1"}, 1, []string{"other"}, "k 1 is the largest"},
		{[]string{"1", "8"}, 0, []string{"k"}, ""},
	} {
		one := Tuning{Chosen: c.chosen, AtBound: c.bound}
		for _, v := range c.values {
			one.Candidates = append(one.Candidates, Candidate{Values: Point{{"k", v}}})
		}
		if got := fmt.Sprint(one.edges()); c.edges == "" && got != "[]" || !strings.Contains(got, c.edges) {
			t.Errorf("%v chosen %d: %s, want %q", c.values, c.chosen, got, c.edges)
		}
	}
}

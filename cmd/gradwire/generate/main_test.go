package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPagesAreThoseOfTheCommands(t *testing.T) {
	if err := run("..", true); err != nil {
		t.Error(err)
	}
}

func TestPagesThatDifferAreNamed(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Fatalf("just written: %v", err)
	}
	for name, text := range map[string]string{"README.md": "old", "man/gradwire-forget.1": "gone"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "man/gradwire-run.1")); err != nil {
		t.Fatal(err)
	}
	err := run(dir, true)
	if err == nil {
		t.Fatal("nothing is said to differ")
	}
	for _, want := range []string{
		"README.md differs", "man/gradwire-run.1 differs", "man/gradwire-forget.1 is the page of no command",
	} {
		if !strings.Contains(filepath.ToSlash(err.Error()), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("more than three faults: %v", err)
	}
}

func TestManPagesOfEveryCommandRender(t *testing.T) {
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("there is no man here to render pages with")
	}
	pages, err := filepath.Glob(filepath.Join("..", manFolder, "*.1"))
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for i, page := range pages {
		if testing.Short() && i%8 != 0 {
			continue // a man takes a tenth of a second
		}
		path, err := filepath.Abs(page)
		if err != nil {
			t.Fatal(err)
		}
		render := exec.Command(man, "--warnings=w", "-l", path) //nolint:gosec // as it is
		render.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8", "MANROFFSEQ=")
		var text, warnings bytes.Buffer
		render.Stdout, render.Stderr = &text, &warnings
		if err := render.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("%s: %v: %s", page, err, warnings.String())
		}
		for _, heading := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLE"} {
			if !strings.Contains(text.String(), heading) {
				t.Errorf("%s: no %s:\n%s", page, heading, text.String())
			}
		}
	}
}
